"""A pytest plugin with fixtures for toolsets, and ``--neuroscript-toolset DIST`` to run the contract checks.

Until one of them is used, it imports nothing of this project except the root package.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from neuroscript.engine.engine import Engine
    from neuroscript.policy.isolation import Isolation
    from neuroscript.testing.checks.check import CheckCase
    from neuroscript.testing.fake import FakeRuntime

OPTION = "--neuroscript-toolset"
ISOLATED = "--neuroscript-isolated"
PARTS = ("functions", "programs")


class Hooks:
    """The hooks that the tests of a distribution can implement for this plugin."""

    @pytest.hookspec(firstresult=True)
    def pytest_neuroscript_setup(self, distribution: str) -> Any:
        """Return the `neuroscript.testing.Setup` of a distribution's examples. Implement it in ``conftest.py``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("neuroscript").addoption(
        OPTION,
        action="append",
        default=[],
        metavar="DIST",
        help="run the contract checks of neuroscript.testing on an installed distribution; can be repeated",
    )
    parser.getgroup("neuroscript").addoption(
        ISOLATED,
        nargs="?",
        const=PARTS[0],
        type=_isolated_part,
        metavar="PART",
        help="run the functions of the toolsets under test in worker processes, as a host that isolates them does; "
        "with 'programs', only the programs that they start with rt.confine are confined",
    )


def _isolated_part(value: str) -> str:
    if value not in PARTS:
        raise ArgumentTypeError(
            f"expected {' or '.join(PARTS)}, got {value}; before a path, write {ISOLATED}={PARTS[0]}"
        )
    return value


def pytest_configure(config: pytest.Config) -> None:
    """Isolate the toolsets under test, or confine their programs, if the option says so."""
    part = config.getoption(ISOLATED)
    if part:
        from neuroscript.testing.isolated import CURRENT, IsolatedTests

        isolated = IsolatedTests(programs=part == "programs")
        CURRENT.set(isolated)
        config.add_cleanup(isolated.close)
        config.add_cleanup(isolated.isolate_engines())


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook."""
    pluginmanager.add_hookspecs(Hooks)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test item for each check and tool of the distributions that the option names."""
    for name in config.getoption(OPTION):
        items.extend(Distribution.from_parent(session, name=name, nodeid=name).collect())


class Distribution(pytest.Collector):
    """The toolsets of one installed distribution."""

    def collect(self) -> list[pytest.Item]:
        """Return a test item for each check and tool.

        Raises:
            pytest.UsageError: If the distribution is not installed or provides no usable toolset.
        """
        from neuroscript.errors import PluginError
        from neuroscript.testing.checks.check import checks_for
        from neuroscript.testing.installed import installed_toolsets

        try:
            toolsets = installed_toolsets(self.name)
        except PluginError as error:
            raise pytest.UsageError(f"{OPTION}: {error}") from None
        setup = self.config.hook.pytest_neuroscript_setup(distribution=self.name)
        cases = checks_for(toolsets, setup, name=self.name)
        return [
            CheckItem.from_parent(self, name=f"{case.subject}[{case.contract_check.name}]", case=case) for case in cases
        ]


class CheckItem(pytest.Item):
    """One contract check of one tool."""

    def __init__(self, *, case: CheckCase, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case

    def runtest(self) -> None:
        """Run the check."""
        self.case.check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Return the problems found by the check, or the traceback of any other error."""
        from neuroscript.testing.checks.check import ChecksFailed

        if not isinstance(excinfo.value, ChecksFailed):
            return str(super().repr_failure(excinfo, style))
        faults = [fault for each in excinfo.value.report.violations for fault in each.faults]
        title = f"{self.case.subject} fails the contract check {self.case.contract_check.name}:"
        return "\n".join([title, *(f"  {fault}" for fault in faults), f"Rule: {self.case.contract_check.sentence}"])

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location shown for the test item."""
        return Path(self.parent.name if self.parent else ""), None, self.name


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """An empty directory for the files of tools."""
    path = tmp_path / "sandbox"
    path.mkdir()
    return path


@pytest.fixture
def runtime() -> Iterator[FakeRuntime]:
    """A `FakeRuntime` with an empty script, closed at the end of the test."""
    from neuroscript.testing.fake import FakeRuntime

    with FakeRuntime() as rt:
        yield rt


@pytest.fixture(scope="session")
def isolate(request: pytest.FixtureRequest) -> Isolation | tuple[str, ...]:
    """What ``--neuroscript-isolated`` isolates, for `ExecutionPolicy`: all tools, all programs of tools, or nothing."""
    part = request.config.getoption(ISOLATED)
    if part == "programs":
        from neuroscript.testing.isolated import CONFINED_PROGRAMS

        return CONFINED_PROGRAMS
    return ("*",) if part else ()


@pytest.fixture
def engine(sandbox: Path, isolate: Isolation | tuple[str, ...]) -> Iterator[Engine]:
    """An engine without tools that grants everything within `sandbox`; a test registers its own."""
    from neuroscript.engine.engine import Engine
    from neuroscript.policy.execution_policy import ExecutionPolicy
    from neuroscript.runtime.host import Host

    policy = ExecutionPolicy(grants=["*:*:*"], isolate=isolate)
    with Engine(host=Host(sandbox_dir=sandbox), policy=policy, plugins="none") as engine:
        yield engine
