"""Tools, hosts and other calls that get in the way of tracking: no label is lost, and no rule is skipped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    Approval,
    ApprovalRequest,
    Engine,
    ExecutionPolicy,
    FlowRule,
    Host,
    Runtime,
    Spill,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    hookimpl,
)
from neuroscript.flow.labels import NO_LABELS, Source, labels_from
from neuroscript.flow.state import FileLabels
from neuroscript.runtime.state import Variables

from .mail_tools import ADDRESS, FILES, GRANTS, NEUTRAL, PAGE, READS, REFUSE, SENDS, code, run, toolset

others = Toolset("x")


@others.tool(policy=SENDS)
def push(rt: Runtime) -> str:
    """Send something that needs no argument."""
    return "pushed"


@others.tool(policy=NEUTRAL)
def read_and_push(rt: Runtime) -> str:
    """Send something after reading a page."""
    rt.call_tool("t.page")
    return str(rt.call_tool("x.push"))


@others.tool(policy=NEUTRAL)
def name(rt: Runtime) -> str:
    """Hide parts of a page in the name of a variable and in the kind of a handle."""
    rt.set_var(rt.call_tool("t.page"), 1)
    return rt.handles.new(1, rt.call_tool("t.page").split()[0]).id


@others.tool(policy=NEUTRAL)
def names(rt: Runtime) -> list[str]:
    """Return the names of all variables."""
    return list(rt.variables)


@others.tool(policy=NEUTRAL)
def kind(rt: Runtime, handle: str) -> str | None:
    """Return the kind of a handle."""
    return rt.handles.kind(handle)


@others.tool(policy=SENDS)
def catch(rt: Runtime) -> str:
    """Send the message of another tool's error."""
    try:
        return str(rt.call_tool("t.broken"))
    except ToolFailed as error:
        return str(error)


@others.tool(policy=ToolPolicy(effects=("writes",), requires_approval=True))
def danger(rt: Runtime) -> None:
    """Do something that needs an approval."""


@others.tool(policy=NEUTRAL)
def note(rt: Runtime, method: str) -> None:
    """Store a page in a variable."""
    page = rt.call_tool("t.page")
    if method == "set":
        rt.set_var("note", page)
    else:
        rt.update_var("note", lambda old: page)


@others.tool(policy=READS)
def fail_late(rt: Runtime) -> Iterator[str]:
    """Yield pages until there are no more."""
    for _ in range(3):
        yield PAGE
    raise ToolFailed("no more pages")


PROGRAM = ToolPolicy(effects=("exec",), capabilities=("fs:write:{path}/**",), sources=("untrusted",), sinks=())


@others.tool(policy=PROGRAM)
def clone(rt: Runtime, path: str) -> None:
    """Write a file as a program does, and let another session read it meanwhile."""
    place = Path(rt.sandbox_dir, path)
    place.mkdir()
    (place / "README").write_text(PAGE)
    seen.append(run(engines[-1].session(), "load", f"{path}/README").labels)


@others.tool(policy=FILES)
def move(rt: Runtime, source: str, destination: str) -> None:
    """Move a file without reading it."""
    rt.fs.move(source, destination)


seen: list[tuple[str, ...]] = []
engines: list[Engine] = []


def engine_of(*rules: FlowRule, **options: Any) -> Engine:
    """Return an engine with both toolsets; the options are parameters of the engine and fields of the policy."""
    of_engine = {name: options.pop(name) for name in ("hooks", "host", "spill", "audit") if name in options}
    policy = ExecutionPolicy(flow=rules, **{"grants": GRANTS, **options})
    return Engine(policy=policy, toolsets=[toolset, others], plugins="none", **of_engine)


# What a tool reads


def test_names_of_variables_and_kinds_of_handles_carry_labels() -> None:
    with engine_of(REFUSE) as engine:
        handle = engine.call("x.name")
        engine.memory.flow.texts = type(engine.memory.flow.texts)()  # type: ignore[union-attr]  # no text is compared
        assert engine.execute(ToolCall("x.names")).labels == ("untrusted",)
        assert engine.execute(ToolCall("x.kind", [handle])).labels == ("untrusted",)


def test_error_of_nested_call_cannot_be_sent() -> None:
    with engine_of(REFUSE) as engine:
        result = engine.execute(ToolCall("x.catch"))
    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("policy.flow", "host")


# Files


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_of(REFUSE, host=Host(sandbox_dir=tmp_path), trusted=True) as engine:
        engines.append(engine)
        yield engine
        engines.pop()
        seen.clear()


def test_file_of_a_program_has_labels_while_the_program_runs(engine: Engine) -> None:
    assert engine.execute(ToolCall("x.clone", ["repo"])).ok
    assert seen == [("untrusted",)]


def test_file_keeps_the_labels_of_its_directory_when_it_is_moved(engine: Engine) -> None:
    assert engine.execute(ToolCall("x.clone", ["repo"])).ok
    assert engine.session().execute(ToolCall("x.move", ["repo/README", "note.txt"])).ok
    assert run(engine.session(), "load", "note.txt").labels == ("untrusted",)


def test_file_with_the_items_of_a_failed_stream_has_labels(tmp_path: Path) -> None:
    with engine_of(REFUSE, host=Host(sandbox_dir=tmp_path), spill=Spill(threshold_bytes=100)) as engine:
        assert not engine.execute(ToolCall("x.fail_late")).ok
        (path,) = (tmp_path / "results").iterdir()
        assert run(engine.session(), "load", f"results/{path.name}").labels == ("untrusted",)


