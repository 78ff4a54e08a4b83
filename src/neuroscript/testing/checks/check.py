"""All contract checks for all tools of a toolset, as one report or as separate cases for a test runner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from neuroscript.coercion.parameters import (
    FLAG,
    STRING,
    STRINGS,
    WHOLE,
    instance,
    optional,
    require,
    require_fields,
    sequence,
)
from neuroscript.errors import SpecError
from neuroscript.testing.checks import behaviour, contract, shipping, side_effects
from neuroscript.testing.checks.check_case import ContractCheck, Violation
from neuroscript.testing.checks.setup import Setup, toolsets_of
from neuroscript.testing.checks.trials import Bench
from neuroscript.testing.isolated import isolation_of_tests
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

CHECKS: Final[tuple[ContractCheck, ...]] = (*contract.CHECKS, *behaviour.CHECKS, *side_effects.CHECKS, *shipping.CHECKS)
"""Every contract check, in the order in which they run."""

WORKER_IMPORT: Final = ContractCheck(
    "worker-import",
    "A worker process can import the function of a tool.",
    lambda bench, tool: filter(None, [bench.unimportable.get(tool.name, "")]),
)
"""The check of an isolated tool that no worker can import; other checks of this tool cannot run."""

BY_NAME: Final = {check.name: check for check in (*CHECKS, WORKER_IMPORT)}


SETUP: Final = optional(instance(Setup))
VIOLATIONS: Final = sequence(instance(Violation), "Violations")


class ChecksFailed(AssertionError):
    """A toolset fails contract checks; the message has a line for each tool and check.

    Attributes:
        report: The whole report.
    """

    def __init__(self, report: Report) -> None:
        require("ChecksFailed", report=(report, instance(Report)))
        super().__init__(str(report))
        self.report = report


@attrs.frozen
class Report:
    """The result of checking a toolset.

    Attributes:
        toolset: The name of the toolset.
        check_count: The number of checks that were run, one per check and tool.
        violations: The failed checks, in the order of tools and checks.
    """

    toolset: str
    check_count: int
    violations: tuple[Violation, ...]

    def __attrs_post_init__(self) -> None:
        require_fields("report", self, toolset=STRING, check_count=WHOLE, violations=VIOLATIONS)

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.violations

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """The unique names of the checks that failed."""
        return tuple(dict.fromkeys(each.check for each in self.violations))

    def __str__(self) -> str:
        head = f"{self.toolset}: {len(self.violations)} of {self.check_count} contract checks failed"
        lines = (f"{each}\n    rule: {BY_NAME[each.check].sentence}" for each in self.violations)
        return "\n".join([head, *lines])


@attrs.frozen(eq=False)
class CheckCase:
    """One contract check of one tool, or of all tools together.

    Attributes:
        contract_check: The check.
        tool: The tool, or None for a check of all tools.
    """

    contract_check: ContractCheck
    tool: ToolImplementation | None
    _bench: Bench

    @property
    def subject(self) -> str:
        """The name of the tool, or the common name of all tools."""
        return self._bench.name if self.tool is None else self.tool.name

    def faults(self) -> tuple[str, ...]:
        """Return the problems found, as sentences; none if a check that this one depends on fails."""
        key = f"{self.contract_check.name} {self.subject}"
        if key not in self._bench.found:
            applies = not any(self._presumed(name).faults() for name in self.contract_check.presumes)
            self._bench.found[key] = (
                tuple(dict.fromkeys(self.contract_check.check(self._bench, self.tool))) if applies else ()
            )
        found: tuple[str, ...] = self._bench.found[key]
        return found

    def check(self) -> None:
        """Raise a `ChecksFailed` if the check fails."""
        faults = self.faults()
        if faults:
            raise ChecksFailed(
                Report(self._bench.name, 1, (Violation(self.contract_check.name, self.subject, faults),))
            )

    def _presumed(self, name: str) -> CheckCase:
        check = BY_NAME[name]
        return CheckCase(check, None if check.of_all else self.tool, self._bench)

    def __str__(self) -> str:
        return f"{self.subject}-{self.contract_check.name}"


def checks_for(
    toolsets: Toolset | Sequence[Toolset],
    setup: Setup | None = None,
    *,
    without: Collection[str] = (),
    name: str = "",
) -> tuple[CheckCase, ...]:
    """Return each contract check with each tool that it applies to, without running any.

    Args:
        toolsets: One toolset, or several that are delivered together.
        setup: The environment that the examples need.
        without: Names of checks to skip.
        name: The common name of the toolsets.

    Raises:
        SpecError: If *without* contains an unknown name.
    """
    sets = toolsets_of("checks", toolsets)
    require("checks", setup=(setup, SETUP), without=(without, STRINGS), name=(name, STRING))
    unknown = sorted(set(without) - BY_NAME.keys())
    if unknown:
        raise SpecError("contract checks", [f"unknown check {each}" for each in unknown])
    tools = tuple(tool for each in sets for tool in each)
    isolated = isolation_of_tests()
    faults = {} if isolated is None else {tool.name: isolated.fault(tool) for tool in tools}
    unimportable = {tool: fault for tool, fault in faults.items() if fault}
    usable = tuple(tool for tool in tools if tool.name not in unimportable)
    bench = Bench(name or " ".join(each.name for each in sets), usable, setup or Setup(), sets, unimportable)
    return tuple(_cases([check for check in CHECKS if check.name not in without], tools, bench))


def _cases(checks: Iterable[ContractCheck], tools: Sequence[ToolImplementation], bench: Bench) -> Iterator[CheckCase]:
    checks = tuple(checks)
    for tool in tools:
        if tool.name in bench.unimportable:
            yield CheckCase(WORKER_IMPORT, tool, bench)
        else:
            yield from (CheckCase(check, tool, bench) for check in checks if not check.of_all)
    yield from (CheckCase(check, None, bench) for check in checks if check.of_all)


def check_toolset(
    toolsets: Toolset | Sequence[Toolset],
    setup: Setup | None = None,
    *,
    without: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Run every contract check for every tool through a real engine, and return a report.

    Args:
        toolsets: One toolset, or several that are delivered together.
        setup: The environment that the examples need.
        without: Names of checks to skip.
        raises: Whether to raise an error if a check fails.

    Raises:
        ChecksFailed: If a check fails. The error lists every violation.
        SpecError: If *without* contains an unknown name.
    """
    require("checks", raises=(raises, FLAG))
    cases = checks_for(toolsets, setup, without=without)
    found = tuple(Violation(case.contract_check.name, case.subject, case.faults()) for case in cases if case.faults())
    report = Report(cases[0]._bench.name, len(cases), found)
    if raises and found:
        raise ChecksFailed(report)
    return report
