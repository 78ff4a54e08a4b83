"""Modules that a fresh process loads for one call; ``python -m tests.benchmarks`` measures the time."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.benchmarks.startup import ONE_CALL

KEPT_OUT = [
    "cattrs",
    "platformdirs",
    "pluggy",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "rich",
    "argcomplete",
    "docstring_parser",
    "yaml",
    "openai",
    "anthropic",
    "google",
    "mcp",
    "fastmcp",
    "asyncio",
    "concurrent.futures",
    "importlib.metadata",
    "importlib.resources",
    "multiprocessing",
    "queue",
    "socket",
    "ssl",
    "selectors",
    "argparse",
    "dataclasses",
    "decimal",
    "email",
    "json",
    "logging",
    "pathlib",
    "shutil",
    "sqlite3",
    "subprocess",
    "tempfile",
    "zipfile",
]
"""Packages that are slow to load or optional; a call needs none of them."""

DECORATED_TOOL = """
from neuroscript import Engine, Toolset
tools = Toolset("math")
@tools.tool
def add(a: int, b: int) -> int:
    '''Return the sum of two integers.'''
    return a + b
"""

MAX_OWN_MODULES = {
    "written spec": (ONE_CALL, 41),
    "decorated tool": (
        f"{DECORATED_TOOL}assert Engine(plugins='none', toolsets=[tools]).call('math.add', (2, 3)) == 5",
        43,
    ),
    "installed plugins": (
        f"{DECORATED_TOOL}with Engine(toolsets=[tools]) as engine:\n    assert engine.call('math.add', (2, 3)) == 5.0",
        50,
    ),
    "command list": (
        "import contextlib, io\n"
        "from neuroscript.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    assert main(['list']) == 0",
        25,
    ),
}
"""Code, and the number of project modules that a process may load to run it; each takes between 0.2 and 5 ms."""

MAX_LIBRARY_MODULES = 12
"""The number of standard library modules that one call may load in addition to ``import attrs, pluggy``."""

LOADED = """
import sys
before = set(sys.modules)
{code}
print(*sorted(set(sys.modules) - before))
"""


def loaded(code: str) -> set[str]:
    """Return the modules that a fresh process loads to run *code*."""
    done = subprocess.run([sys.executable, "-c", LOADED.format(code=code)], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def loaded_by_one_call() -> set[str]:
    return loaded(ONE_CALL)


@pytest.fixture(scope="module")
def loaded_by_dependencies() -> set[str]:
    return loaded("import attrs, pluggy")


def test_one_call_loads_no_slow_package(loaded_by_one_call: set[str]) -> None:
    """The process defines a tool without decorators and calls it."""
    assert set() == loaded_by_one_call & set(KEPT_OUT)


def test_one_call_loads_the_engine(loaded_by_one_call: set[str]) -> None:
    """This shows that the test above examines a process that made a call, by complete module names."""
    assert {"neuroscript.engine.engine", "neuroscript.calls.pipeline", "attrs"} <= loaded_by_one_call


def test_one_call_adds_few_library_modules(loaded_by_one_call: set[str], loaded_by_dependencies: set[str]) -> None:
    """The number of modules besides the dependencies must not grow."""
    added = loaded_by_one_call - loaded_by_dependencies
    others = {name for name in added if not is_ours(name)}

    assert len(others) <= MAX_LIBRARY_MODULES, sorted(others)


def is_ours(name: str) -> bool:
    """Return whether a module belongs to this project."""
    return name.partition(".")[0] == "neuroscript"


@pytest.mark.parametrize(("code", "limit"), MAX_OWN_MODULES.values(), ids=MAX_OWN_MODULES)
def test_common_starts_load_few_project_modules(code: str, limit: int) -> None:
    """An earlier process caches the indexes of installed plugins, as for a user."""
    loaded(code)
    ours = sorted(filter(is_ours, loaded(code)))

    assert len(ours) <= limit, ours


def test_engine_without_observers_loads_none() -> None:
    """This holds for calls that are refused, and for closing."""
    added = loaded(
        f"{DECORATED_TOOL}from neuroscript import ToolCall\n"
        "with Engine(plugins='none', toolsets=[tools]) as engine:\n"
        "    codes = [engine.execute(ToolCall(name, args)).error.code\n"
        "             for name, args in (('math.add', ['x', 1]), ('math.sub', []))]\n"
        "assert codes == ['coercion.format', 'tool.not_found'], codes"
    )

    assert set() == added & {"neuroscript.calls.gate", "neuroscript.calls.observers"}


def test_importing_the_root_package_loads_nothing_else() -> None:
    """``import neuroscript`` loads only the root; each public name loads its module on first use."""
    added = loaded("import neuroscript") - loaded("import __future__, typing")

    assert {"neuroscript"} == added


@pytest.mark.parametrize(
    ("words", "rooms"),
    [
        (["list"], {"env.options"}),
        (["call", "math.add", "1"], {"env.options"}),
        (["audit", "show", "trail.jsonl"], {"audit.options", "env.options"}),
        (["lint", "."], {"plugins.publisher_options", "env.options"}),
        (["trace", "show", "trace.json"], {"plans.trace", "env.options"}),
    ],
)
def test_command_loads_only_its_own_options(words: list[str], rooms: set[str]) -> None:
    """Options of other commands are loaded for those commands, for completion and for the complete help."""
    found = loaded(f"from neuroscript.cli.parser import parse_arguments; parse_arguments({words!r})")

    assert {f"neuroscript.cli.{room}" for room in rooms} == {
        name for name in found if name.endswith("options") or name == "neuroscript.cli.plans.trace"
    }
