"""``neuroscript show``: show the arguments, result, policy and examples of one tool."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neuroscript.cli.env.engine import MakeEngine, aliases_of, open_engine, require_tool
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.engine.explanation.tool_sources import isolation_of, isolation_text, source_of
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import inner_rules, label_phrases, return_text, rule_phrase, signature, to_json
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
from neuroscript.tools.serialization import policy_to_data, spec_to_data
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.policy.isolation import IsolationOf

INDENT = 2


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Show one tool and return the exit code.

    Raises:
        ToolNotFound: The tool is unknown.
    """
    with open_engine(make_engine, output, options) as engine:
        tool = require_tool(engine, options.name, is_own=make_engine is None)
        isolation = isolation_of(engine.policy, tool.name, source_of(engine, tool.name))
        if options.json:
            aliases = {"aliases": old} if (old := aliases_of(engine, tool)) else {}
            isolated = {} if isolation is None else {"isolated": isolation.part}
            output.json({"spec": spec_to_data(tool.spec), **policy_to_data(tool.policy), **aliases, **isolated})
        else:
            show(_blocks(tool, aliases_of(engine, tool), isolation), output)
    return OK


def _blocks(tool: ToolImplementation, old: list[str], isolation: IsolationOf | None) -> Iterator[Rows]:
    spec = tool.spec
    yield line(f"{spec.full_name}{signature(spec)}", "name")
    if spec.description:
        yield line(spec.description)
    if spec.deprecated:
        yield line(f"deprecated: {spec.deprecated}", "mended")
    if spec.resource is not None:
        yield line(f"resource: {spec.resource.uri}")
    if spec.prompt is not None:
        yield line("prompt")
    if old:
        yield line(f"alias: {', '.join(old)}")
    if spec.args:
        yield from _titled("arguments", Rows(tuple(_arguments(spec)), indent=INDENT))
    returns = f"{return_text(spec)}: {spec.return_help}" if spec.return_help else return_text(spec)
    yield from _titled("returns", line(returns, indent=INDENT))
    parts = list(inner_rules(spec.returns, "result")) if spec.returns is not None else []
    if parts:
        yield Rows(tuple(_argument(path, key) for path, key in parts), indent=INDENT)
    for title, text in (("when to use", spec.when_to_use), ("errors", spec.error_conditions)):
        if text:
            yield from _titled(title, line(text, indent=INDENT))
    yield from _titled("policy", Rows(tuple(_policy(tool.policy, isolation)), indent=INDENT))
    if spec.examples:
        yield from _titled("examples", Rows(tuple(map(_example, spec.examples)), indent=INDENT))


def _titled(title: str, block: Rows) -> Iterator[Rows]:
    yield from (EMPTY, line(title, "title"), block)


def _arguments(spec: ToolSpec) -> Iterator[tuple[Cell, ...]]:
    for index, arg in enumerate(spec.args):
        yield _argument(arg.name, arg, spec.variadic and index == len(spec.args) - 1)
        yield from (_argument(path, key) for path, key in inner_rules(arg, arg.name))


def _argument(path: str, arg: ArgSpec, further: bool = False) -> tuple[Cell, ...]:
    return cell(path, "name"), cell(rule_phrase(arg, further)), cell(arg.description, "dim")


def _policy(policy: ToolPolicy, isolation: IsolationOf | None) -> Iterator[tuple[Cell, Cell]]:
    needs = [*(["trust"] if policy.requires_trust else []), *policy.capabilities]
    needs.extend(["approval of each call"] if policy.requires_approval else [])
    yield cell("needs"), cell(", ".join(needs) or "nothing", "mended" if needs else "good")
    yield cell("effects"), cell(", ".join(policy.effects) or "not specified")
    yield from ((cell(title), cell(labels)) for title, labels in label_phrases(policy))
    if policy.timeout is not None:
        yield cell("timeout"), cell(f"{policy.timeout:g} s")
    if policy.raw_files:
        yield cell("files"), cell("opens granted files by path")
    if isolation is not None:
        yield cell("isolation"), cell(isolation_text(isolation))


def _example(example: Example) -> tuple[Cell, Cell]:
    note = f"  ({example.note})" if example.note else ""
    return cell(_format_arguments(example.args)), cell(f"{_outcome(example)}{note}", "bad" if example.error else "good")


def _format_arguments(args: Any) -> str:
    return to_json(args) if isinstance(args, dict) else to_json(list(args))


def _outcome(example: Example) -> str:
    if example.error:
        return f"fails: {example.error}"
    return "result varies" if example.result is UNSET else f"returns {to_json(example.result)}"
