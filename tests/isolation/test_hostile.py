"""Hostile tools reach nothing outside, end in a named error, and leave the host ready for the next call.

Each attack also runs once with what stops it removed, where it must succeed. Otherwise the test could not fail.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from tests.conftest import ALL
from tests.isolation.forging_tools import FORBIDDEN, FRAMES, REQUESTS, forging, permitted
from tests.isolation.hostile_tools import hostile
from tests.isolation.hostile_world import World, engine
from tests.isolation.working_tools import working

from neuroscript import (
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Isolation,
    NeuroScriptError,
    PluginError,
    PolicyError,
    ToolFailed,
    Toolset,
)
from neuroscript.errors import RETRIES

NEXT_SECONDS: Final = 0.05 if ALL else 1.0
"""Seconds that the next call may take. An idle machine needs about a hundredth of the smaller one."""

TOOLS: Final = Toolset("all", [*hostile.tools, *forging.tools, *permitted.tools, *working.tools])

CRASH: Final = "it only crashes, hangs or uses up resources, which no test wants to succeed"
FORM: Final = "it sends what is not valid, and no setting accepts that"
BOUNDARY: Final = "no grant permits to leave the sandbox"


@attrs.frozen
class Case:
    """What an attack ends with.

    Attributes:
        code: The possible codes of the error.
        cause: The possible names of the exception that the tool has raised, if the code is ``tool.failed``.
        control: Where the attack succeeds: in a worker that is not ``confined``, in the process of the ``host``, or in
            a tool that declares the needs of its request (``permitted``).
        reaches: What it reaches there, see `World.reached`, or ``""`` if it is enough that it returns.
        why: Why there is no control.
        root: Whether only the superuser succeeds without confinement.
        timeout: Seconds of the call.
    """

    code: tuple[str, ...]
    cause: tuple[str, ...] = ()
    control: str = ""
    reaches: str = ""
    why: str = ""
    root: bool = False
    timeout: float = 20.0


def hangs() -> Case:
    return Case(("call.timeout",), why=CRASH, timeout=0.5)


def ends(*codes: str, cause: tuple[str, ...] = (), why: str = CRASH) -> Case:
    return Case(codes, cause, why=why)


def refused(
    reaches: str = "", *cause: str, control: str = "confined", root: bool = False, why: str = "", timeout: float = 20.0
) -> Case:
    return Case(("tool.failed",), cause or ("PermissionError",), "" if why else control, reaches, why, root, timeout)


MISSING: Final = "FileNotFoundError"
NO_PROCESS: Final = ("PermissionError", "ProcessLookupError", "FileNotFoundError")
"""Without a PID namespace the kernel refuses, and with one the process does not exist."""

CASES: Final[dict[str, Case]] = {
    # never returning, crashing, and using up memory
    "loop": hangs(),
    "loop_in_c": hangs(),
    "regular_expression": hangs(),
    "big_power": hangs(),
    "deadlock": hangs(),
    "ignore_signals": hangs(),
    "signal_handlers": hangs(),
    "trace_function": hangs(),
    "many_threads": hangs(),
    "fork_bomb": refused(),
    "fork_bomb_in_c": refused("", "PermissionError", "OSError"),
    "one_allocation": ends("isolation.memory"),
    "many_allocations": ends("isolation.memory"),
    "allocation_in_c": ends("isolation.memory"),
    "memory_files": refused(),
    "recursion": ends("isolation.died", "isolation.memory", "tool.failed", cause=("RecursionError",)),
    "recursion_in_c": ends("isolation.died", "isolation.memory", "tool.failed", cause=("RecursionError",)),
    "segfault": ends("isolation.died"),
    "exit_process": ends("isolation.died"),
    "abort": ends("isolation.died"),
    # exceptions and results
    "raise_refusing": ends("tool.failed", cause=("Refusing",)),
    "raise_pretending": ends("tool.failed", cause=("Pretending",)),
    "raise_pickled": ends("tool.failed", cause=("Pickled",)),
    "raise_looping": hangs(),
    "raise_interrupt": ends("tool.failed", cause=("KeyboardInterrupt",)),
    "raise_exit": ends("tool.failed", cause=("SystemExit",)),
    "raise_generator_exit": ends("tool.failed", cause=("GeneratorExit",)),
    "raise_timeout": ends("tool.failed", cause=("CallTimeout",)),
    "raise_memory_error": ends("isolation.memory"),
    "raise_long": ends("hostile.long"),
    "raise_chain": ends("tool.failed"),
    "unsendable": ends("return.type"),
    "cyclic": ends("return.type"),
    "giant": ends("isolation.memory", "isolation.value"),
    "delete_at_exit": ends("tool.failed", cause=("SystemExit",)),
    # requests and items without end
    "requests_without_end": hangs(),
    "errors_without_end": hangs(),
    "updates_without_end": hangs(),
    "updates_within_updates": ends("tool.failed", "call.timeout", "isolation.died", cause=("RecursionError",)),
    "calls_without_end": ends("limit.depth"),
    "items_without_end": hangs(),
    # files
    "read_outside": refused("token"),
    "read_sandbox": refused("token"),
    "list_outside": refused("", "PermissionError"),
    "write_outside": refused("files"),
    "append_outside": refused("files"),
    "create_outside": refused("files"),
    "delete_outside": refused("files", "PermissionError", "OSError"),
    "rename_outside": refused("files", "PermissionError", "OSError"),
    "truncate_outside": refused("files"),
    "change_metadata_outside": refused("files", "PermissionError", "OSError"),
    "read_through_proc": refused("token", "PermissionError", MISSING),
    "open_by_handle": refused("token", root=True),
    "watch_outside": refused(),
    "fill_shared_memory": refused("filled"),
    "fill_temporary_directory": refused("filled"),
    "link_that_leads_outside": refused("token"),
    "directory_link_that_leads_outside": refused("files", "PermissionError", "OSError"),
    "create_link": refused("", "PermissionError"),
    "link_file_inside": refused("token", "PermissionError", "OSError"),
    "move_file_inside": refused("token", "PermissionError", "OSError"),
    "move_directory_outside": refused("files", "PermissionError", "OSError"),
    "parent_of_the_granted_directory": refused("token"),
    "sibling_of_the_granted_directory": refused("token"),
    "execute_file_of_the_sandbox": refused("files"),
    # descriptors and the environment
    "inherited_descriptors": refused("token", control="host"),
    "environment": refused("token", control="host"),
    "environments_of_processes": refused("token", *NO_PROCESS),
    "environment_of_the_victim": refused("token", *NO_PROCESS),
    # processes
    "kill_victim": refused("victim", *NO_PROCESS),
    "signal_host": refused("signal", *NO_PROCESS),
    "kill_parent": refused("", *NO_PROCESS),
    "kill_launcher": refused("", *NO_PROCESS),
    "kill_neighbour": refused("neighbour", *NO_PROCESS),
    "signal_everything": refused(),
    "signal_by_descriptor": refused("", *NO_PROCESS),
    "trace_victim": refused("", *NO_PROCESS),
    "trace_itself": refused(),
    "memory_of_the_victim": refused("token", *NO_PROCESS),
    "memory_of_the_neighbour": refused("token", *NO_PROCESS, root=True),
    "copy_memory_of_the_victim": refused("token"),
    "copy_memory_of_the_neighbour": refused("token", root=True),
    "write_memory_of_the_victim": refused("victim"),
    "descriptor_of_the_victim": refused("token", *NO_PROCESS, "OSError"),
    "memory_file_of_the_victim": refused("token", *NO_PROCESS),
    "compare_processes": refused(),
    "limit_victim": refused("", *NO_PROCESS),
    "slow_victim_down": refused("victim", *NO_PROCESS),
    "bind_victim": refused("victim", *NO_PROCESS),
    # memory that is shared by name or number
    "shared_memory_by_name": refused("token"),
    "shared_memory_by_number": refused("token"),
    "message_queues": refused(),
    # sockets
    "tcp": refused("server"),
    "udp": refused("server"),
    "tcp_server": refused(),
    "unix_path": refused("server"),
    "unix_abstract": refused("server"),
    "unix_datagram": refused("server"),
    "raw_socket": refused(root=True),
    "packet_socket": refused(root=True),
    "netlink_socket": refused(),
    "vsock_socket": refused(why="many kernels have no sockets of virtual machines"),
    "crypto_socket": refused(why="many kernels have no sockets for cryptography"),
    "any_socket": refused(),
    "resolve_name": refused("server", "PermissionError", "gaierror"),
    # the kernel
    "io_uring": refused(why="many kernels forbid it for all processes"),
    "mount": refused(root=True),
    "unshare": refused(root=True),
    "enter_namespace": refused("", *NO_PROCESS, root=True),
    "enter_namespaces_by_descriptor": refused("", *NO_PROCESS, root=True),
    "chroot": refused(root=True),
    "pivot_root": refused(root=True),
    "keys": refused(),
    "bpf": refused(root=True),
    "perf": refused(root=True),
    "userfaultfd": refused(root=True),
    "personality": refused(),
    "type_into_terminal": refused(),
    "raise_limits": refused(root=True),
    "become_another_user": refused(root=True),
    "gain_capabilities": refused(root=True),
    "become_inspectable": refused(),
    # programs
    "start_program": refused("files"),
    "replace_process": Case(("tool.failed",), ("PermissionError",), why="it replaces the worker that would return"),
    "execute_memory_file": Case(("tool.failed",), ("PermissionError",), why="it replaces the worker that would return"),
    "start_worker_process": refused("files"),
    "start_another_program": refused("files"),
    "copy_granted_program": refused("files", "PermissionError", "FileNotFoundError"),
    "load_program_with_loader": refused("files", "PermissionError", "CalledProcessError"),
    "leave_daemon": Case(("call.timeout",), control="host", reaches="daemon", timeout=1.0),
}

FORGED: Final[dict[str, Case]] = {
    **dict.fromkeys(FRAMES, ends("isolation.protocol", why=FORM)),
    **dict.fromkeys(REQUESTS, ends("tool.failed", why=FORM)),
    **dict.fromkeys(
        ("path_of_a_number", "path_of_nul", "mode_to_write", "walk_of_a_number", "write_of_a_number"),
        ends("sandbox.argtype", "sandbox.nul", why=FORM),
    ),
    "amount_of_text": ends("limit.amount", why=FORM),
    "handle_of_a_list": ends("handle.unknown", why=FORM),
    "turns_of_a_number": ends("policy.capability", why=FORM),
    "embedding_of_a_number": ends("policy.capability", why=FORM),
    **dict.fromkeys(FORBIDDEN, Case(("policy.capability",), control="permitted")),
    "read_above": ends("sandbox.escape", why=BOUNDARY),
    "read_absolute": ends("sandbox.absolute", why=BOUNDARY),
    "read_link": Case(("policy.capability",), why=BOUNDARY),
    "pinned_path": ends("isolation.raw_files", why="only the declaration of the tool permits it"),
    "denied_tool": Case(("policy.not_allowed",), control="permitted"),
    "denied_tool_named": Case(("policy.not_allowed",), control="permitted"),
    "settle_twice": ends("limit.amount", why=FORM),
    "spend_too_much": ends("limit.money", why=FORM),
    "handles_without_end": Case(("isolation.value",), why=FORM, timeout=60.0),
    "close_connection": ends("isolation.died"),
    "shut_connection": ends("isolation.died"),
    "write_to_all_descriptors": ends("isolation.protocol"),
    "never_read": hangs(),
    "slow_frame": hangs(),
    "slow_items": hangs(),
    "result_in_place_of_items": ends("isolation.protocol", why=FORM),
    "send_descriptors": ends("tool.failed", cause=("PermissionError",)),
}

ATTACKS: Final = {f"hostile.{name}": case for name, case in CASES.items()} | {
    f"forging.{name}": case for name, case in FORGED.items()
}

CONTROLS: Final = [name for name, case in ATTACKS.items() if case.control]


def test_every_attack_is_listed_and_says_why_it_has_no_control() -> None:
    mounts = {"hostile.harmless", "hostile.mount_point", "hostile.mount_point_by_runtime"}
    followed = {*mounts, *(f"forging.{name}" for name in FOLLOWED), *(f"forging.{name}" for name in CALM)}
    assert {each.name for each in (*hostile.tools, *forging.tools)} == set(ATTACKS) | followed
    assert [name for name, case in ATTACKS.items() if bool(case.control) == bool(case.why)] == []


CALM: Final = ("own", "wait", "new_handle", "use_handle", "release_handle", "read_remedy")
"""Tools that other attacks use."""

FOLLOWED: Final = ("answer_twice", "garbage_after_the_end", "replace_functions", "request_after_the_end")
"""Attacks whose own call returns, because they are about the next one."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


