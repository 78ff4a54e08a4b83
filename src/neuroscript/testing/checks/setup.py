"""The environment in which examples run: files, variables, secrets, answers and a model provided by the host."""

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
    mapping_form,
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
from neuroscript.testing.isolated import isolation_of_tests
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

FILE_TIME: Final = 1_700_000_000
"""The modification time of every file in the sandbox, in seconds since 1970-01-01 UTC."""

SLEEP: Final = Decimal("0.2")
"""Seconds that tools may sleep in one environment, so that random argument values do not cause long waits."""

Prepare = Callable[[Engine, str, Any], Any]
"""Takes an engine, the name of a tool and the arguments of an example, and returns the arguments to call it with."""


class EchoModel:
    """A model that repeats its input in capitals, and requests each tool with the arguments of its first example."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the text of the last turn in capitals."""
        return Turn("assistant", turns[-1].content.upper())

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Request a call of each tool."""
        calls = (ToolCall(tool.full_name, _first_args(tool), id=tool.name) for tool in tools)
        return Turn("assistant", "I would", tool_calls=tuple(calls))

    def embed(self, text: str) -> Sequence[float]:
        """Return two numbers."""
        return [float(len(text)), 0.5]


def _first_args(tool: ToolSpec) -> Any:
    return tool.examples[0].args if tool.examples else ()


@attrs.frozen(kw_only=True)
class Setup:
    """The environment that the examples of a toolset need. Each example runs in a new copy of it.

    Attributes:
        files: The files in the sandbox by path, as strings or bytes; None is a directory. Strings are written as UTF-8.
        variables: The caller's variables.
        secrets: The secrets of the host, by name.
        answers: The answers of the user, in order and repeated.
        llm: The model.
        grants: The grants of the host; None means everything that the tools need.
        trusted: Whether the host is trusted.
        toolsets: Further toolsets, for tools that call other tools.
        prepare: Replaces placeholders in the arguments of an example, such as handles, by real values.
        seconds: The time limit of one example.
    """

    files: Mapping[str, str | bytes | None] = attrs.field(factory=dict)
    variables: Mapping[str, Any] = attrs.field(factory=dict)
    secrets: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    answers: Sequence[str] = ("an answer",)
    llm: LLM | None = attrs.field(factory=EchoModel)
    grants: Sequence[str] | None = None
    trusted: bool = False
    toolsets: Sequence[Toolset] = ()
    prepare: Prepare | None = None
    seconds: float = 10.0

    def __attrs_post_init__(self) -> None:
        require_fields("setup", self, **FORMS)

    @contextmanager
    def world(self, tools: Iterable[ToolImplementation], *, in_process: bool = False) -> Iterator[World]:
        """Provide a new environment with an engine of these tools, and remove it afterwards.

        Warnings are ignored in it, because a test runner may turn them into errors and hosts do not.

        Args:
            in_process: Whether the functions run in this process even if the toolsets under test are isolated.
        """
        given: tuple[ToolImplementation, ...] = as_tuple(tools)
        require("setup", tools=(given, IMPLEMENTATIONS), in_process=(in_process, FLAG))
        with TemporaryDirectory(prefix="neuroscript-checks-") as place, warnings.catch_warnings(action="ignore"):
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
            grants = grants_for(given) if self.grants is None else self.grants
            isolated = isolation_of_tests()
            isolate = None if isolated is None else isolated.settings(() if in_process else given)
            policy = ExecutionPolicy(
                grants=tuple(grants), trusted=self.trusted, limits=Limits(sleep=SLEEP), isolate=isolate
            )
            with Engine(host=host, policy=policy, plugins="none", toolsets=self.toolsets) as engine:
                if isolated is None or in_process:
                    engine.register(Toolset("checks", given))
                else:
                    isolated.register(engine, given)
                yield World(engine, root, out)


FILES: Final = mapping_form(
    Form("a string, bytes or None", lambda content: content is None or isinstance(content, (str, bytes))), "files"
)
IMPLEMENTATIONS: Final = collection(instance(ToolImplementation), "ToolImplementations")
FORMS: Final = {
    "files": FILES,
    "variables": BY_NAME,
    "secrets": mapping_form(STRING, "strings"),
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
        SpecError: If it is neither.
    """
    sets = (toolsets,) if isinstance(toolsets, Toolset) else toolsets
    require(subject, toolsets=(sets, FORMS["toolsets"]))
    return tuple(sets)


@attrs.frozen(eq=False, repr=False)
class World:
    """An engine, its sandbox, and the output of its tools."""

    engine: Engine
    root: Path
    out: StringIO

    def state(self) -> tuple[Any, ...]:
        """Return the files with their contents, and the variables, in a form that can be compared."""
        files = {str(path): path.read_bytes() if path.is_file() else None for path in sorted(self.root.rglob("*"))}
        variables = self.engine.memory.variables
        return files, {name: repr(variables.get(name, None)) for name in variables}


class _Answers:
    """A user who repeats a list of answers."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = tuple(answers)
        self._answer_count = 0

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self._answer_count += 1
        return self._answers[(self._answer_count - 1) % len(self._answers)]


def grants_for(tools: Iterable[ToolImplementation]) -> tuple[str, ...]:
    """Return grants for everything that these tools need."""
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
        os.utime(path, (FILE_TIME, FILE_TIME))
