"""What a program finds in its environment: little, and nothing that chooses which code runs.

Source: reliability.md T13.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from neuroscript_shell.programs import failure

LANGUAGE: Final = "C.UTF-8"

OWN: Final = frozenset({"HOME", "LANG", "PATH"})
"""Variables that every program gets, and that nobody sets in another way."""

STEERING: Final = frozenset(
    ("BASHOPTS", "BASH_ENV", "CDPATH", "ENV", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "IFS")
    + ("LOCPATH", "NLSPATH", "NODE_OPTIONS", "PERL5DB", "PERL5LIB", "PERL5OPT", "PERLLIB", "PROMPT_COMMAND", "PS4")
    + ("RUBYLIB", "RUBYOPT", "SHELLOPTS")
)
"""Variables by which loaders, shells and interpreters are told to run other code."""

PREFIXES: Final = ("BASH_FUNC_", "DYLD_", "GIT_", "LD_", "PYTHON")
"""How the names of further ones begin."""


def environment(directories: Sequence[str], home: str, names: Sequence[str]) -> dict[str, str]:
    """Return the variables of a program.

    Args:
        directories: Where programs are looked for.
        home: Its home directory.
        names: What it gets of the host's own variables, as far as they are set.

    Raises:
        ToolFailed: shell.bad_env, for a name that is not passed on.
    """
    for index, name in enumerate(names):
        if name.upper() in OWN | STEERING or name.upper().startswith(PREFIXES):
            text = f"env_names[{index}]: expected a variable that does not choose which code runs, got another name"
            raise failure("shell.bad_env", text)
    passed = {name: os.environ[name] for name in names if name in os.environ}
    return {"PATH": os.pathsep.join(directories), "LANG": LANGUAGE, "HOME": home, **passed}
