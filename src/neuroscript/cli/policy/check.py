"""``neuroscript policy check``: rules that have no effect, and tools that can never run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import attrs

from neuroscript.cli.env.choices import file_of
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import FAILED, OK
from neuroscript.cli.terminal.output import EMPTY, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.engine.explanation.findings import PolicyReport, UnusableTool, check_engine

INDENT: Final = 2


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Print the findings about the policy, and return 1 if a rule has no effect, otherwise 0."""
    file = file_of(vars(options))
    with open_engine(make_engine, output, options) as engine:
        names = frozenset(engine.tools)
        found = check_engine(engine)
    if options.json:
        output.json({"file": file, "profile": options.profile, **attrs.asdict(found)})
    else:
        title = "no policy file, only options" if file is None else file
        title = title if options.profile is None else f"{title}, profile {options.profile}"
        show(_blocks(title, found, names), output)
    return FAILED if found.unused_rules else OK


def _blocks(title: str, found: PolicyReport, names: Collection[str]) -> Iterator[Rows]:
    yield line(title, "title")
    if found.unused_rules:
        yield from (EMPTY, line("rules without effect", "title"))
        rows = ((cell(each.where), cell(each.rule, "name"), cell(each.text, "bad")) for each in found.unused_rules)
        yield Rows(tuple(rows), indent=INDENT)
    if found.unusable_tools:
        yield from (EMPTY, line("tools that can never run", "title"))
        yield from _unusable_blocks(found.unusable_tools, names)
    if found.isolated_tools:
        from neuroscript.engine.explanation.isolation import counts

        yield from (EMPTY, line("isolated tools", "title"))
        yield Rows(
            tuple((cell(origin, "name"), cell(text)) for origin, text in counts(found.isolated_tools)), indent=INDENT
        )
    yield from (EMPTY, line(_in_numbers(found)))


def _unusable_blocks(refused: Iterable[UnusableTool], names: Collection[str]) -> Iterator[Rows]:
    """Yield each tool with its reason; tools that are merely not allowed are many, so they share one line."""
    others = {each.tool for each in refused if each.code == "policy.not_allowed"}
    rows = [(cell(each.tool, "name"), cell(_reason(each))) for each in refused if each.tool not in others]
    if rows:
        yield Rows(tuple(rows), indent=INDENT)
    if others:
        allowed = {_group(name) for name in names if name not in others}
        labels = dict.fromkeys(name if _group(name) in allowed else f"{_group(name)}.*" for name in sorted(others))
        yield line(f"not matched by any allow pattern: {', '.join(labels)}", indent=INDENT)


def _group(name: str) -> str:
    return name.rpartition(".")[0]


def _reason(each: UnusableTool) -> str:
    return f"{each.text} ({each.rule})" if each.rule not in ("grants", "trust", "approval") else each.text


def _in_numbers(found: PolicyReport) -> str:
    unusable, unused = len(found.unusable_tools), len(found.unused_rules)
    tools = f"{found.tools} tool{'s' * (found.tools != 1)}"
    rules = f"{unused} rules have" if unused != 1 else "1 rule has"
    return f"{tools}: {found.tools - unusable} can run, {unusable} cannot; {rules} no effect"
