"""Answers and failures of hooks."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from tests.calls.hook_calls import Answering, Telling, call, record

from neuroscript import PolicyError, hookimpl
from neuroscript.calls.hooks import MAX_REASON_CHARS, Hooks
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.records import CallRecord, PendingCall


def refusal(answer: Any) -> PolicyError:
    """Return the refusal that an answer of a hook becomes."""
    refused = Hooks([Answering(answer)]).refusal(call())
    assert isinstance(refused, PolicyError)
    return refused


# Answers of gates


@pytest.mark.parametrize("answer", [None, True, Decision("shop.refund", True)], ids=["None", "True", "a Decision"])
def test_a_gate_lets_a_call_pass(answer: Any) -> None:
    """In one of three ways."""
    assert Hooks([Answering(answer)]).refusal(call()) is None


@pytest.mark.parametrize(
    ("answer", "text", "retry"),
    [
        pytest.param("not on Sundays", "not on Sundays", "host", id="a sentence"),
        pytest.param(Decision("shop.refund", False, text="not today"), "not today", "never", id="a Decision"),
        pytest.param(PolicyError("not here"), "not here", "host", id="a PolicyError"),
        pytest.param("", "was refused by a hook", "host", id="an empty sentence"),
        pytest.param(
            Decision("shop.refund", False), "was refused by a hook", "never", id="a Decision without a sentence"
        ),
        pytest.param("a\x1b[2Jb\u202e", "a\\x1b[2Jb\\u202e", "host", id="a sentence for a terminal"),
        pytest.param("x" * 1_000, "x" * MAX_REASON_CHARS, "host", id="a sentence without an end"),
    ],
)
def test_a_gate_refuses_a_call(answer: Any, text: str, retry: str) -> None:
    """By a sentence, or by an answer that may hold one."""
    refused = refusal(answer)

    assert (f"shop.refund: {text}", "policy.hook", retry) == (str(refused), refused.code, refused.retry)
    assert ("shop.refund", "hook Answering") == (refused.tool, refused.rule)


@pytest.mark.parametrize("answer", [False, 0, 1, 1.0, [], {}, b"no"], ids=repr)
def test_a_gate_that_answers_nonsense_refuses(answer: Any) -> None:
    """An invalid answer grants nothing."""
    refused = refusal(answer)

    text = f"denied because a check returned {type(answer).__name__} (hook Answering)"
    assert (f"shop.refund: {text}", "policy.check_failed", "host", "hook Answering") == (
        str(refused),
        refused.code,
        refused.retry,
        refused.rule,
    )


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit(3), KeyError("secret")], ids=repr)
def test_a_gate_that_fails_refuses(error: BaseException) -> None:
    """The text of its error is not shown; the host finds it as the cause."""
    refused = refusal(error)

    text = f"denied because a check failed (hook Answering, {type(error).__name__})"
    assert (f"shop.refund: {text}", "policy.check_failed", "host", error) == (
        str(refused),
        refused.code,
        refused.retry,
        refused.__cause__,
    )


def test_a_gate_may_raise_its_refusal() -> None:
    """An error whose message may be shown."""
    error = PolicyError("not here", tool="other.tool", code="policy.denied", rule="other")
    refused = refusal(error)

    assert ("shop.refund: not here", "policy.hook", "host", error) == (
        str(refused),
        refused.code,
        refused.retry,
        refused.__cause__,
    )
    assert "hook Answering" == refused.rule


@pytest.mark.parametrize(
    ("answer", "retry", "need"),
    [
        (Decision("shop.refund", False, need="shop:pay:100", retry="model"), "model", "shop:pay:100"),
        (PolicyError("too much", need="shop:pay:100", retry="later"), "later", "shop:pay:100"),
        ("too much", "host", ""),
        (5, "host", ""),
    ],
    ids=["a Decision", "a PolicyError", "a sentence", "nonsense"],
)
def test_a_gate_can_set_retry_and_needs(answer: Any, retry: str, need: str) -> None:
    """Without them, the host must resolve the refusal."""
    refused = refusal(answer)

    assert (retry, need) == (refused.retry, refused.need)


def test_a_policy_error_with_an_invalid_text_refuses() -> None:
    """For anything that a plugin has stored there."""
    odd = PolicyError("")
    odd.text = 5  # type: ignore[assignment]

    assert "shop.refund: was refused by a hook" == str(refusal(odd))


def test_an_interrupt_of_the_main_thread_passes_a_gate() -> None:
    """The user wants to go, and nothing else."""
    with pytest.raises(KeyboardInterrupt):
        refusal(KeyboardInterrupt())


def test_an_interrupt_that_another_thread_raises_refuses() -> None:
    """The user did not press a key."""
    refused: list[PolicyError] = []
    thread = threading.Thread(target=lambda: refused.append(refusal(KeyboardInterrupt())))
    thread.start()
    thread.join()

    assert [("policy.check_failed", "host")] == [(each.code, each.retry) for each in refused]


def test_the_first_gate_that_refuses_decides() -> None:
    """Later plugins come first; the remaining hooks are not called."""
    hooks = Hooks([Answering(ValueError()), Answering("second"), Answering(None)])
    refused = hooks.refusal(call())

    assert isinstance(refused, PolicyError)
    assert ("second", "hook Answering 2") == (refused.text, refused.rule)


class Changing:
    """A gate that modifies its argument."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @hookimpl
    def neuroscript_decide(self, call: PendingCall) -> None:
        self.seen.append([*call.arguments["items"]])
        call.arguments["items"].append("more")


