"""Labels pass through everything that the runtime carries out: exactly, and no further."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    ExecutionPolicy,
    FlowLabels,
    FlowRule,
    Host,
    MemoryAudit,
    Recording,
    Spill,
    ToolCall,
)

from .mail_tools import ADDRESS, ASK, PAGE, REFUSE, checked_code, code, code_of_call, engine_with, run


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(sandbox_dir=tmp_path)


def test_without_rules_nothing_is_tracked() -> None:
    with engine_with() as engine:
        assert run(engine, "page").labels == ()
        assert run(engine, "keep", "x", "t.page").value == []
        assert engine.labels == ()
        assert engine.memory.flow is None
        assert code(engine, "send", ADDRESS) == "ok"


def test_result_carries_what_the_tool_declares() -> None:
    with engine_with(REFUSE) as engine:
        assert run(engine, "page").labels == ("untrusted",)
        assert run(engine, "mail").labels == ("private:mail",)
        assert run(engine, "send", "a@b.example").labels == ()
        assert engine.labels == ("untrusted", "private:mail")


@pytest.mark.parametrize("call", [code, code_of_call])
def test_text_of_a_result_is_found_in_a_later_argument(call: Any) -> None:
    with engine_with(REFUSE) as engine:
        assert call(engine, "send", ADDRESS) == "ok"
        assert call(engine, "page") == "ok"
        assert call(engine, "send", ADDRESS) == "policy.flow"
        assert call(engine, "send", "ada@home.example", "see you at noon") == "ok"


def test_words_of_the_user_may_be_sent() -> None:
    with engine_with(REFUSE) as engine:
        engine.user_said(f"write to {ADDRESS}")
        assert code(engine, "page") == "ok"
        assert code(engine, "send", ADDRESS) == "ok"


def test_arguments_label_the_result() -> None:
    with engine_with(REFUSE) as engine:
        assert run(engine, "upper", "harmless words").labels == ()
        run(engine, "page")
        assert run(engine, "upper", ADDRESS).labels == ("untrusted",)
        assert run(engine, "upper", "harmless words").labels == ()


@pytest.mark.parametrize("call", [code, code_of_call])
def test_nested_result_labels_what_follows(call: Any) -> None:
    with engine_with(REFUSE) as engine:
        assert call(engine, "read_and_send", "t.page", "a@b.example") == "policy.flow"
        assert call(engine, "read_and_send", "t.mail", "a@b.example") == "ok"
    with engine_with(REFUSE) as engine:
        assert call(engine, "relay", "t.page", []) == "ok"
        assert engine.labels == ("untrusted",)
        assert call(engine, "send", ADDRESS) == "policy.flow"


@pytest.mark.parametrize("call", [code, code_of_call])
def test_variable_keeps_the_labels_of_the_call_that_set_it(call: Any) -> None:
    with engine_with(REFUSE) as engine:
        assert call(engine, "keep", "note", "t.mail") == "ok"
        assert call(engine, "keep", "note", "t.page") == "ok"
        assert run(engine, "recall", "note").labels == ("untrusted",)
        assert run(engine, "recall", "other").labels == ()
        assert run(engine, "extend", "note").labels == ("untrusted",)
        assert run(engine, "recall", "note").labels == ("untrusted",)
        assert call(engine, "clear", "note") == "ok"
        assert run(engine, "recall", "note").labels == ()


def test_handle_keeps_labels() -> None:
    with engine_with(REFUSE) as engine:
        handle = run(engine, "shelve", "t.page").value
        engine.memory.flow.texts = type(engine.memory.flow.texts)()  # type: ignore[union-attr]  # the text is not searched here
        assert run(engine, "unshelve", handle).labels == ("untrusted",)


@pytest.mark.parametrize("call", [code, code_of_call])
def test_file_keeps_labels_in_every_session(call: Any, host: Host) -> None:
    with engine_with(REFUSE, host=host) as engine:
        writer, reader = engine.session(), engine.session()
        assert call(writer, "save", "a/note.txt", "t.page") == "ok"
        assert run(reader, "load", "a/note.txt").labels == ("untrusted",)
        assert run(reader, "names", "a").labels == ("untrusted",)
        assert run(reader, "names", ".").labels == ("untrusted",)
        assert call(reader, "send", ADDRESS) == "policy.flow"
        assert run(engine.session(), "names", ".").labels == ("untrusted",)


@pytest.mark.parametrize(
    ("how", "path", "labels"),
    [
        ("append", "note.txt", ("untrusted",)),
        ("replace", "note.txt", ()),
        ("move", "moved-note.txt", ("untrusted",)),
    ],
)
def test_changes_of_a_file_change_its_labels(how: str, path: str, labels: tuple[str, ...], host: Host) -> None:
    with engine_with(REFUSE, host=host) as engine:
        run(engine.session(), "save", "note.txt", "t.page")
        assert run(engine.session(), "change", "note.txt", how).ok
        assert run(engine.session(), "load", path).labels == labels


def test_deleted_file_leaves_no_label(host: Host) -> None:
    with engine_with(REFUSE, host=host) as engine:
        run(engine.session(), "save", "note.txt", "t.page")
        run(engine.session(), "change", "note.txt", "delete")
        run(engine.session(), "change", "note.txt", "append")
        assert run(engine.session(), "load", "note.txt").labels == ()


def test_items_of_a_stream_are_labelled() -> None:
    with engine_with(REFUSE) as engine:
        items = engine.stream("t.pages")
        next(items)
        assert engine.labels == ("untrusted",)
        items.close()
        assert code(engine, "send", "instructions") == "ok"  # that item was never read
    with engine_with(REFUSE) as engine:
        assert run(engine, "pages").labels == ("untrusted",)
        assert code(engine, "send", ADDRESS) == "policy.flow"


def test_error_of_a_tool_is_labelled() -> None:
    with engine_with(REFUSE) as engine:
        result = run(engine, "broken")
        assert result.labels == ("untrusted",)
        assert code(engine, "send", ADDRESS) == "policy.flow"


def test_async_calls_are_tracked() -> None:
    async def calls() -> str:
        with engine_with(REFUSE) as engine:
            await engine.acall("t.page")
            assert (await engine.aexecute(ToolCall("t.asend", ["x@y.example"]))).ok
            result = await engine.aexecute(ToolCall("t.asend", [ADDRESS]))
            assert result.error is not None
            return checked_code(result.error)

    assert asyncio.run(calls()) == "policy.flow"


def test_spilled_result_labels_its_file(host: Host) -> None:
    with engine_with(REFUSE, host=host, spill=Spill(threshold_bytes=40)) as engine:
        result = run(engine, "page")
        assert result.spilled is not None
        assert run(engine.session(), "load", result.spilled.path).labels == ("untrusted",)


def test_sessions_are_separate() -> None:
    with engine_with(REFUSE) as engine:
        first, second = engine.session(), engine.session()
        run(first, "page")
        assert (first.labels, second.labels, engine.labels) == (("untrusted",), (), ())
        assert code(second, "send", ADDRESS) == "ok"
        assert code(first, "send", ADDRESS) == "policy.flow"


def test_narrowed_session_shares_what_was_read() -> None:
    with engine_with(REFUSE) as engine:
        session = engine.session()
        within = session.narrowed(allow=("t.*",))
        run(within, "page")
        assert code(session, "send", ADDRESS) == "policy.flow"


def test_rules_of_a_narrowed_session_start_tracking() -> None:
    with engine_with() as engine:
        session = engine.session()
        within = session.narrowed(engine.policy.narrowed(flow=(REFUSE,)))
        run(within, "page")
        assert code(within, "send", ADDRESS) == "policy.flow"
        assert code(session, "send", ADDRESS) == "ok"


def test_records_name_labels_only() -> None:
    audit = MemoryAudit()
    with engine_with(REFUSE, audit=audit) as engine:
        run(engine, "page")
        run(engine, "send", ADDRESS)
        engine.call("t.relay", ["t.page", []])
    assert [(each.tool, each.kind, each.labels) for each in audit.records] == [
        ("t.page", "outcome", ("untrusted",)),
        ("t.send", "refused", ("untrusted",)),
        ("t.page", "outcome", ("untrusted",)),
        ("t.relay", "outcome", ("untrusted",)),
    ]
    assert audit.records[1].rule == "untrusted -> outside: refuse"
    assert audit.records[1].needs == ()


def test_compiled_call_with_nested_result_is_recorded_with_labels(tmp_path: Path) -> None:
    """The first call of a session is compiled; its Runtime still finds out what it reads."""
    audit = MemoryAudit()
    with engine_with(REFUSE, audit=audit, recording=Recording(tmp_path / "calls.jsonl")) as engine:
        engine.call("t.relay", ["t.page", []])
        assert engine.labels == ("untrusted",)
    assert audit.records[-1].labels == ("untrusted",)


def test_host_declares_labels() -> None:
    labels = (FlowLabels("t.mail", sources=["private:vault", "untrusted"]), FlowLabels("t.se*", sinks=["outside:crm"]))
    rules = FlowRule(["private"], ["outside:crm"], "refuse")
    with engine_with(rules, labels=labels) as engine:
        assert run(engine, "mail").labels == ("private:vault", "untrusted")
        assert code(engine, "send", "x@y.example", "4471-beta-gamma") == "policy.flow"


def test_only_a_trusted_host_believes_a_declassification() -> None:
    for trusted, labels in ((False, ("untrusted",)), (True, ())):
        with engine_with(REFUSE, trusted=trusted) as engine:
            run(engine, "page")
            assert run(engine, "summary", PAGE).labels == labels
    with engine_with(REFUSE, labels=(FlowLabels("t.upper", declassifies=["untrusted"]),)) as engine:
        run(engine, "page")
        assert run(engine, "upper", PAGE).labels == ()


def test_results_without_text_can_be_trusted() -> None:
    for trust, labels in ((False, ("untrusted",)), (True, ())):
        with engine_with(REFUSE, trust_textless=trust) as engine:
            assert run(engine, "is_new").labels == labels
            assert run(engine, "page").labels == ("untrusted",)


def test_data_of_the_host_can_be_labelled() -> None:
    with engine_with(REFUSE) as engine:
        engine.add_labelled(PAGE, ["untrusted"], origin="attachment")
        error = run(engine, "send", ADDRESS).error
        assert error is not None
        assert str(error).startswith("t.send: would send untrusted data from attachment to outside")


def test_other_engines_policies_do_not_matter() -> None:
    policy = ExecutionPolicy(flow=(ASK,))
    assert policy.has_flow_rules
    assert policy.narrowed(flow=()).has_flow_rules
    assert not ExecutionPolicy().has_flow_rules


def test_echo_of_an_argument_is_not_an_outsiders_word() -> None:
    """A result that repeats what the model asked for does not make that text untrusted."""
    with engine_with(REFUSE) as engine:
        assert run(engine, "search", "marmalade recipes").ok
        assert code(engine, "send", "ada@home.example", "marmalade recipes") == "ok"
        assert code(engine, "send", "cheap-offers.example") == "policy.flow"
        assert run(engine, "search", "cheap-offers.example").labels == ("untrusted",)
        assert code(engine, "send", "cheap-offers.example") == "policy.flow"