@contextmanager
def confining(world: World, *, namespaces: bool) -> Iterator[Engine]:
    with engine(world.host(), TOOLS) as made:
        made._shared.pool.namespaces = namespaces
        made.call("working.count")
        yield made


@pytest.fixture(scope="module")
def confined(world: World) -> Iterator[Engine]:
    with confining(world, namespaces=True) as made:
        yield made


@pytest.fixture(scope="module")
def without_namespaces(world: World) -> Iterator[Engine]:
    with confining(world, namespaces=False) as made:
        yield made


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_reaches_nothing_and_ends_in_a_named_error(world: World, confined: Engine, name: str) -> None:
    check_attack(world, confined, name)


REFUSED: Final = [f"hostile.{name}" for name, case in CASES.items() if case.code == ("tool.failed",)]
"""What the kernel refuses; nothing else depends on namespaces."""


@pytest.mark.parametrize(
    "name", [*REFUSED, *(pytest.param(name, marks=pytest.mark.full) for name in ATTACKS if name not in REFUSED)]
)
def test_attack_reaches_nothing_without_namespaces(world: World, without_namespaces: Engine, name: str) -> None:
    check_attack(world, without_namespaces, name)


def check_attack(world: World, confined: Engine, name: str) -> None:
    case = ATTACKS[name]
    confined.call("working.count")
    world.target["launcher"] = confined._shared.pool._launcher.pid  # type: ignore[union-attr]
    with pytest.raises(NeuroScriptError) as caught:
        pytest.fail(f"it returned {str(confined.call(name, [world.target], timeout=case.timeout))[:200]}")
    began = time.monotonic()
    confined.call("working.count")
    seconds = time.monotonic() - began

    error: Any = caught.value
    assert error.code in case.code, f"{error} {error.__cause__!r}"
    assert error.retry in RETRIES
    if isinstance(error, CallTimeout):
        assert error.state == "killed" or (error.state == "stopped" and error.items is not None)
    if error.code == "tool.failed" and case.cause:
        assert type(error.__cause__).__name__ in case.cause
    assert len(str(error)) < 110_000
    assert not gone_after(world.daemons)
    assert world.reached(error) == set()
    assert seconds < NEXT_SECONDS


