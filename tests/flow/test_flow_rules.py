"""Rules decide by labels and sinks: which rule, in which policy, and what a person reads."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest

from neuroscript import (
    Approval,
    ApprovalRequest,
    Engine,
    ExecutionPolicy,
    FlowLabels,
    FlowRule,
    Host,
    PendingApproval,
    PolicyError,
    SpecError,
    ToolCall,
    ToolPolicy,
)
from neuroscript.policy.flow_rules import FLOW_PROFILES, find_flows, flow_of
from neuroscript.policy.labels import SINKS, SOURCES, sinks_of, sources_of

from .mail_tools import ADDRESS, ASK, MAIL, PAGE, REFUSE, checked_code, code, code_of_call, engine_with, run

EVERYTHING = ["outside", "public", "money", "people", "code", "storage"]


# Labels of tools


@pytest.mark.parametrize(
    ("effects", "capabilities", "sources", "sinks"),
    [
        (("pure",), (), [], []),
        (("clock", "random"), (), [], []),
        (("net",), (), ["untrusted"], ["outside"]),
        (("reads",), (), ["private"], []),
        (("writes",), (), [], ["storage"]),
        (("deletes", "reads"), (), ["private"], ["storage"]),
        (("exec",), (), ["untrusted", "private"], ["code", "outside", "storage"]),
        (("idempotent",), ("fs:read:a", "fs:write:b"), ["private"], ["storage"]),
        (("idempotent",), ("net:read:a.example:443",), ["untrusted"], ["outside"]),
        (("idempotent",), (), ["untrusted", "private"], EVERYTHING),
        ((), (), ["untrusted", "private"], EVERYTHING),
        ((), ("fs:read:a",), ["untrusted", "private"], EVERYTHING),
    ],
)
def test_undeclared_labels_follow_from_effects(
    effects: tuple[str, ...], capabilities: tuple[str, ...], sources: list[str], sinks: list[str]
) -> None:
    policy = ToolPolicy(effects=effects, capabilities=capabilities)
    assert sorted(sources_of(policy)) == sorted(sources)
    assert sorted(sinks_of(policy)) == sorted(sinks)


def test_declared_labels_are_used_as_they_are() -> None:
    policy = ToolPolicy(sources=["private:mail"], sinks=())
    assert sources_of(policy) == ("private:mail",)
    assert sinks_of(policy) == ()


def test_every_problem_with_labels_is_reported() -> None:
    with pytest.raises(SpecError) as caught:
        ToolPolicy(sources=["untrustd", 3], sinks="outside", declassifies=["Private"])  # type: ignore[list-item]
    assert caught.value.problems == (
        "sources[1] must be a string, not int",
        "sinks must be a collection of strings, not str",
        "declassifies: 'Private' is not one of untrusted, private; "
        "a label of your own has a colon, such as private:mail",
    )
    with pytest.raises(SpecError) as caught:
        FlowRule(["untrusted+x"], [], "deny", "text")  # type: ignore[arg-type]
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "then must be 'allow', 'ask' or 'refuse'",
        "by must be 'values' or 'session'",
        "labels",
        "to is empty; write '*' for all",
    ]


def test_profiles_have_known_labels() -> None:
    for rules in FLOW_PROFILES.values():
        for rule in rules:
            assert {part for label in rule.labels for part in label.split("+")} <= SOURCES.keys()
            assert {*rule.to} <= {*SINKS, "*"}
    with pytest.raises(SpecError, match="flow: rule-of-3 is not a profile"):
        ExecutionPolicy(flow="rule-of-3")


# Which rule decides


def flows(policy: ExecutionPolicy, labels: list[str], sink: str, of_session: list[str] | None = None) -> list[str]:
    found = find_flows(policy.layers, (sink,), labels, labels if of_session is None else of_session)
    return [f"{'+'.join(flow.labels)} {flow.then} {flow.layer}" for flow in found]


def test_first_matching_rule_decides_about_each_label() -> None:
    policy = ExecutionPolicy(
        flow=(
            FlowRule(["private:crm"], ["outside:crm"], "allow"),
            FlowRule(["private"], ["outside"], "refuse"),
            FlowRule(["*"], ["*"], "ask"),
        )
    )
    assert flows(policy, ["private:crm"], "outside:crm") == []
    assert flows(policy, ["private:crm"], "outside") == ["private:crm refuse 0"]
    assert flows(policy, ["private:mail", "untrusted"], "outside:crm") == ["private:mail refuse 0", "untrusted ask 0"]
    assert flows(policy, ["untrusted"], "money") == ["untrusted ask 0"]
    assert flows(policy, [], "money") == []


def test_both_labels_at_once() -> None:
    policy = ExecutionPolicy(flow=(FlowRule(["untrusted+private"], ["outside"], "refuse"),))
    assert flows(policy, ["untrusted"], "outside") == []
    assert flows(policy, ["private:mail"], "outside") == []
    assert flows(policy, ["private:mail", "untrusted"], "outside") == ["untrusted+private:mail refuse 0"]


def test_strictest_policy_decides() -> None:
    outer = ExecutionPolicy(flow=(FlowRule(["untrusted"], ["outside"], "refuse"),))
    inner = outer.narrowed(flow=(FlowRule(["*"], ["*"], "allow"),))
    assert flows(inner, ["untrusted"], "outside") == ["untrusted refuse 1"]
    stricter = ExecutionPolicy(flow=(ASK,)).narrowed(flow=(FlowRule(["untrusted"], ["*"], "refuse"),))
    assert flows(stricter, ["untrusted"], "outside") == ["untrusted refuse 0", "untrusted ask 1"]


def test_inner_policy_can_only_add_labels() -> None:
    outer = ExecutionPolicy(labels=(FlowLabels("t.*", sources=["private"], sinks=["money"]),), flow=(ASK,))
    inner = outer.narrowed(labels=(FlowLabels("t.x", sources=[], sinks=["public"], declassifies=["private"]),))
    declared = ToolPolicy(effects=("net",))
    assert flow_of(outer, "t.x", declared) == (("private",), ("money",), ())
    assert flow_of(inner, "t.x", declared) == (("private",), ("money", "public"), ())


def test_session_rules_see_everything_that_was_read() -> None:
    rule = FlowRule(["untrusted+private"], ["outside"], "refuse", by="session")
    with engine_with(rule) as engine:
        run(engine, "page")
        assert code(engine, "send", "a@b.example", "nothing in common") == "ok"
        run(engine, "mail")
        assert code(engine, "send", "a@b.example", "nothing in common") == "policy.flow"
        assert run(engine, "upper", "nothing in common").labels == ("untrusted", "private:mail")


def test_profile_about_any_sink_includes_the_sinks_of_a_host() -> None:
    for name in ("untrusted-text", "rule-of-two"):
        labels = [FlowLabels("t.send", sinks=["archive:cold"])]
        with engine_with(*FLOW_PROFILES[name], labels=labels) as engine:
            run(engine, "page")
            run(engine, "mail")
            assert code(engine, "send", ADDRESS, "hello") == "policy.flow", name


def test_profile_by_name() -> None:
    answers: list[ApprovalRequest] = []
    assert ExecutionPolicy(flow="lethal-trifecta").flow == FLOW_PROFILES["lethal-trifecta"]
    with engine_with(*FLOW_PROFILES["lethal-trifecta"], answers=answers) as engine:
        run(engine, "page")
        run(engine, "mail")
        assert code(engine, "send", "a@b.example", "hello") == "ok"
    assert [request.flows for request in answers] == [
        ("sends untrusted and private:mail data from t.page (call 1) and t.mail (call 2) to outside",)
    ]


# Refusals


@pytest.mark.parametrize("call", [code, code_of_call])
def test_refusal_names_labels_sources_and_sink_and_no_value(call: Any) -> None:
    with engine_with(REFUSE) as engine:
        run(engine, "page")
        error = run(engine, "send", ADDRESS, "x").error
        assert isinstance(error, PolicyError)
        assert str(error) == (
            "t.send: would send untrusted data from t.page (call 1) to outside, which the host does not allow"
        )
        assert (error.code, error.retry, error.need) == ("policy.flow", "host", "flow:outside")
        assert error.rule == "untrusted -> outside: refuse"
        assert error.remedy == (
            "t.send: would send untrusted data from t.page (call 1) to outside (rule: untrusted -> outside: refuse); "
            'to permit it, put a rule before it with from = ["untrusted"], to = ["outside"], then = "allow"'
        )
        assert engine.refusals[-1].code == "policy.flow"
        assert call(engine, "send", ADDRESS) == "policy.flow"


def read_everything(engine: Engine) -> None:
    """Read a page, a mail, and a document with a label of its own."""
    run(engine, "page")
    run(engine, "mail")
    engine.add_labelled("The price list.", ["private:crm"])


@pytest.mark.parametrize(
    ("by", "sources"), [("values", "t.search (call 2)"), ("session", "t.page (call 1) and t.search (call 2)")]
)
def test_only_what_the_rule_follows_is_named(by: Any, sources: str) -> None:
    """The page is not in the arguments; only a rule by session assumes that it is."""
    answers: list[ApprovalRequest] = []
    flow = f"untrusted data from {sources} to outside"
    for then in ("refuse", "ask"):
        with engine_with(FlowRule(["untrusted"], ["outside"], then, by), answers=answers) as engine:
            run(engine, "page")
            run(engine, "search", "shoes")
            error = run(engine, "send", "cheap-offers.example").error
            if then == "refuse":
                assert str(error) == f"t.send: would send {flow}, which the host does not allow"
    assert [request.flows for request in answers] == [(f"sends {flow}",)]


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ([REFUSE], PAGE),
        ([FlowRule(["private"], ["outside"]), FlowRule(["untrusted"], ["*"])], f"{PAGE} {MAIL}"),
        ([FlowRule(["untrusted"], ["outside"], by="session")], "hello"),
        ([FlowRule(["untrusted", "private"], ["outside"], by="session")], "hello"),
        (FLOW_PROFILES["lethal-trifecta"], "hello"),
        ([FlowRule(["untrusted+private", "private:mail"], ["outside"], "refuse", "session")], "hello"),
    ],
    ids=["values", "two rules", "session", "either label", "both labels", "both labels or one"],
)
def test_remedy_permits_the_call(rules: list[FlowRule], text: str) -> None:
    with engine_with(*rules) as engine:
        read_everything(engine)
        error = run(engine, "send", "a@b.example", text).error
        assert error is not None
    stated = error.remedy.partition("a rule before it with ")[2].split(" and a rule with ")
    tables = [tomllib.loads(re.sub(r", (?=\w+ = )", "\n", keys)) for keys in stated]
    exceptions = [FlowRule(keys.pop("from"), **keys) for keys in tables]

    with engine_with(*exceptions, *rules) as engine:
        read_everything(engine)
        assert code(engine, "send", "a@b.example", text) == "ok"


def test_remedy_for_two_labels_at_once_permits_no_single_label() -> None:
    (rule,) = FLOW_PROFILES["lethal-trifecta"]
    with engine_with(rule) as engine:
        run(engine, "page")
        run(engine, "mail")
        error = run(engine, "send", "a@b.example", "hello").error
    assert error is not None
    assert error.remedy.endswith('from = ["untrusted+private:mail"], to = ["outside"], then = "allow", by = "session"')


def test_question_without_an_approver_is_a_refusal() -> None:
    with engine_with(ASK) as engine:
        run(engine, "page")
        error = run(engine, "send", ADDRESS).error
        assert error is not None
        assert str(error).endswith("to outside, which needs an approval, but there is no approver")
        assert "pass an approver, or put a rule before it" in error.remedy


def test_what_a_sender_reads_while_it_runs_is_refused() -> None:
    for rule, text in ((REFUSE, "which the host does not allow"), (ASK, "none can be given while the tool runs")):
        answers: list[ApprovalRequest] = []
        with engine_with(rule, answers=answers) as engine:
            run(engine, "keep", "note", "t.page")
            error = run(engine, "send_var", "a@b.example", "note").error
            assert error is not None
            assert (error.code, error.retry) == ("policy.flow", "host")
            assert str(error).endswith(text)
            assert code(engine, "send_var", "a@b.example", "other") == "ok"
        assert answers == []


# Approvals


def test_approval_of_a_flow_is_for_one_call() -> None:
    """The approver answers ``for_session``, which counts for nothing here."""
    answers: list[ApprovalRequest] = []
    with engine_with(ASK, answers=answers) as engine:
        run(engine, "page")
        assert [code(engine, "send", ADDRESS), code_of_call(engine, "send", ADDRESS)] == ["ok", "ok"]
        assert code(engine, "send", "ada@home.example") == "ok"
    assert [request.flows for request in answers] == [("sends untrusted data from t.page (call 1) to outside",)] * 2


def test_approver_may_change_the_arguments() -> None:
    def change(request: ApprovalRequest) -> Approval:
        return Approval.modify({**request.arguments, "to": "ada@home.example"})

    with engine_with(ASK, approver=change) as engine:
        run(engine, "page")
        assert run(engine, "send", ADDRESS).labels == ()


def test_rejected_flow() -> None:
    with engine_with(ASK, approver=lambda request: Approval.reject("no mail")) as engine:
        run(engine, "page")
        assert code(engine, "send", ADDRESS) == "policy.rejected"
        assert code(engine, "send", "ada@home.example") == "ok"


def test_flow_and_required_approval_ask_once() -> None:
    answers: list[ApprovalRequest] = []
    with engine_with(ASK, answers=answers, allow=("t.page",), otherwise="ask") as engine:
        run(engine, "page")
        assert code(engine, "send", "ada@home.example") == "ok"
        assert code(engine, "send", "ada@home.example") == "ok"  # approved for the session
        assert code(engine, "send", ADDRESS) == "ok"
    assert [bool(request.flows) for request in answers] == [False, True]


def test_approval_is_valid_for_the_sources_that_were_shown() -> None:
    """The call reads another page while it runs, which the request did not name."""
    answers: list[ApprovalRequest] = []
    with engine_with(ASK, answers=answers) as engine:
        run(engine, "keep", "note", "t.page")
        run(engine, "search", "shoes")
        assert code(engine, "send_var", "cheap-offers.example", "other") == "ok"
        assert code(engine, "send_var", "cheap-offers.example", "note") == "policy.flow"
    assert [request.flows for request in answers] == [("sends untrusted data from t.search (call 3) to outside",)] * 2


def test_changed_arguments_are_not_approved_with_their_old_sources() -> None:
    def change(request: ApprovalRequest) -> Approval:
        return Approval.modify({**request.arguments, "to": "ada@home.example"})

    with engine_with(ASK, approver=change) as engine:
        run(engine, "keep", "note", "t.page")
        run(engine, "recall", "note")
        assert code(engine, "send_var", ADDRESS, "other") == "ok"
        assert code(engine, "send_var", ADDRESS, "note") == "policy.flow"


def test_approver_without_a_hash_is_asked_once() -> None:
    """About a tool that requires approval and about a flow."""

    @attrs.define
    class Approver:
        asked: list[str] = attrs.field(factory=list)

        def __call__(self, request: ApprovalRequest) -> Approval:
            self.asked.append(request.tool)
            return Approval.approve(for_session=True)

    approver = Approver()
    with engine_with(ASK, approver=approver, allow=("t.page",), otherwise="ask") as engine:
        session = engine.session(policy=engine.policy.narrowed())
        run(session, "page")
        assert [code(session, "send", "ada@home.example") for _ in range(2)] == ["ok", "ok"]  # approved for the session
        assert code(session, "send", ADDRESS) == "ok"
    assert approver.asked == ["t.send", "t.send"]


def test_preapproved_tool_still_asks_about_flows() -> None:
    answers: list[ApprovalRequest] = []
    with engine_with(ASK, answers=answers, preapproved=("t.send",)) as engine:
        run(engine, "page")
        assert code(engine, "send", ADDRESS) == "ok"
    assert len(answers) == 1


def test_nearest_approver_answers_for_the_policy_that_asks() -> None:
    asked: list[str] = []

    def approver(name: str) -> Any:
        return lambda request: asked.append(name) or Approval.approve()

    with engine_with(ASK, approver=approver("outer")) as engine:
        session = engine.session(policy=engine.policy.narrowed(flow=(), approver=approver("inner")))
        run(session, "page")
        assert code(session, "send", ADDRESS) == "ok"
    assert asked == ["outer"]


# Suspended calls


def suspended(engine: Any, waiting: list[ApprovalRequest]) -> PendingApproval:
    run(engine, "page")
    assert code(engine, "send", ADDRESS, "hello") == "policy.pending"
    return PendingApproval.of(waiting.pop())


@pytest.mark.parametrize("is_read_again", [True, False])
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Approval.approve(), "ok"),
        (Approval.reject(), "policy.rejected"),
        (Approval.modify({"to": "ada@home.example", "body": "changed"}), "ok"),
        (Approval.modify({"too": "ada@home.example"}), "arg.invalid"),
    ],
)
def test_answer_to_a_suspended_flow(answer: Approval, outcome: str, is_read_again: bool, tmp_path: Path) -> None:
    """Also where the session that resumes it has not read what the other one had."""
    waiting: list[ApprovalRequest] = []

    def wait(request: ApprovalRequest) -> Approval:
        waiting.append(request)
        return Approval.suspend()

    with engine_with(ASK, approver=wait) as engine:
        pending = PendingApproval.load(suspended(engine, waiting).save(tmp_path))
        assert pending.flows == ("sends untrusted data from t.page (call 1) to outside",)
        if is_read_again:
            result = engine.resume(pending, answer)
    if not is_read_again:
        with engine_with(ASK, approver=wait) as later:
            result = later.resume(pending, answer)
    assert ("ok" if result.error is None else checked_code(result.error)) == outcome
    assert waiting == []


def test_answer_is_not_valid_for_more_flows() -> None:
    waiting: list[ApprovalRequest] = []

    def wait(request: ApprovalRequest) -> Approval:
        waiting.append(request)
        return Approval.suspend()

    rules = (FlowRule(["untrusted"], ["outside"]), FlowRule(["private"], ["outside"]))
    with engine_with(*rules, approver=wait) as engine:
        run(engine, "page")
        assert code(engine, "send", ADDRESS, "4471-beta-gamma") == "policy.pending"
        pending = PendingApproval.of(waiting.pop())
        run(engine, "mail")
        error = engine.resume(pending, Approval.approve()).error
        assert error is not None
        assert (error.code, error.retry) == ("policy.pending", "later")
        assert len(waiting[0].flows) == 2


# Decisions before a call


def test_check_knows_flows() -> None:
    answers: list[ApprovalRequest] = []
    call = ToolCall("t.send", [ADDRESS])
    for rule, allowed in ((REFUSE, False), (ASK, True)):
        with engine_with(rule, answers=answers) as engine:
            assert engine.check([call])[0].flows == ()
            run(engine, "page")
            decision = engine.check([call])[0]
            assert decision.allowed is allowed
            assert decision.needs_approval is allowed
            assert decision.code == ("" if allowed else "policy.flow")
            assert decision.flows == (("sends untrusted data from t.page (call 1) to outside",) if allowed else ())
    assert answers == []


def test_file_named_in_an_argument_is_known_beforehand(tmp_path: Path) -> None:
    answers: list[ApprovalRequest] = []
    with engine_with(ASK, answers=answers, host=Host(sandbox_dir=tmp_path)) as engine:
        (tmp_path / "own.txt").write_text("mine")
        run(engine, "save", "note.txt", "t.page")
        assert engine.execute(ToolCall("t.attach", ["note.txt"])).value == len(PAGE)
        assert engine.execute(ToolCall("t.attach", ["own.txt"])).value == 4
    assert [request.flows for request in answers] == [("sends untrusted data from t.page (call 2) to outside",)]


# Allow-lists


def test_tools_outside_the_list_are_refused_or_ask() -> None:
    answers: list[ApprovalRequest] = []
    with engine_with(answers=answers) as engine:
        refusing = engine.narrowed(allow=("t.page", "t.up*"))
        asking = engine.narrowed(allow=("t.page", "t.up*"), otherwise="ask")
        for session in (refusing, asking):
            assert code(session, "page") == "ok"
            assert code(session, "upper", "x") == "ok"
        assert code(refusing, "mail") == "policy.not_allowed"
        assert answers == []
        assert run(asking, "mail").value == MAIL
        assert [(request.tool, request.flows) for request in answers] == [("t.mail", ())]
    with engine_with() as engine:
        error = run(engine.narrowed(allow=("t.page",), otherwise="ask"), "mail").error
        assert error is not None
        assert isinstance(error, PolicyError)
        assert (error.code, error.retry, error.rule) == ("policy.approval", "host", "otherwise")
        assert error.remedy == (
            "t.mail: requires approval, but there is no approver; pass an approver, or add 't.mail' to allow"
        )
        with pytest.raises(SpecError, match="otherwise must be"):
            engine.narrowed(otherwise="allow")  # type: ignore[arg-type]


def test_fault_in_the_check_refuses_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """No argument can pass because the search for its text failed."""
    with engine_with(REFUSE) as engine:
        run(engine, "page")

        def fail(values: object) -> None:
            raise MemoryError

        assert engine.memory.flow is not None
        monkeypatch.setattr(engine.memory.flow.texts, "search", fail)
        error = run(engine, "send", ADDRESS).error
        assert error is not None
        assert (error.code, error.retry, str(error)) == (
            "policy.check_failed",
            "host",
            "t.send: denied because a check failed (flow, MemoryError)",
        )
