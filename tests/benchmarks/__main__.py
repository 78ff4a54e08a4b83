"""Measure the engine against its peers and its goals: ``python -m tests.benchmarks``.

It prints a table and exits 1 if a goal is missed. The goals apply to Python 3.11; other versions are only reported. A
ratio is our time divided by the peer's time, where both are minima of many short batches of one run. Rows whose peer is
not installed (the ``bench`` extra) are skipped, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import attrs

from neuroscript import Engine

from . import awaited, cases, discovery, exporting, flow, harness, isolation, promises, startup
from .cases import Case
from .harness import Seconds, Statement

HEADINGS = ("case", "compared with", "ours ns", "peer ns", "ratio", "goal", "")


@attrs.frozen
class Row:
    """The result of one case.

    Attributes:
        group: Its part of the table.
        name: What was measured.
        peer: What it was compared with.
        ours: Nanoseconds; None if it was skipped.
        theirs: Nanoseconds; None if it was skipped.
        ratio: Our time over the peer's, in some rows without the time of a bare interpreter; None if it was skipped.
        goal: The maximum ratio; None if it is only reported.
        missing: The reason why it was skipped.
    """

    group: str
    name: str
    peer: str
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    goal: float | None = None
    missing: str = ""

    @property
    def verdict(self) -> str:
        """``ok``, ``MISSED``, ``skipped`` with the reason, or empty without a goal."""
        if self.ratio is None:
            return f"skipped: {self.missing}"
        if self.goal is None:
            return ""
        return "ok" if self.ratio <= self.goal else "MISSED"


def main(words: Sequence[str] | None = None) -> int:
    """Measure what *words* select, print it, and return the exit code."""
    options = _parser().parse_args(words)
    started = perf_counter()
    engine = Engine(toolsets=[cases.toolset(), promises.toolset()], policy=cases.POLICY)
    if broken := promises.unkept(engine):
        print(f"not what the contract says: {'; '.join(broken)}", file=sys.stderr)
        return 1
    rows = measured(engine, options.case, quick=options.quick)
    if options.json:
        facts = [attrs.asdict(row) | {"verdict": row.verdict} for row in rows]
        options.json.write_text(json.dumps({"python": platform.python_version(), "rows": facts}, indent=1))
    return report(rows, perf_counter() - started) | compare_annotations(options.case)


def compare_annotations(globs: Sequence[str]) -> int:
    """Print which annotations other frameworks accept, if that is selected and they are installed."""
    if not _matches("annotations: comparison", globs):
        return 0
    if missing := [name for name in ("fastmcp", "pydantic_ai") if find_spec(name) is None]:
        print(f"\nannotations: skipped: {', '.join(missing)} not installed")
        return 0
    from . import annotations  # it makes classes of the libraries that it compares with

    print()
    return annotations.main()


def report(rows: Sequence[Row], seconds: float, version: tuple[int, int] = sys.version_info[:2]) -> int:
    """Print the results for a *version* of Python, and return the exit code."""
    note = "" if version == cases.GOALS_FOR else "; the goals are those of Python 3.11 and do not bind here"
    print(f"Python {platform.python_version()}{note}\n")
    for line in table(rows):
        print(line)
    missed = [row for row in rows if row.verdict == "MISSED"]
    print(f"\n{len(rows)} cases, {len(missed)} goals missed, {seconds:.0f} s")
    return 1 if missed and version == cases.GOALS_FOR else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("case", nargs="*", help="globs over 'group: case', as the table has them; all without one")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too")
    return parser


def measured(engine: Engine, globs: Sequence[str] = (), *, quick: bool = False) -> list[Row]:
    """Return a row for each case that matches a glob, or for all cases without globs."""

    def fastest(statements: Mapping[int, Statement]) -> Mapping[int, Seconds]:
        return harness.fastest(statements, most=60 if quick else 600)

    with TemporaryDirectory() as folder:
        watched = cases.watched_cases(Path(folder) / "audit.jsonl")
        found = [*cases.against_pydantic(engine), *watched, *cases.own_cases(engine)]
        rows = rows_of(_chosen(found, globs), fastest)
    if _matches("registry: look-up among 100,000", globs):  # last, because so many tools change how memory is allocated
        rows += rows_of(cases.registry_cases(), fastest)
    chosen = _chosen(cases.against_fastmcp(engine), globs)
    rows += rows_of(chosen, lambda statements: awaited.fastest(statements, rounds=6 if quick else 30))
    if any(_matches(f"start-up: {name}", globs) for name in ("one call", "list")):
        rows += startup_rows(startup.fastest(9 if quick else 21))
    if any(_matches(f"schemas: {name}", globs) for name in ("1,000 tools", "1,000 tools again")):
        rows += schema_rows(exporting.fastest(5 if quick else 15))
    rows += flow_rows(globs, rounds=3 if quick else 10)
    rows += isolation_rows(globs, rounds=3 if quick else 10)
    for api, write in exporting.WRITERS.items():
        if any(_matches(f"models: 1,000 tools for {api}{again}", globs) for again in ("", " again")):
            rows += export_rows(api, exporting.fastest(5 if quick else 15, write))
    with TemporaryDirectory() as folder:
        return rows + discovery_rows(Path(folder), globs, rounds=5 if quick else 15)


def flow_rows(globs: Sequence[str], *, rounds: int) -> list[Row]:
    """Return the rows for indexing labelled results and searching them; these are compared with a time."""
    sides: list[tuple[str, Callable[[], Seconds], float]] = []
    for kind in flow.TEXTS:
        sides.append((f"index 1 MiB of {kind}", partial(flow.index_seconds, kind, rounds), flow.INDEX_GOAL_SECONDS))
        sides.append((f"search 4 MiB of {kind}", partial(flow.search_seconds, kind, rounds), flow.SEARCH_GOAL_SECONDS))
    for case in flow.WORST:
        sides.append((f"search {case}", partial(flow.worst_seconds, case, rounds), flow.WORST_GOAL_SECONDS))
    return [timed("flow", name, measure(), most) for name, measure, most in sides if _matches(f"flow: {name}", globs)]


def isolation_rows(globs: Sequence[str], *, rounds: int) -> list[Row]:
    """Return the rows for calls in workers; these are compared with a time."""
    return [
        timed("isolation", name, measure(rounds), most)
        for name, (measure, most) in isolation.CASES.items()
        if _matches(f"isolation: {name}", globs)
    ]


def timed(group: str, name: str, least: Seconds, most: float) -> Row:
    """Return the row of a case that is compared with a time in seconds."""
    return _compared(group, name, f"{most * 1e3:g} ms", least, Seconds(most, most), 1.0)


def schema_rows(least: exporting.Least) -> list[Row]:
    """Return the rows for writing schemas."""
    sides = [
        ("1,000 tools", "json.dumps of their schemas", least.first, least.text, exporting.FIRST_GOAL),
        ("1,000 tools again", "the first time", least.again, least.first, exporting.AGAIN_GOAL),
    ]
    return [
        Row("schemas", name, peer, ours.wall * 1e9, theirs.wall * 1e9, harness.ratio(ours, theirs), goal)
        for name, peer, ours, theirs, goal in sides
    ]


def export_rows(api: str, least: exporting.Least) -> list[Row]:
    """Return the rows for writing tools for a model API."""
    sides = [
        (f"1,000 tools for {api}", "json.dumps of them", least.first, least.text, exporting.FIRST_GOAL),
        (f"1,000 tools for {api} again", "the first time", least.again, least.first, exporting.AGAIN_GOAL),
    ]
    return [
        Row("models", name, peer, ours.wall * 1e9, theirs.wall * 1e9, harness.ratio(ours, theirs), goal)
        for name, peer, ours, theirs, goal in sides
    ]


def _chosen(found: Iterable[Case], globs: Sequence[str]) -> list[Case]:
    return [case for case in found if _matches(f"{case.group}: {case.name}", globs)]


def _matches(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def rows_of(chosen: Sequence[Case], fastest: Callable[[Mapping[int, Statement]], Mapping[int, Seconds]]) -> list[Row]:
    """Return a row for each case, with the times from *fastest* for the cases with a peer."""
    statements = {id(each): each for case in chosen if case.theirs for each in (case.ours, case.theirs)}
    least = fastest(statements)
    return [_row(case, least) for case in chosen]


def _row(case: Case, least: Mapping[int, Seconds]) -> Row:
    if case.theirs is None:
        missing = f"{case.peer.split()[0]} is not installed"
        return Row(case.group, case.name, case.peer, goal=case.goal, missing=missing)
    return _compared(case.group, case.name, case.peer, least[id(case.ours)], least[id(case.theirs)], case.goal)


def _compared(group: str, name: str, peer: str, ours: Seconds, theirs: Seconds, goal: float | None) -> Row:
    ratio = harness.ratio(ours, theirs)
    return Row(group, name, peer, ours.wall * 1e9, theirs.wall * 1e9, ratio, goal)


def startup_rows(least: Mapping[str, Seconds]) -> list[Row]:
    """Return the rows of the measured processes."""
    call = Row("start-up", "one call", "import attrs, pluggy, both less bare Python", goal=startup.CALL_GOAL)
    listed = Row("start-up", "neuroscript list", "bare Python", goal=startup.LIST_GOAL)
    bare = least["bare"].process
    return [_filled(call, least, "one call", "imports", bare), _filled(listed, least, "list", "bare", 0.0)]


def discovery_rows(folder: Path, globs: Sequence[str], *, rounds: int) -> list[Row]:
    """Return the rows about installed distributions, in sites created below a folder."""
    rows: list[Row] = []
    for offering, findings in ((discovery.OFFERING, discovery.FINDINGS), (discovery.MANY, discovery.ALL_OFFER)):
        chosen = [each for each in findings if _matches(f"discovery: {each.name}", globs)]
        is_listed = offering == discovery.OFFERING and _matches("discovery: list of 20 toolsets", globs)
        if chosen or is_listed:
            site = discovery.site(folder, offering)
            least = discovery.fastest(site, chosen, rounds)
            rows += [
                _compared("discovery", each.name, each.peer.name, least[each], least[each.peer], each.goal)
                for each in chosen
            ]
        if is_listed:
            ours, theirs = discovery.listed(site, rounds)
            rows.append(_compared("discovery", "list of 20 toolsets", "bare Python", ours, theirs, discovery.LIST_GOAL))
    return rows


def _filled(row: Row, least: Mapping[str, Seconds], ours: str, theirs: str, bare: float) -> Row:
    if ours not in least or theirs not in least:
        return attrs.evolve(row, missing="the process does not end well")
    above, below = (least[name].process - bare for name in (ours, theirs))
    return attrs.evolve(row, ours=above * 1e9, theirs=below * 1e9, ratio=above / below)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table of *rows*."""
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        left = (cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True))
        right = (cell.rjust(width) for cell, width in zip(cells[2:-1], widths[2:-1], strict=True))
        yield "  ".join([*left, *right, cells[-1]]).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    numbers = ("" if each is None else f"{each:,.0f}" for each in (row.ours, row.theirs))
    return (f"{row.group}: {row.name}", row.peer, *numbers, as_ratio(row.ratio), as_ratio(row.goal), row.verdict)


def as_ratio(ratio: float | None) -> str:
    """Return a ratio in the format of the table; a small one is a fraction."""
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"1/{1 / ratio:.0f}"


if __name__ == "__main__":
    sys.exit(main())
