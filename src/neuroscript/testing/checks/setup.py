"""The world in which examples are true: files, variables, secrets, answers and a model that a host would lend.

Source: issue "Plugins", the publisher's kit.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import (
    BY_NAME,
    FLAG,
    FUNCTION,
    SECONDS,
    STRING,
    STRINGS,
    Form,
    as_tuple,
    collection,
    instance,
    mapping,
    optional,
    require,
    require_fields,
    sequence,
)
from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.limits import Limits
from neuroscript.runtime.host import MODEL, Host
from neuroscript.runtime.interfaces import LLM, ToolCall, Turn
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

MOMENT: Final = 1_700_000_000
"""When every file of the sandbox was changed last, in seconds since 1970-01-01 UTC."""

SLEEP: Final = Decimal("0.2")
"""Seconds that tools may sleep in one world, so that a value that is drawn at random holds nobody up."""

Prepare = Callable[[Engine, str, Any], Any]
"""Takes an engine, the name of a tool and the arguments of an example, and returns those to call it with."""


class Parrot:
    """A model that says what it hears in capitals, and asks for each tool with what stands in its first example."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the last turn's text in capitals."""
        return Turn("assistant", turns[-1].content.upper())

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Ask for a call of each tool."""
        calls = (ToolCall(tool.full_name, _first_args(tool), id=tool.name) for tool in tools)
        return Turn("assistant", "I would", tool_calls=tuple(calls))

    def embed(self, text: str) -> Sequence[float]:
        """Return two numbers."""
        return [float(len(text)), 0.5]


def _first_args(tool: ToolSpec) -> Any:
    return tool.examples[0].args if tool.examples else ()


@attrs.frozen(kw_only=True)
class Setup:
    """What the examples of a toolset count on; each example begins in a new world of it.

    Attributes:
        files: What the sandbox holds, by path; None is a directory. A text is written as UTF-8.
        variables: The caller's variables.
        secrets: What the host lends, by name.
        answers: What a user answers, in turn and from the beginning again.
        llm: The model.
        grants: What the host grants; None means all that the tools ask for.
        trusted: Whether the host trusts its tools.
        toolsets: Further tools, for those that call others.
        prepare: Makes real what an example can only name, such as a handle.
        seconds: How long one example may take.
    """

    files: Mapping[str, str | bytes | None] = attrs.field(factory=dict)
    variables: Mapping[str, Any] = attrs.field(factory=dict)
    secrets: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    answers: Sequence[str] = ("an answer",)
    llm: LLM | None = attrs.field(factory=Parrot)
    grants: Sequence[str] | None = None
    trusted: bool = False
    toolsets: Sequence[Toolset] = ()
    prepare: Prepare | None = None
    seconds: float = 10.0

    def __attrs_post_init__(self) -> None:
        require_fields("setup", self, **FORMS)

    @contextmanager
    def world(self, tools: Iterable[ToolImplementation]) -> Iterator[World]:
        """Lend a new world with an engine of these tools; it is gone afterwards.

        Warnings are ignored in it: a test runner may make errors of them, and hosts do not.
        """
        given: tuple[ToolImplementation, ...] = as_tuple(tools)
        require("setup", tools=(given, IMPLEMENTATIONS))
        with TemporaryDirectory(prefix="neuroscript-laws-") as place, warnings.catch_warnings(action="ignore"):
            root = Path(place)
            write_files(root, self.files)
            out = StringIO()
            host = Host(
                stdout=out,
                stderr=StringIO(),
                prompter=_Answers(self.answers),
                sandbox_dir=root,
                llm=self.llm,
                variables=self.variables,
                secrets=self.secrets,
            )
            grants = granted(given) if self.grants is None else self.grants
            policy = ExecutionPolicy(grants=tuple(grants), trusted=self.trusted, limits=Limits(sleep=SLEEP))
            with Engine(host=host, policy=policy, plugins="none", toolsets=self.toolsets) as engine:
                engine.register(Toolset("laws", given))
                yield World(engine, root, out)


FILES: Final = mapping(
    Form("a string, bytes or None", lambda content: content is None or isinstance(content, (str, bytes))), "files"
)
IMPLEMENTATIONS: Final = collection(instance(ToolImplementation), "ToolImplementations")
FORMS: Final = {
    "files": FILES,
    "variables": BY_NAME,
    "secrets": mapping(STRING, "strings"),
    "answers": sequence(STRING, "strings"),
    "llm": optional(MODEL),
    "grants": optional(STRINGS),
    "trusted": FLAG,
    "toolsets": sequence(instance(Toolset), "Toolsets"),
    "prepare": optional(FUNCTION),
    "seconds": SECONDS,
}


def toolsets_of(subject: str, toolsets: Toolset | Sequence[Toolset]) -> tuple[Toolset, ...]:
    """Return one toolset or several as a tuple.

    Raises:
        SpecError: It is something else.
    """
    sets = (toolsets,) if isinstance(toolsets, Toolset) else toolsets
    require(subject, toolsets=(sets, FORMS["toolsets"]))
    return tuple(sets)


@attrs.frozen(eq=False, repr=False)
class World:
    """An engine, its sandbox, and what its tools print."""

    engine: Engine
    root: Path
    out: StringIO

    def state(self) -> tuple[Any, ...]:
        """Return what there is, in a form that can be compared: files with their contents, and variables."""
        files = {str(path): path.read_bytes() if path.is_file() else None for path in sorted(self.root.rglob("*"))}
        variables = self.engine.memory.variables
        return files, {name: repr(variables.get(name, None)) for name in variables}


class _Answers:
    """A user who gives the same answers over and over."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = tuple(answers)
        self._asked = 0

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self._asked += 1
        return self._answers[(self._asked - 1) % len(self._answers)]


def granted(tools: Iterable[ToolImplementation]) -> tuple[str, ...]:
    """Return grants for all that these tools can ask for."""
    needs = (need for tool in tools for need in tool.policy.capabilities)
    return tuple(sorted({f"{need.partition(':')[0]}:*:*" for need in needs}))


def write_files(root: Path, files: Mapping[str, str | bytes | None]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    for path in root.rglob("*"):
        os.utime(path, (MOMENT, MOMENT))
