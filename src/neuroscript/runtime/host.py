"""The host: what an embedding application provides to the tools of an engine. Every part has a default."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import attrs

from neuroscript.coercion.parameters import (
    BY_NAME,
    FUNCTION,
    INPUT,
    OUTPUT,
    PATH,
    STRING,
    Form,
    field_problems,
    mapping_form,
    object_form,
    optional,
    require,
)
from neuroscript.errors import CoercionError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.scopes import SURROGATE, InvalidScope, key_of
from neuroscript.runtime.interfaces import LLM, AnyModel, Logger, Random
from neuroscript.runtime.state import plain_copy

if TYPE_CHECKING:
    from neuroscript.runtime.prompter import ConsolePrompter, Prompter


def _as_llm(given: AnyModel | None) -> LLM | None:
    """Declare the accepted types of a model to type checkers."""
    return cast("LLM | None", given)


@attrs.frozen
class Progress:
    """The progress of a call.

    Attributes:
        tool: The canonical name of its tool.
        done: The amount done, in units of the tool's choice.
        total: The total amount, or None if unknown.
        text: A description of the current step.
    """

    tool: str
    done: float
    total: float | None
    text: str


class DefaultPrompter:
    """Prompts on the console; its `ConsolePrompter` is created at the first prompt.

    Args:
        stdin: The stream to read answers from; None means the process's.
        stderr: The stream to write prompts to; None means the process's.
    """

    def __init__(self, stdin: TextIO | None, stderr: TextIO | None) -> None:
        self._streams = stdin, stderr
        self._made: dict[str, ConsolePrompter] = {}

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*, as `ConsolePrompter.ask` does."""
        console = self._made.get("console")
        if console is None:
            from neuroscript.runtime.prompter import ConsolePrompter

            # setdefault is atomic, so all threads use one prompter, whose lock lets them ask one at a time
            console = self._made.setdefault("console", ConsolePrompter(*self._streams))
        return console.ask(prompt, secret=secret)


@attrs.frozen(kw_only=True, eq=False)
class Host:
    """The environment that tools run in.

    Attributes:
        logger: A `logging.Logger`, or an object with the same methods. Tools get a child of it if it supports children.
            The default is the logger ``neuroscript``.
        stdin: The stream that prompts read from; None means the process's, looked up on first use.
        stdout: The stream that tools print to; None means the process's.
        stderr: The stream that prompts are written to; None means the process's.
        prompter: Prompts a user for tools; the default uses *stdin* and *stderr*.
        sandbox_dir: The directory that `Runtime.fs` is confined to. An explicit directory is opened and tested when the
            engine is created. The default, this application's user data directory, is opened on first use.
        llm: The model that tools may use.
        variables: The initial variables of each session: plain values by name.
        constants: Plain values by name that tools can read but not set.
        secrets: Strings by name, for tools that are granted ``secret:read:NAME``. Each has at least 6 characters, and
            is redacted in everything that leaves a tool.
        clock: Returns seconds since 1970-01-01 UTC. Plans use it for timestamps, and also to wait if it has a coroutine
            method ``wait(seconds)``.
        random: The source of `Runtime.random`; by default the operating system.
        progress: Called with a `Progress` whenever a tool reports progress. Exceptions that it raises are ignored.

    Raises:
        SpecError: If a part is invalid. The error lists every problem.
    """

    logger: Logger | None = None
    stdin: TextIO | None = None
    stdout: TextIO | None = None
    stderr: TextIO | None = None
    prompter: Prompter = attrs.Factory(lambda self: DefaultPrompter(self.stdin, self.stderr), takes_self=True)
    sandbox_dir: str | os.PathLike[str] | None = None
    llm: LLM | None = attrs.field(default=None, converter=_as_llm)
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
        faults.extend(field_problems(self, **FORMS))
        if faults:
            raise SpecError("host", faults)

    @property
    def output(self) -> TextIO:
        """The stream that tools print to."""
        return self.stdout if self.stdout is not None else sys.stdout

    def logger_of(self, tool: str) -> Logger:
        """Return the logger of one tool."""
        require("host", tool=(tool, STRING))
        logger = self.logger
        if logger is None:
            from logging import getLogger

            from neuroscript.io.user_cache import APPLICATION

            logger = getLogger(APPLICATION)
        child = getattr(logger, "getChild", None)
        return logger if child is None else child(tool)

    def directory(self) -> str:
        """Return the path of the sandbox directory."""
        if self.sandbox_dir is not None:
            return os.fspath(self.sandbox_dir)
        from neuroscript.io.user_cache import sandbox_directory

        return sandbox_directory()


# Requirements on each field

MODEL_METHODS: Final = ("ask", "ask_with_tools", "reply")
"""The methods of a model; a model that does not implement the whole protocol has at least one of them."""

LOGGER: Final = object_form("a logging.Logger", "debug", "info", "warning", "error")
PROMPTER: Final = object_form("a Prompter", "ask")
MODEL: Final = Form(
    "a model (an object with ask or ask_with_tools)",
    lambda model: not isinstance(model, type) and any(callable(getattr(model, each, None)) for each in MODEL_METHODS),
    hint="neuroscript.llm.model(name) makes one",
)
SECRETS: Final = mapping_form(STRING, "strings")
RANDOM: Final = object_form("a random.Random", "random", "getrandbits", "randrange")
FORMS: Final = {
    "logger": optional(LOGGER),
    "stdin": optional(INPUT),
    "stdout": optional(OUTPUT),
    "stderr": optional(OUTPUT),
    "prompter": PROMPTER,
    "sandbox_dir": optional(PATH),
    "llm": optional(MODEL),
    "clock": FUNCTION,
    "random": optional(RANDOM),
    "progress": optional(FUNCTION),
}


def _plain_faults(host: Host, part: str) -> Iterator[str]:
    values = getattr(host, part)
    if not BY_NAME.accepts(values):
        yield from BY_NAME.problems(part, values)
        return
    copies = {}
    for name, value in values.items():
        try:
            copies[name] = plain_copy(value)
        except CoercionError as error:
            yield f"{part}[{quote_untrusted(name)!r}]: {error}"
    object.__setattr__(host, part, copies)


def _secret_faults(secrets: object) -> Iterator[str]:
    faults = [*SECRETS.problems("secrets", secrets)]
    if faults or not isinstance(secrets, Mapping):
        yield from faults
        return
    if secrets:  # most hosts have none, which avoids an import
        from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS
    for name, value in secrets.items():
        if len(value) < MIN_SECRET_CHARS:
            short = "redacting a shorter one would also redact unrelated text"
            why = f"{MIN_SECRET_CHARS} characters or more, because {short}"
            yield f"secrets[{quote_untrusted(name)!r}] must have {why}"


def exact_variables(policy: ExecutionPolicy) -> frozenset[str]:
    """Return the names, in lower case, of environment variables that a grant names without a glob."""
    return frozenset(_exact_variables(policy))


def _exact_variables(policy: ExecutionPolicy) -> Iterator[str]:
    for grant in (grant for layer in policy.layers for grant in layer.grants):
        if grant.resource not in ("env", "*") or not {"read", "*"}.intersection(grant.verbs):
            continue
        for scope in grant.scopes:
            with suppress(InvalidScope):
                key = key_of("env", scope)
                if not SURROGATE.search(key):
                    yield key