# Controls


@pytest.fixture(scope="module")
def unconfined(world: World) -> Iterator[Engine]:
    with engine(world.host(), TOOLS, reuse=False) as made:  # because some attacks change their process
        made._shared.pool.namespaces = made._shared.pool.confines = False
        yield made


@pytest.mark.parametrize("name", CONTROLS)
def test_attack_succeeds_if_nothing_stops_it(
    world: World, unconfined: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = ATTACKS[name]
    if case.root and os.geteuid():
        pytest.skip("without the privileges of the superuser the kernel refuses this attack anyway")
    start_again(unconfined)
    world.target |= {"launcher": unconfined._shared.pool._launcher.pid, "confined": False}  # type: ignore[union-attr]
    try:
        if case.control == "host":
            result = in_host(world, monkeypatch, name)
        elif case.control == "permitted":
            result = permit(world, name.replace("forging.", "permitted."))
        else:
            result = attempt(unconfined, name, world.target)
        assert not case.reaches or eventually(world, case.reaches, result)
    finally:
        world.target["confined"] = True
        world.reached()


def gone_after(left: Callable[[], list[int]]) -> list[int]:
    """Return what is left after at most a second, because the caller does not wait for the end of a killed worker."""
    end = time.monotonic() + 1
    while (found := left()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def eventually(world: World, reaches: str, result: object) -> bool:
    """Return whether an attack reaches something within five seconds; a signal and a program need some time."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if reaches in world.reached(result):
            return True
        time.sleep(0.01)
    return False


def in_host(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """Return what an attack returns in this process, which has a secret in its environment and an open file."""
    monkeypatch.setenv("NEUROSCRIPT_TEST_TOKEN", world.token)
    with open(world.target["secret"], "rb"), engine(world.host(), TOOLS, isolate=()) as made:
        return made.call(name, [world.target])


def permit(world: World, name: str) -> Any:
    """Return what an attack returns in a tool that declares the needs of its request."""
    grants = ("fs:*:**", "secret:read:*", "model:use:*")
    with engine(world.host(), TOOLS, grants=grants, allow=("working.environment",)) as made:
        made._shared.pool.namespaces = False
        return made.call(name, [world.target])


def start_again(made: Engine) -> None:
    """Let an engine start its processes; if the last attack has killed some, the kernel may still be ending others."""
    end = time.monotonic() + 5
    while True:
        try:
            made.call("working.count")
        except ToolFailed:
            if time.monotonic() > end:
                raise
        else:
            return


def attempt(made: Engine, name: str, target: dict[str, Any]) -> Any:
    """Return what an attack returns; one that ends the processes of its own engine does not return."""
    try:
        return made.call(name, [target])
    except ToolFailed:
        if name in ("hostile.kill_parent", "hostile.kill_launcher"):
            return ""
        raise


# The next call, and other sessions


@pytest.fixture
def alone(world: World) -> Iterator[Engine]:
    with engine(world.host(), TOOLS) as made:
        yield made


def test_second_result_is_not_taken_for_that_of_the_next_call(world: World, alone: Engine) -> None:
    assert alone.call("forging.answer_twice", [world.target]) == 1
    assert alone.call("forging.own", [world.target]) == 1


def test_thread_that_sends_garbage_ends_the_next_call_alone(world: World, alone: Engine) -> None:
    alone.call("forging.garbage_after_the_end", [world.target])
    with pytest.raises(ToolFailed) as caught:
        alone.call("forging.wait", [world.target])
    assert (caught.value.code, caught.value.retry) == ("isolation.protocol", "never")
    assert alone.call("forging.wait", [world.target]) == 1


def test_requests_between_two_calls_are_never_carried_out(world: World, alone: Engine) -> None:
    alone.call("forging.request_after_the_end", [world.target])
    time.sleep(0.1)
    assert alone.call("forging.own", [world.target]) == 1
    assert alone._shared.host.output.getvalue() == ""  # type: ignore[attr-defined]


def test_replaced_functions_are_bound_to_the_policy_too(world: World, alone: Engine) -> None:
    alone.call("forging.replace_functions", [world.target])
    with pytest.raises(PolicyError) as caught:
        alone.call("forging.own", [world.target])
    assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")


def test_advice_for_the_host_stays_in_the_host(world: World, alone: Engine) -> None:
    with engine(world.host(), TOOLS, isolate=()) as other:
        assert "working.environment" in other.call("forging.read_remedy", [{}])
    assert alone.call("forging.read_remedy", [{}]) == ""


def test_handle_of_another_session_is_unknown(alone: Engine) -> None:
    first, second = alone.session(), alone.session()
    handle = first.call("forging.new_handle", [{}])
    with pytest.raises(ToolFailed) as caught:
        second.call("forging.use_handle", [handle.id])
    assert (caught.value.code, caught.value.retry) == ("handle.unknown", "model")
    assert second.call("forging.release_handle", [handle.id]) is False
    assert first.call("forging.use_handle", [handle.id])[0] is True
    assert first.call("forging.release_handle", [handle.id]) is True


# Module-level code

MODULE: Final = """
{source}

import sys
TARGET = {target!r}
OUTCOMES = {{}}
for _name in {names!r}:
    try:
        OUTCOMES[_name] = "returned " + str(globals()[_name](TARGET))
    except BaseException as error:
        OUTCOMES[_name] = type(error).__name__

outcomes = Toolset("outcomes")

@outcomes.tool
def result() -> dict[str, str]:
    '''Return how the attacks have ended.'''
    return OUTCOMES
"""


def test_module_that_attacks_when_it_is_imported_reaches_nothing(world: World, tmp_path: Path) -> None:
    policies = {each.name: each.policy for each in hostile.tools}
    names = [
        name for name, case in CASES.items()
        if case.code == ("tool.failed",) and not case.why and not policies[f"hostile.{name}"].capabilities
    ]  # fmt: skip
    source = Path(__file__).with_name("hostile_tools.py").read_text().replace("from __future__ import annotations", "")
    (tmp_path / "attack.py").write_text(MODULE.format(source=source, target=world.target, names=names))
    policy = ExecutionPolicy(allow=("outcomes.*",), isolate=Isolation(plugins=("attack.py",)))
    with Engine(plugins="none", policy=policy, host=world.host()) as made:
        made.load_plugin(tmp_path / "attack.py")
        found = made.call("outcomes.result")

    assert len(found) > 60
    assert {name: found[name] for name in names if found[name] not in CASES[name].cause} == {}
    assert world.reached(found) == set()


@pytest.mark.parametrize("words", ["'ready', ['landlock']", "'loaded'", "'start', 'threads', ''", "'done', 1"])
def test_module_that_forges_the_start_of_its_worker_is_an_error(tmp_path: Path, words: str) -> None:
    code = (
        "import gc\nfrom neuroscript import Toolset\nfrom neuroscript.isolation.frames import Channel\n"
        f"for each in gc.get_objects():\n    if isinstance(each, Channel):\n        each.send({words})\n"
        "acme = Toolset('acme')\n@acme.tool\ndef own() -> int:\n    '''Own.'''\n    return 1\n"
    )
    (tmp_path / "attack.py").write_text(code)
    policy = ExecutionPolicy(isolate=Isolation(plugins=("attack.py",)))
    with Engine(plugins="none", policy=policy) as made:
        with pytest.raises((PluginError, ToolFailed), match=r"invalid report|was killed|something unexpected"):
            made.load_plugin(tmp_path / "attack.py")
            made.call("acme.own")


# Mounts


@pytest.mark.parametrize("name", ["confined", "without_namespaces"])
def test_mount_in_the_granted_directory_is_readable_only_if_the_runtime_reads_it(
    world: World, request: pytest.FixtureRequest, name: str
) -> None:
    outside, mounted = (world.directory / each for each in ("outside", "sandbox/inside/mounted"))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(outside), os.fsencode(mounted), None, 0x1000, None):
        pytest.skip("no file system may be mounted here")
    try:
        by_runtime, by_path = (
            outcome_of(request.getfixturevalue(name), tool, world)
            for tool in ("hostile.mount_point_by_runtime", "hostile.mount_point")
        )
    finally:
        libc.umount2(os.fsencode(mounted), 0)
    assert by_path in ("refused", by_runtime)


def outcome_of(made: Engine, name: str, world: World) -> str:
    try:
        return str(made.call(name, [world.target]))
    except ToolFailed:
        return "refused"
