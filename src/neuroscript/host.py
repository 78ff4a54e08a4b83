"""What an embedder lends to the tools of an engine; every part has a default.

Source: contract section 4; issue "The Runtime and the Host".
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TextIO

import attrs

from neuroscript.display import shown
from neuroscript.errors import CoercionError, SpecError
from neuroscript.memory import plain_copy
from neuroscript.policy import ExecutionPolicy
from neuroscript.prompting import ConsolePrompter, Prompter
from neuroscript.runtime import LLM, Logger, Random
from neuroscript.scopes import SURROGATE, Unfit, key_of
from neuroscript.walk import type_name


@attrs.frozen
class Progress:
    """How far a call is.

    Attributes:
        tool: The canonical name of its tool.
        done: How much has been done, in units of the tool's choice.
        total: How much there is to do, or None.
        text: What is being done.
    """

    tool: str
    done: float
    total: float | None
    text: str


@attrs.frozen(kw_only=True, eq=False)
class Host:
    """The world that tools see.

    Attributes:
        logger: A `logging.Logger`, or what is shaped like one; tools get a child of it where it has children. The
            default is the logger ``neuroscript``.
        stdin: Where answers come from; None means the process's, when it is first asked for.
        stdout: Where tools print; None means the process's.
        stderr: Where prompts are written; None means the process's.
        prompter: Who asks a user; by default one that uses *stdin* and *stderr*.
        sandbox_dir: The directory that `Runtime.fs` can not leave. One that is given is opened and tried when the
            engine is made; the default, the user's data directory of this application, when it is first needed.
        llm: The model that tools may use.
        variables: What each session's variables are at first: plain values by name.
        constants: Plain values by name that no tool can set.
        secrets: Texts by name, for tools that are granted ``secret:read:NAME``; each has 6 characters or more, and is
            seen in nothing that leaves a tool.
        clock: Seconds since 1970-01-01 UTC. Plans go by it; one with a coroutine function ``wait(seconds)`` is also
            what they wait by.
        random: Where `Runtime.random` comes from; by default the operating system.
        progress: Called with a `Progress` whenever a tool tells how far it is; what it raises is let go.

    Raises:
        SpecError: With everything that is wrong with it.
    """

    logger: Logger | None = None
    stdin: TextIO | None = None
    stdout: TextIO | None = None
    stderr: TextIO | None = None
    prompter: Prompter = attrs.Factory(lambda self: ConsolePrompter(self.stdin, self.stderr), takes_self=True)
    sandbox_dir: str | os.PathLike[str] | None = None
    llm: LLM | None = None
    variables: Mapping[str, Any] = attrs.field(factory=dict)
    constants: Mapping[str, Any] = attrs.field(factory=dict)
    secrets: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    clock: Callable[[], float] = time.time
    random: Random | None = None
    progress: Callable[[Progress], object] | None = None

    def __attrs_post_init__(self) -> None:
        faults = [*_plain_faults(self, "variables"), *_plain_faults(self, "constants"), *_secret_faults(self.secrets)]
        if isinstance(self.secrets, Mapping):
            object.__setattr__(self, "secrets", dict(self.secrets))
        faults.extend(f"{name} can not be called" for name in ("clock", "progress") if not _fits(getattr(self, name)))
        if faults:
            raise SpecError("host", faults)

    @property
    def output(self) -> TextIO:
        """Where tools print."""
        return self.stdout if self.stdout is not None else sys.stdout

    def logger_of(self, tool: str) -> Any:
        """Return the logger of one tool."""
        logger: Any = self.logger
        if logger is None:
            from logging import getLogger

            from neuroscript.directories import APPLICATION

            logger = getLogger(APPLICATION)
        child = getattr(logger, "getChild", None)
        return logger if child is None else child(tool)

    def directory(self) -> str:
        """Return where the sandbox is."""
        if self.sandbox_dir is not None:
            return os.fspath(self.sandbox_dir)
        from neuroscript.directories import sandbox_directory

        return sandbox_directory()


def _fits(part: object) -> bool:
    return part is None or callable(part)


def _plain_faults(host: Host, part: str) -> Iterator[str]:
    values = getattr(host, part)
    if not isinstance(values, Mapping) or not all(type(name) is str for name in values):
        yield f"{part} must be values by name, not {type_name(values)}"
        return
    copies = {}
    for name, value in values.items():
        try:
            copies[name] = plain_copy(value)
        except CoercionError as error:
            yield f"{part}[{shown(name)!r}]: {error}"
    object.__setattr__(host, part, copies)


def _secret_faults(secrets: object) -> Iterator[str]:
    if not isinstance(secrets, Mapping) or not all(type(each) is str for pair in secrets.items() for each in pair):
        yield "secrets must be texts by name"
        return
    if secrets:  # as most hosts have none, and then nothing is loaded for it
        from neuroscript.forms import SHORTEST
    for name, value in secrets.items():
        if len(value) < SHORTEST:
            why = f"{SHORTEST} characters or more, for hiding a shorter one would hide much else"
            yield f"secrets[{shown(name)!r}] must have {why}"


def secrets_of(host: Host, policy: ExecutionPolicy) -> Any:
    """Return what hides the values that nobody may see, a `Secrets`, or None where there are none to begin with.

    They are the secrets of the host, and of this process's environment what a grant ``env:read:NAME`` names exactly,
    unless that has fewer than 6 characters.
    """
    names = frozenset(_named(policy))
    if not host.secrets and not names:
        return None
    from neuroscript.forms import SHORTEST
    from neuroscript.redaction import Secrets

    secrets = Secrets()
    for value in host.secrets.values():
        secrets.add(value)
    for name, value in os.environ.items():
        if name.lower() in names and len(value) >= SHORTEST:
            secrets.add(value)
    return None if secrets.is_empty else secrets


def _named(policy: ExecutionPolicy) -> Iterator[str]:
    """Yield the names, in lower case, of environment variables that a grant names without a glob."""
    for grant in (grant for layer in policy.layers for grant in layer.grants):
        if grant.resource not in ("env", "*") or not {"read", "*"}.intersection(grant.verbs):
            continue
        for scope in grant.scopes:
            with suppress(Unfit):
                key = key_of("env", scope)
                if not SURROGATE.search(key):
                    yield key