def test_a_gate_does_not_see_changes_of_another_gate() -> None:
    """Each receives the values that the tool will receive."""
    first, second = Changing(), Changing()
    pending = call(items=["one"])

    assert Hooks([first, second]).refusal(pending) is None
    assert ([["one"]], [["one"]], {"items": ["one"]}) == (first.seen, second.seen, pending.arguments)


# Observers that fail


class Broken:
    """An observer that fails."""

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        raise ValueError(f"secret {record.tool}")

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        raise SystemExit("secret")


def notify(hooks: Hooks, logger: Any) -> None:
    """Notify of one call, as the call pipeline does."""
    for observers in (hooks.started, hooks.finished):
        for observer in observers:
            try:
                observer(record())
            except BaseException as error:
                hooks.failed(observer, error, logger)


def test_a_failing_observer_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Once for each hook of each plugin, with its name and the type of the error, never the message."""
    hooks = Hooks([Broken(), Broken()])
    for _ in range(3):
        notify(hooks, logging.getLogger("test"))

    assert [
        f"the hook {hook} of the plugin {plugin} failed ({error}); further failures of it are not logged"
        for hook, error in (("neuroscript_call_started", "ValueError"), ("neuroscript_call_finished", "SystemExit"))
        for plugin in ("Broken 2", "Broken")
    ] == caplog.messages


def test_a_call_ends_with_the_hooks_of_its_start(caplog: pytest.LogCaptureFixture) -> None:
    """Hooks may be added while it runs; a failure then belongs to a hook that is no longer registered."""
    before, since = Hooks([Broken()]), Hooks([Broken(), Telling([])])
    since.failed(before.started[0], ValueError(), logging.getLogger("test"))

    assert 1 == len(caplog.messages)


def test_a_logger_that_fails_is_no_affair_of_a_call() -> None:
    """A full disk under a log stops no tool."""

    class Full(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("no space left")

    logger = logging.Logger("full")
    logger.addHandler(Full())

    notify(Hooks([Broken()]), logger)


def test_an_interrupt_of_the_main_thread_passes_an_observer() -> None:
    """It is raised again."""
    hooks = Hooks([Telling([])])

    with pytest.raises(KeyboardInterrupt):
        hooks.failed(hooks.started[0], KeyboardInterrupt(), logging.getLogger("test"))


def test_an_interrupt_that_another_thread_raises_in_an_observer_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """It is reported like any other."""
    hooks = Hooks([Telling([])])
    thread = threading.Thread(
        target=hooks.failed, args=(hooks.started[0], KeyboardInterrupt(), logging.getLogger("test"))
    )
    thread.start()
    thread.join()

    assert ["KeyboardInterrupt"] == [message.split("(")[1].split(")")[0] for message in caplog.messages]