def test_directory_has_the_labels_of_everything_below_until_it_is_removed() -> None:
    labels, files = labels_from(["untrusted"], Source("t.page", 1)), FileLabels()
    files.add("a/b/c", labels)
    assert [files.of(path) for path in (".", "a", "a/b", "a/b/c")] == [labels] * 4
    assert [files.of(path) for path in ("a/bc", "b", "a/b/d")] == [NO_LABELS] * 3
    files.end_move(files.begin_move("a", "d", NO_LABELS))
    assert [files.of(path) for path in ("a", "a/b/c", "d/b", "d/b/c")] == [NO_LABELS, NO_LABELS, labels, labels]
    files.end("d/b/c", NO_LABELS, files.begin("d/b/c", NO_LABELS))
    assert [files.of(path) for path in (".", "d", "d/b/c")] == [NO_LABELS] * 3
    files.add(".", labels)
    assert files.of("a/b") == labels


def test_labels_stay_if_two_calls_replace_a_file_at_once() -> None:
    labels = labels_from(["untrusted"], Source("t.page", 1))
    for clean_ends_last in (False, True):
        for clean_begins_last in (False, True):
            files = FileLabels()
            calls = [labels, NO_LABELS]
            begun = [(each, files.begin("a", each)) for each in (calls if clean_begins_last else calls[::-1])]
            begun.sort(key=lambda call: (not call[0]) == clean_ends_last)
            for each, state in begun:
                files.end("a", each, state)
            assert files.of("a") == labels


# Variables


@pytest.mark.parametrize("method", ["set", "update"])
def test_variable_has_labels_before_another_call_can_read_it(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other call reads the variable as soon as it has its value, before the tool that sets it goes on."""
    write, read = getattr(Variables, method), list[tuple[str, ...]]()

    def writes_and_reads(variables: Variables, *args: Any) -> Any:
        result = write(variables, *args)
        read.append(run(engine, "recall", "note").labels)
        return result

    monkeypatch.setattr(Variables, method, writes_and_reads)
    with engine_of(REFUSE) as engine:
        assert engine.execute(ToolCall("x.note", [method])).ok
    assert read == [("untrusted",)]


def test_variable_that_is_replaced_while_it_is_read_has_both_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    get = Variables.get

    def reads_and_clears(variables: Variables, *args: Any) -> Any:
        value = get(variables, *args)
        run(engine, "clear", "note")
        return value

    with engine_of(REFUSE) as engine:
        run(engine, "keep", "note", "t.page")
        monkeypatch.setattr(Variables, "get", reads_and_clears)
        assert run(engine, "recall", "note").labels == ("untrusted",)
        monkeypatch.undo()
        assert run(engine, "recall", "note").labels == ()


def test_variable_that_cannot_be_set_has_no_new_labels() -> None:
    with engine_of(REFUSE, host=Host(constants={"note": "fixed"})) as engine:
        assert not run(engine, "keep", "note", "t.page").ok
        assert engine.memory.flow is not None
        assert engine.memory.flow.variables.of("note") == {}


# Approvals


def test_approval_of_one_label_does_not_cover_another_one_that_is_read_later() -> None:
    asked: list[tuple[str, ...]] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.flows)
        return Approval.approve()

    with engine_of(FlowRule(["untrusted", "private"], ["outside"]), approver=approver) as engine:
        run(engine, "keep", "letter", "t.mail")
        run(engine, "mail")
        run(engine, "page")
        assert code(engine, "send_var", ADDRESS, "letter") == "policy.flow"
    assert asked == [("sends untrusted data from t.page (call 4) to outside",)]


# Narrowed sessions


def test_rule_of_a_narrowed_session_knows_what_was_read_before() -> None:
    with engine_of(FlowRule(["untrusted+private"], ["outside"], by="session")) as engine:
        run(engine, "page")
        within = engine.narrowed(engine.policy.narrowed(flow=(REFUSE,)))
        assert code(within, "send", ADDRESS) == "policy.flow"


def test_preapproved_tool_outside_an_allow_list_asks() -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.tool)
        return Approval.reject()

    with engine_of(approver=approver, preapproved=("t.upper", "x.danger")) as engine:
        within = engine.narrowed(allow=["x.danger"], otherwise="ask")
        assert code(within, "upper", "words") == "policy.rejected"
        assert within.execute(ToolCall("x.danger")).ok
        assert run(engine, "upper", "words").ok
    assert asked == ["t.upper"]


def test_approval_by_a_narrowed_session_is_not_one_of_its_engine() -> None:
    with engine_of(approver=lambda request: Approval.reject()) as engine:
        within = engine.narrowed(engine.policy.narrowed(approver=lambda request: Approval.approve(for_session=True)))
        for session in (within, engine):
            result = session.execute(ToolCall("x.danger"))
            assert result.error is not None
            assert (result.error.code, result.error.retry) == ("policy.rejected", "never")


# Calls at the same time


class Meanwhile:
    """A hook that makes another call of the same tool wait while the nested one is decided about."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self._waits, self._ends = threading.Event(), threading.Event()
        self._other = threading.Thread(target=self._call)

    def _call(self) -> None:
        assert self.engine is not None
        self.engine.execute(ToolCall("x.push"))

    @hookimpl
    def neuroscript_decide(self, call: Any) -> None:
        """Begin the other call when the nested one comes, and let it wait until the latter has ended."""
        if call.tool != "x.push":
            return
        if call.depth == 1:
            self._waits.set()
            self._ends.wait(10)
        else:
            self._other.start()
            assert self._waits.wait(10)

    def end(self) -> None:
        """Let the other call go on."""
        self._ends.set()
        self._other.join()


def test_calls_without_arguments_do_not_share_labels() -> None:
    hook = Meanwhile()
    with engine_of(REFUSE, hooks=[hook]) as engine:
        hook.engine = engine
        result = engine.execute(ToolCall("x.read_and_push"))
        hook.end()
    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("policy.flow", "host")
