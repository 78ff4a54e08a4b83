"""``pytest --neuroscript-isolated``: the toolsets under test run in worker processes, or their programs run confined."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.testing.test_plugin import KEEPING, installed, run

from neuroscript.isolation.confinement import available

ROOT: Final = Path(__file__).parents[2]

ISOLATED: Final = "--neuroscript-isolated"

RAW: Final = """
import os
from neuroscript import Example, Runtime, ToolPolicy, Toolset

toolset = Toolset("raw")

@toolset.tool(policy=ToolPolicy(effects=("reads",)), when_to_use="Never.", examples=(Example((), "root"),))
def user() -> str:
    '''Return the first user of the machine.'''
    with open("/etc/passwd") as file:
        return file.readline().partition(":")[0]

@toolset.tool
def process() -> int:
    '''Return the number of the process.'''
    return os.getppid() if os.getpid() == 1 else os.getpid()

@toolset.tool
def inside() -> bool:
    '''Return whether the process can open files.'''
    try:
        open("/etc/passwd").close()
    except OSError:
        return False
    return True
"""

ENGINES: Final = """
from broken_tools import toolset
from neuroscript import Engine, Toolset

def test_fixture_runs_tools_in_a_worker(engine, isolate):
    engine.register(toolset)
    assert engine.call("raw.inside") == (not isolate)

def test_engine_of_a_test_runs_installed_tools_in_a_worker(isolate):
    own = Toolset("own")

    @own.tool
    def word() -> str:
        '''W.'''
        return "a function that only this process has"

    with Engine(plugins=["raw-tools"], toolsets=own) as engine:
        assert engine.call("raw.inside") == (not isolate)
        assert engine.call("own.word") == word()
"""

LOCAL: Final = """
from neuroscript import Example, ToolPolicy, Toolset
from neuroscript.testing import check_toolset, fuzz_toolset

def test_toolset_that_no_process_can_import():
    local = Toolset("local")

    @local.tool(policy=ToolPolicy(effects=("pure",)), when_to_use="To negate.", examples=(Example((1,), -1),))
    def minus(number: int) -> int:
        '''Return the negation of an integer.

        Args:
            number: An integer.

        Returns:
            Its negation.
        '''
        return -max(number, -(2**63 - 1))

    report = check_toolset(local, without=["importable", "failure-example"], raises=False)
    assert [str(each) for each in report.violations] == EXPECTED
"""

WORKER_IMPORT: Final = (
    "local.minus: worker-import: local.minus cannot be isolated: a worker cannot import its function from test_it; "
    "define the function, or a toolset that contains it, at the top level of a module"
)


FUNCTIONS: Final = f"{ISOLATED}=functions"
PROGRAMS: Final = f"{ISOLATED}=programs"

confined = pytest.mark.skipif(
    bool(available()["landlock"] or available()["seccomp"]), reason="this system cannot confine programs"
)

BUILD: Final = """
import subprocess
from neuroscript import Example, Runtime, ToolPolicy, Toolset

toolset = Toolset("build")
example = Example((), "refused")

@toolset.tool(
    policy=ToolPolicy(capabilities=("shell:exec:head",), effects=("exec",)), when_to_use="Never.", examples=(example,)
)
def user(rt: Runtime) -> str:
    'Return the first letter of a list of users.'
    with rt.confine("/usr/bin/head") as (words, descriptors):
        command = [*words, "/usr/bin/head", "-c1", "/etc/passwd"]
        done = subprocess.run(command, pass_fds=descriptors, capture_output=True, text=True)
    return done.stdout or "refused"
"""

CONFINING: Final = """
import os
from broken_tools import toolset
from neuroscript import Engine, ExecutionPolicy, Host, tool

def test_fixture_confines_programs(engine, isolate):
    engine.register(toolset)
    assert (engine.call("build.user") == "refused") == bool(isolate)

def test_engine_of_a_test_confines_programs(isolate, sandbox):
    policy = ExecutionPolicy(grants=["shell:exec:*"])
    number = os.getpid()

    def own() -> int:
        'Return the number of the process.'
        return os.getpid()

    with Engine(plugins=["build-tools"], policy=policy, host=Host(sandbox_dir=sandbox)) as engine:
        engine.register(tool(own, group="own"))
        assert (engine.call("build.user") == "refused") == bool(isolate)
        assert engine.call("own.own") == number

def test_policy_of_a_test_is_not_replaced(isolate, sandbox):
    policy = ExecutionPolicy(grants=["shell:exec:*"], isolate=["other.*"])
    with Engine(plugins=["build-tools"], policy=policy, host=Host(sandbox_dir=sandbox)) as engine:
        assert engine.call("build.user") != "refused"
