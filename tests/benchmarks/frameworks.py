"""Compare entry points and shapes of calls with other frameworks: ``python -m tests.benchmarks.frameworks``.

It prints a Markdown table in microseconds: each way to call a tool of ours, and the same work through pydantic, msgspec,
FastMCP, pydantic-ai and LangChain. ``--write`` also updates the table and the picture of
``docs/explanation/performance.md``.

All statements run on one event loop, in batches in turn; the minimum counts. FastMCP and pydantic-ai get coroutine
functions, because they call other functions on a thread, which takes longer.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, get_type_hints

import attrs
import msgspec
from fastmcp.tools import Tool as FastMCPTool
from langchain_core.tools import StructuredTool
from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from neuroscript import Engine, ToolCall
from neuroscript.calls.codegen import GLOBALS, CodeWriter, write_positional_binding

from . import awaited, cases, harness, peers
from .harness import Seconds, Statement

PAGE: Final = Path(__file__).parents[2] / "docs" / "explanation" / "performance.md"
PICTURE: Final = PAGE.with_name("performance.svg")
BEGIN, END = "<!-- frameworks: begin -->\n", "<!-- frameworks: end -->\n"
LIBRARIES: Final = ("pydantic", "msgspec", "fastmcp", "pydantic-ai-slim", "langchain-core")


@attrs.frozen(eq=False)
class Shape:
    """The arguments of a call.

    Attributes:
        title: Its heading in the table.
        tool: The tool, and the function of `peers`.
        args: The arguments by name.
        result: The result of the call.
    """

    title: str
    tool: str
    args: dict[str, Any]
    result: int


SHAPES: Final = (
    Shape("two ints", "two", {"a": 2, "b": 3}, 5),
    Shape('two ints, as `"2"` and `3.0`', "two", {"a": "2", "b": 3.0}, 5),
    Shape("a string and three tags", "tags", {"text": "a word", "tags": ["red", "green", "blue"]}, 3),
    Shape("eight scalars", "eight", dict(zip("abcdefgh", cases.EIGHT, strict=True)), 7),
    Shape("1,000 maps of four keys", "rows", {"items": cases.ROWS}, 1_000),
    Shape("100 orders of five lines", "orders", {"items": cases.ORDERS}, 100),
)

Make = Callable[[Shape], Statement]


def engine() -> Engine:
    """Return the engine of the benchmarks."""
    return Engine(toolsets=[cases.toolset()], policy=cases.POLICY)


def entry_points(host: Engine) -> dict[str, Make]:
    """Return the ways to call a tool of ours."""

    def entry(code: str, given: Callable[[Shape], Any]) -> Make:
        return lambda shape: Statement(
            code.replace("NAME", f"bench.{shape.tool}"), {"engine": host, "given": given(shape)}
        )

    return {
        "`engine.call`, in order": entry("engine.call('NAME', given)", lambda shape: tuple(shape.args.values())),
        "`engine.call_named`": entry("engine.call_named('NAME', given)", lambda shape: shape.args),
        "`engine.execute`": entry(
            "engine.execute(given).value", lambda shape: ToolCall(f"bench.{shape.tool}", shape.args)
        ),
        "`engine.execute`, JSON text": entry(
            "engine.execute(given).value", lambda shape: ToolCall(f"bench.{shape.tool}", json.dumps(shape.args))
        ),
        "`await engine.acall`": entry(
            "await engine.acall('NAME', given)", lambda shape: tuple(shape.args.values())
        ),
    }  # fmt: skip


def frameworks() -> dict[str, Make]:
    """Return the same work through other libraries."""
    return {
        "pydantic, `validate_call`": lambda shape: Statement(
            "guarded(**given)", {"guarded": peers.GUARDED[shape.tool], "given": shape.args}
        ),
        "msgspec, `convert` and the function": lambda shape: Statement(
            "func(*astuple(convert(given, fields, strict=False)))",
            {
                "func": function_of(shape),
                "astuple": msgspec.structs.astuple,
                "convert": msgspec.convert,
                "fields": msgspec.defstruct("Arguments", [*hints_of(shape).items()]),
                "given": shape.args,
            },
        ),
        "FastMCP, `Tool.run`": lambda shape: Statement(
            "(await tool.run(given)).structured_content['result']",
            {"tool": FastMCPTool.from_function(coroutine_of(shape)), "given": shape.args},
        ),
        "pydantic-ai, `FunctionToolset.call_tool`": pydantic_ai,
        "LangChain, `StructuredTool.invoke`": lambda shape: Statement(
            "tool.invoke(given)",
            {
                "tool": StructuredTool.from_function(function_of(shape), description=shape.tool),
                "given": shape.args,
            },
        ),
    }


def pydantic_ai(shape: Shape) -> Statement:
    """Return the call of a tool as an agent of pydantic-ai makes it, with the validation of its arguments."""
    toolset: Any = FunctionToolset([coroutine_of(shape)])
    context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    tool = asyncio.run(toolset.get_tools(context))[shape.tool]
    return Statement(
        f"await toolset.call_tool('{shape.tool}', validate(given), context, tool)",
        {
            "toolset": toolset,
            "validate": tool.args_validator.validate_python,
            "context": context,
            "tool": tool,
            "given": shape.args,
        },
    )


def function_of(shape: Shape) -> Callable[..., Any]:
    """Return the function that does the work of a tool."""
    func: Callable[..., Any] = getattr(peers, shape.tool)
    return func


def hints_of(shape: Shape) -> dict[str, Any]:
    """Return the types of its parameters by name."""
    return {name: kind for name, kind in get_type_hints(function_of(shape)).items() if name != "return"}


def coroutine_of(shape: Shape) -> Callable[..., Any]:
    """Return that function as a coroutine function."""
    func = function_of(shape)

    @functools.wraps(func)
    async def wrapped(*args: Any, **named: Any) -> Any:
        return func(*args, **named)

    return wrapped


Statements = dict[tuple[str, Shape], Statement]
"""The code of each cell of the table, by row and column."""


def wrong_results(statements: Statements) -> list[str]:
    """Return the cells whose code does not return the result of its shape."""
    return asyncio.run(_wrong_results(statements))


async def _wrong_results(statements: Statements) -> list[str]:
    found = []
    for (title, shape), statement in statements.items():
        names: dict[str, Any] = dict(statement.names)
        exec(f"async def once():\n    return {statement.code}", names)
        if await names["once"]() != shape.result:
            found.append(f"{title}, {shape.title}")
    return found


def table(titles: Sequence[str], least: Mapping[tuple[str, Shape], Seconds]) -> list[str]:
    """Return the lines of a Markdown table, in microseconds."""
    lines = [f"| µs | {' | '.join(shape.title for shape in SHAPES)} |", f"|---|{'---:|' * len(SHAPES)}"]
    for title in titles:
        cells = (as_microseconds(least[title, shape].wall) for shape in SHAPES)
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def as_microseconds(seconds: float) -> str:
    """Return a time with two or three digits.

    >>> as_microseconds(0.000_000_423), as_microseconds(0.001_234)
    ('0.42', '1,234')
    """
    number = seconds * 1e6
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def machine() -> str:
    """Return a sentence with the processor and the versions."""
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{platform.system()}, {cpu}, Python {platform.python_version()}, {versions}."


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# The picture

STEPS: Final = (
    ("the function itself", "func(rt, 2, 3)"),
    ("the frame of the compiled function", "framed((2, 3))"),
    ("arguments unpacked", "unpacked((2, 3))"),
    ("both checked", "checked((2, 3))"),
    ("a Runtime made and closed", "revoked((2, 3))"),
    ("the result checked", "compiled((2, 3))"),
    ("the tool looked up by name", "engine.call('bench.two', (2, 3))"),
)
"""Each step of a call of two ints, and code that executes it with all earlier steps."""

IN_RUNTIME: Final = (
    "rt = Runtime()",
    "rt._frame = frame",
    "try:",
    "    result = func(rt, a0, a1)",
    "finally:",
    "    rt._frame = None",
    "return result",
)


def steps(host: Engine) -> dict[str, Seconds]:
    """Return the minimum time of each step with all earlier ones."""
    names = step_names(host)
    return harness.fastest({title: Statement(code, names) for title, code in STEPS})


def step_names(host: Engine) -> dict[str, Any]:
    """Return what the code of the steps refers to: functions that do what the compiled one does, up to a step."""
    known = host._entry("bench.two")
    pipeline, source = known.pipeline, CodeWriter()
    write_positional_binding(pipeline.tool.spec, pipeline.coercion, source, "return None")
    first = next(index for index, text in enumerate(source.lines) if "type(a0) is int" in text)
    bodies = {
        "framed": ["return func(rt, 2, 3)"],
        "unpacked": [*source.lines[:first], "return func(rt, a0, a1)"],
        "checked": [*source.lines, "return func(rt, a0, a1)"],
        "revoked": [*source.lines, *IN_RUNTIME],
    }
    names: dict[str, Any] = {"func": cases.two, "rt": object(), "Runtime": pipeline.runtime, "engine": host, **GLOBALS}
    names |= {f"k{index}": each for index, each in enumerate(source.objects)}
    for name, body in bodies.items():
        exec("\n    ".join([f"def {name}(given, frame=None):", *body]), names)
    return names | {"compiled": known.function(False)}


COLORS: Final = ("#4e79a7", "#f28e2b", "#76b7b2", "#59a14f", "#e15759", "#b07aa1", "#9c755f")
WIDTH, BAR, LEFT = 720, 22, 250


def picture(least: Mapping[str, Seconds]) -> str:
    """Return an SVG with a bar for each step, which begins where the one before ends."""
    total = least[STEPS[-1][0]].wall * 1e9
    height = BAR * len(STEPS) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>Where the {total:.0f} ns of a call of two ints go</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    scale, before = (WIDTH - LEFT - 80) / total, 0.0
    for index, (title, _) in enumerate(STEPS):
        until = max(before, least[title].wall * 1e9)
        top = 10 + index * BAR
        x, width = LEFT + before * scale, max(1.0, (until - before) * scale)
        parts += [
            f'<text x="{LEFT - 10}" y="{top + 15}" text-anchor="end" fill="#222222">{title}</text>',
            f'<rect x="{x:.1f}" y="{top + 2}" width="{width:.1f}" height="{BAR - 4}" fill="{COLORS[index]}"/>',
            f'<text x="{x + width + 6:.1f}" y="{top + 15}" fill="#222222">{until - before:.0f} ns</text>',
        ]
        before = until
    parts.append(f'<text x="{LEFT}" y="{height - 10}" fill="#222222">{total:.0f} ns in all</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.frameworks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="how often each batch runs")
    parser.add_argument("--write", action="store_true", help="update the page")
    options = parser.parse_args(words)
    with engine() as host:
        makers = {**entry_points(host), **frameworks()}
        statements = {(title, shape): make(shape) for title, make in makers.items() for shape in SHAPES}
        if wrong := wrong_results(statements):
            print(f"a wrong result: {'; '.join(wrong)}", file=sys.stderr)
            return 1
        lines = table([*makers], awaited.fastest(statements, rounds=options.rounds))
        drawing = picture(steps(host))
    text = "\n".join([*lines, "", machine(), ""])
    print(text)
    if options.write:
        page = PAGE.read_text()
        head, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
        PICTURE.write_text(drawing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
