"""The environment of a program: few variables, and none that choose which code runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from neuroscript_shell.programs import failure

LANGUAGE: Final = "C.UTF-8"

FIXED_VARIABLES: Final = frozenset({"HOME", "LANG", "PATH"})
"""Variables that every program gets; callers cannot change them."""

STEERING: Final = frozenset(
    ("BASHOPTS", "BASH_ENV", "CDPATH", "ENV", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "IFS")
    + ("LOCPATH", "NLSPATH", "NODE_OPTIONS", "PERL5DB", "PERL5LIB", "PERL5OPT", "PERLLIB", "PROMPT_COMMAND", "PS4")
    + ("RUBYLIB", "RUBYOPT", "SHELLOPTS")
)
"""Variables that make loaders, shells and interpreters run other code."""

PREFIXES: Final = ("BASH_FUNC_", "DYLD_", "GIT_", "LD_", "PYTHON")
"""Prefixes of further such variables."""


def environment(directories: Sequence[str], home: str, names: Sequence[str]) -> dict[str, str]:
    """Return the environment of a program.

    Args:
        directories: The directories of PATH.
        home: The home directory.
        names: Variables of the host to pass on, if they are set.

    Raises:
        ToolFailed: shell.bad_env, for a name that is not allowed.
    """
    for index, name in enumerate(names):
        if name.upper() in FIXED_VARIABLES | STEERING or name.upper().startswith(PREFIXES):
            text = f"env_names[{index}]: expected a variable that does not affect which code runs, got another name"
            raise failure("shell.bad_env", text)
    passed = {name: os.environ[name] for name in names if name in os.environ}
    return {"PATH": os.pathsep.join(directories), "LANG": LANGUAGE, "HOME": home, **passed}