"""


def passed(done: subprocess.CompletedProcess[str], count: int) -> bool:
    return re.search(rf"\b{count} passed", done.stdout) is not None and done.returncode == 0


@pytest.mark.parametrize("options", [(), (ISOLATED,)], ids=["in-process", "isolated"])
def test_engines_isolate_the_tools_of_distributions(tmp_path: Path, options: tuple[str, ...]) -> None:
    installed(tmp_path, "raw-tools", RAW)
    (tmp_path / "test_it.py").write_text(ENGINES)

    done = run(tmp_path, *options)

    assert passed(done, 2), done.stdout


@pytest.mark.parametrize("options", [(), (ISOLATED,)], ids=["in-process", "isolated"])
def test_contract_checks_find_what_a_worker_cannot_do(tmp_path: Path, options: tuple[str, ...]) -> None:
    installed(tmp_path, "raw-tools", RAW)

    done = run(tmp_path, "--neuroscript-toolset", "raw-tools", *options)

    message = "raw.user fails the contract check examples-correct:\n  example 1 fails with tool.failed"
    assert (message in done.stdout) == bool(options)
    assert "raw.user fails the contract check capabilities-complete" in done.stdout  # an audit hook observes it


def test_module_that_a_tool_imports_on_first_use_is_no_side_effect(tmp_path: Path) -> None:
    """The process that observes it has not run it before, so Python would write the bytecode of the module there."""
    installed(tmp_path, "raw-tools", RAW.replace("with open", "import late\n    with open"))
    (tmp_path / "late.py").write_text("")

    done = run(tmp_path, "--neuroscript-toolset", "raw-tools", ISOLATED)

    assert "raw.user fails the contract check capabilities-complete" in done.stdout
    assert "fs:write" not in done.stdout


def test_sound_distribution_with_a_hook_passes(tmp_path: Path) -> None:
    installed(tmp_path, "sound-tools", KEEPING, "[neuroscript.plugins]\nsound = broken_tools\n")

    done = run(tmp_path, "--neuroscript-toolset", "sound-tools", "-rA", ISOLATED)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert {"acme.double", "acme2.double"} == set(
        re.findall(r"PASSED sound-tools::(\S+)\[examples-correct\]", done.stdout)
    )
    assert "worker-import" not in done.stdout


@pytest.mark.parametrize(
    ("options", "expected"), [((), []), ((ISOLATED,), [WORKER_IMPORT])], ids=["in-process", "isolated"]
)
def test_function_that_no_worker_can_import_is_a_failure(
    tmp_path: Path, options: tuple[str, ...], expected: list[str]
) -> None:
    """The message says what to change."""
    (tmp_path / "test_it.py").write_text(f"EXPECTED = {expected!r}\n{LOCAL}")

    done = run(tmp_path, *options)

    assert passed(done, 1), done.stdout


def test_engine_refuses_such_a_function(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from neuroscript import tool\n"
        "def test_it(engine):\n    def f() -> int:\n        'F.'\n        return 1\n"
        "    engine.register(tool(f, group='own'))\n"
    )

    done = run(tmp_path, ISOLATED)

    assert "own.f cannot be isolated: a worker cannot import its function from test_it" in done.stdout
    assert passed(run(tmp_path), 1)


@confined
@pytest.mark.parametrize("options", [(), (PROGRAMS,)], ids=["free", "confined"])
def test_engines_confine_programs(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Their functions run in the process of the test."""
    installed(tmp_path, "build-tools", BUILD)
    (tmp_path / "test_it.py").write_text(CONFINING)

    done = run(tmp_path, *options)

    assert passed(done, 3), done.stdout


@confined
@pytest.mark.parametrize("options", [(), (PROGRAMS,)], ids=["free", "confined"])
def test_contract_checks_confine_programs(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The example is that of a confined program."""
    installed(tmp_path, "build-tools", BUILD)

    done = run(tmp_path, "--neuroscript-toolset", "build-tools", *options)

    message = "build.user fails the contract check examples-correct:\n  example 1 returns a different result"
    assert (message in done.stdout) != bool(options), done.stdout
    assert "capabilities-complete" not in done.stdout  # an audit hook observes the tool, not what confines its programs


def test_unknown_value_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, f"{ISOLATED}=workers")

    text = f"argument {ISOLATED}: expected functions or programs, got workers; before a path, write {FUNCTIONS}"
    assert (done.returncode, text in done.stderr) == (4, True), done.stderr


TOOLSETS: Final = {"fs": FUNCTIONS, "std": FUNCTIONS, "http": FUNCTIONS, "shell": PROGRAMS, "git": PROGRAMS}
"""How each first-party toolset runs isolated."""


@pytest.mark.full
@pytest.mark.parametrize("name", TOOLSETS)
def test_own_tests_of_a_toolset_pass_isolated(name: str) -> None:
    """And the contract checks, which are among them."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TOOLSETS[name]]

    done = subprocess.run(
        [*words, str(ROOT / f"plugins/neuroscript-{name}/tests")], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout
    assert re.search(r"\b\d{3,} passed", done.stdout)
