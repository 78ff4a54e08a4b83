"""Remedies of refusals: the narrowest missing grant, shown to the host and never to a model."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    FileAudit,
    Host,
    PluginError,
    PolicyError,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
    result_to_data,
)
from neuroscript.errors import CallError
from neuroscript.llm import converse
from neuroscript.tools.toolset import failure

TEXT = {name: ArgSpec(name, ArgType.STRING) for name in ("url", "path", "name", "word")}
HIDDEN = ArgSpec("token", ArgType.STRING, secret=True)


def tools() -> Toolset:
    found = Toolset("t")

    def add(
        name: str, args: list[ArgSpec], needs: list[str], func: Any = lambda rt, *values: "ran", **more: Any
    ) -> None:
        spec = ToolSpec(name, "t", args, return_type=ArgType.ANY, return_nullable=True)
        found.add(spec, func, ToolPolicy(capabilities=needs, **more))

    add("get", [TEXT["url"]], ["net:read:{url.host}"])
    add("whole", [TEXT["url"]], ["web:open:{url}"])
    add("read", [TEXT["path"]], ["fs:read:{path}"])
    add("copy", [TEXT["path"], TEXT["name"]], ["fs:read:{path}", "fs:write:{name}"])
    add("ask", [], ["model:use"])
    add("open", [TEXT["word"]], ["lock:open:{word}"])
    add("login", [HIDDEN, TEXT["word"]], ["lock:open:{token}-{word}"])
    add("requires", [TEXT["word"]], [], lambda rt, word: rt.require(f"lock:open:{word}"))
    add("declares", [TEXT["word"]], ["lock:open:{word}"], lambda rt, word: rt.require(f"lock:open:{word}"))
    add("outer", [TEXT["url"]], [], lambda rt, url: rt.call_tool("t.get", [url]))
    add("trusted", [], [], requires_trust=True)
    add("approved", [], [], requires_approval=True)
    return found


def refusal(name: str, *args: Any, **policy: Any) -> PolicyError:
    with Engine(toolsets=[tools()], plugins="none", policy=ExecutionPolicy(**policy)) as engine:
        error = engine.execute(ToolCall(name, list(args))).error
    assert isinstance(error, PolicyError)
    return error


@pytest.mark.parametrize(
    ("name", "args", "text", "needs"),
    [
        ("t.get", ["https://example.com/a?b=c"], "needs net:read", ["net:read:example.com:443"]),
        ("t.get", ["http://ada:pw@EXAMPLE.com:8080/"], "needs net:read", ["net:read:example.com:8080"]),
        ("t.read", ["data/./a.txt"], "needs fs:read:data/./a.txt", ["fs:read:data/a.txt"]),
        ("t.read", ["a*b.txt"], r"needs fs:read:a\*b.txt", [r"fs:read:a\*b.txt"]),
        ("t.copy", ["a.txt", "b.txt"], "needs fs:read:a.txt", ["fs:read:a.txt", "fs:write:b.txt"]),
        ("t.open", ["it's"], "needs lock:open", ["lock:open:it's"]),
        ("t.open", ["x" * 64], "needs lock:open", [f"lock:open:{'x' * 64}"]),
    ],
)  # fmt: skip
def test_refusal_gives_the_narrowest_grants(name: str, args: list[str], text: str, needs: list[str]) -> None:
    """It lists every missing grant; exactly these permit the call, and a grant that differs by a letter does not."""
    error = refusal(name, *args)

    assert str(error) == f"{name}: {text}"
    assert (error.code, error.retry, error.needs, error.grants) == ("policy.capability", "host", (*needs,), (*needs,))
    plain = ", ".join(each.replace("\\", "") for each in needs)
    assert error.remedy == f"{name}: needs {plain}; grant it with grants={(*needs,)!r}"
    with Engine(toolsets=[tools()], plugins="none", policy=ExecutionPolicy(grants=needs)) as engine:
        assert engine.call(name, args) == "ran"
        error = refusal(
            name, *(f"{each}x".replace(".com", ".org").replace(".Com", ".org") for each in args), grants=needs
        )
        assert (error.code, error.retry) == ("policy.capability", "host")


def test_need_for_a_whole_resource_suggests_the_whole_resource() -> None:
    """No narrower grant is sufficient."""
    error = refusal("t.ask")

    assert (str(error), error.needs, error.grants) == ("t.ask: needs model:use", ("model:use",), ("model:use:*",))
    assert error.remedy == "t.ask: needs model:use; grant it with grants=('model:use:*',)"


@pytest.mark.parametrize("value", ["https://example.com/a", "a,b", "a:b", "{x}", "[x]", "a\\b", "**", "é"])
def test_suggested_grant_covers_only_the_call(value: str) -> None:
    """Special characters of the value are escaped into one literal scope."""
    error = refusal("t.open", value)

    (grant,) = error.grants
    with Engine(toolsets=[tools()], plugins="none", policy=ExecutionPolicy(grants=[grant])) as engine:
        assert engine.call("t.open", [value]) == "ran"
    for other in (f"{value}x", "x", ""):
        error = refusal("t.open", other, grants=[grant])
        assert (error.code, error.retry) == ("policy.capability", "host")


@pytest.mark.parametrize(
    ("name", "args", "remedy"),
    [
        ("t.open", ["x" * 65], f"t.open: needs lock:open:{'x' * 64}…"),
        ("t.open", ["a\x1b[2J"], r"t.open: needs lock:open:a\x1b[2J"),
        ("t.whole", ["https://ada:pw@example.com/a?token=1#x"], "t.whole: needs web:open:https://example.com/a"),
        ("t.whole", ["https://example.com/a?token=1"], "t.whole: needs web:open:https://example.com/a"),
        ("t.whole", ["https://ada@example.com"], "t.whole: needs web:open:https://example.com"),
        ("t.login", ["4711", "x"], "t.login: needs lock:open"),
        ("t.login", ["long secret token 42", "x"], "t.login: needs lock:open"),
    ],
    ids=["long", "control characters", "URL", "query", "user", "short secret", "secret"],
)
def test_hidden_scopes_are_omitted_and_suggest_no_grant(name: str, args: list[str], remedy: str) -> None:
    """A scope is cut to 64 characters and escaped; secrets, user info and queries are never shown."""
    error = refusal(name, *args)

    assert (error.remedy, error.grants) == (remedy, ())


@pytest.mark.parametrize("word", ["hunter22", "a/hunter22", f"{'x' * 60}hunter22", "hunter%32%32?"])
@pytest.mark.parametrize("name", ["t.open", "t.read", "t.requires"])
def test_need_with_another_secret_is_shown_without_its_scope(name: str, word: str) -> None:
    """A grant of the redacted scope would permit something else; redaction happens before the scope is cut."""
    secret = "hunter22" if "%" not in word else "hunter%32%32"
    grants = [f"lock:open:{secret}-x"]
    with Engine(toolsets=[tools()], plugins="none", policy=ExecutionPolicy(grants=grants)) as engine:
        engine.call("t.login", [secret, "x"])
        error = engine.execute(ToolCall(name, [word])).error
        (decision,) = engine.check([ToolCall(name, [word])])

    need = "fs:read" if name == "t.read" else "lock:open"
    assert isinstance(error, PolicyError) and (error.needs, error.grants) == ((need,), ())
    assert error.remedy.removesuffix(", which this call does not declare as a capability") == f"{name}: needs {need}"
    assert "hunter" not in f"{error!r} {vars(error)!r} {decision!r}"
    if name != "t.requires":
        assert (decision.needs, decision.grants, decision.remedy) == ((need,), (), f"{name}: needs {need}")


def test_log_suggests_no_grant_for_a_scope_that_only_it_redacts() -> None:
    """A PIN of the host is hidden in the log, but not in a session that may not read it."""
    log, logger = io.StringIO(), logging.getLogger("neuroscript.test.remedy.pin")
    logger.handlers, logger.propagate = [logging.StreamHandler(log)], False
    logger.setLevel(logging.INFO)
    host = Host(logger=logger, secrets={"pin": "482913"})
    with Engine(toolsets=[tools()], plugins="none", host=host) as engine:
        error = engine.execute(ToolCall("t.open", ["482913"])).error

    assert isinstance(error, PolicyError) and error.grants == ("lock:open:482913",)
    assert log.getvalue() == "t.open: needs lock:open:[secret]\n"


def test_path_outside_the_sandbox_has_no_remedy() -> None:
    """Only the model can change it."""
    error = refusal("t.read", "../etc/passwd")

    assert (error.retry, error.remedy, error.grants) == ("model", "", ())


def test_tool_with_an_undeclared_need_is_reported() -> None:
    """A grant does not help: the tool, or the tool that calls it, must declare the capability."""
    granted = {"grants": ["lock:open:*", "net:read:*"]}

    own, outer = refusal("t.requires", "x", **granted), refusal("t.outer", "https://example.com", **granted)

    assert own.remedy == refusal("t.requires", "x").remedy
    assert outer.remedy == refusal("t.outer", "https://example.com").remedy

    assert own.remedy == "t.requires: needs lock:open:x, which this call does not declare as a capability"
    assert outer.remedy == (
        "t.get: needs net:read:example.com:443, which its caller t.outer does not declare as a capability"
    )
    assert (own.grants, outer.grants) == ((), ())


def test_narrower_policy_layer_suggests_the_same_grant() -> None:
    policy = ExecutionPolicy(grants=["net:read:*"]).narrowed(grants=["net:read:a.com"])
    with Engine(toolsets=[tools()], plugins="none", policy=policy) as engine:
        error = engine.execute(ToolCall("t.get", ["https://b.com"])).error

    assert isinstance(error, PolicyError) and error.grants == ("net:read:b.com:443",)


@pytest.mark.parametrize(
    ("name", "policy", "code", "remedy"),
    [
        ("t.trusted", {}, "policy.trust", "t.trusted: requires a trusted host; pass trusted=True"),
        ("t.approved", {}, "policy.approval", "t.approved: requires approval, but there is no approver; pass an approver, or preapproved=('t.approved',)"),
        ("t.ask", {"allow": ["u.*"], "otherwise": "ask", "preapproved": ["t.ask"]}, "policy.approval", "t.ask: requires approval, but there is no approver; pass an approver, or add 't.ask' to allow"),
        ("t.ask", {"deny": ["t.*"]}, "policy.denied", "t.ask: denied by the pattern 't.*' in deny"),
        ("t.ask", {"allow": ["u.*"]}, "policy.not_allowed", "t.ask: no pattern in allow matches it; add 't.ask' to allow"),
    ],
)  # fmt: skip
def test_every_complete_refusal_has_a_remedy(name: str, policy: Any, code: str, remedy: str) -> None:
    error = refusal(name, **policy)

    assert (error.code, error.retry, error.remedy) == (code, "host", remedy)


def test_import_failure_is_explained_to_the_host_only() -> None:
    error = failure(
        "acme.x", PluginError("acme 1.0", "cannot be loaded: RuntimeError: set ACME_KEY", code="plugin.import")
    )

    assert (str(error), error.retry) == ("acme.x: cannot be loaded (plugin.import)", "host")
    assert error.remedy == "acme.x: cannot be loaded: acme 1.0: cannot be loaded: RuntimeError: set ACME_KEY"


# Audience


def test_decision_contains_the_remedy_of_the_refusal() -> None:
    with Engine(toolsets=[tools()], plugins="none") as engine:
        call = ToolCall("t.get", ["https://example.com"])
        (decision,) = engine.check([call])
        error = engine.execute(call).error

    assert isinstance(error, PolicyError)
    assert (decision.remedy, decision.grants) == (error.remedy, error.grants)
    assert decision.text == "needs net:read"


def test_decision_shows_no_secret() -> None:
    with Engine(toolsets=[tools()], plugins="none") as engine:
        (decision,) = engine.check([ToolCall("t.login", ["4711", "x"])])

    assert (decision.remedy, decision.grants) == ("t.login: needs lock:open", ())


@pytest.mark.parametrize("name", ["t.requires", "t.declares", "t.outer"])
def test_refusal_inside_a_tool_is_logged_once(name: str) -> None:
    """It is logged like one before the tool runs, including nested calls."""
    log, logger = io.StringIO(), logging.getLogger("neuroscript.test.remedy.running")
    logger.handlers, logger.propagate = [logging.StreamHandler(log)], False
    logger.setLevel(logging.INFO)
    with Engine(host=Host(logger=logger), toolsets=[tools()], plugins="none") as engine:
        error = engine.execute(ToolCall(name, ["https://example.com"])).error

    assert error is not None and log.getvalue() == f"{error.remedy}\n"


def test_log_and_audit_log_show_the_missing_grant(tmp_path: Path) -> None:
    log = io.StringIO()
    logger = logging.getLogger("neuroscript.test.remedy")
    logger.handlers, logger.propagate = [logging.StreamHandler(log)], False
    logger.setLevel(logging.INFO)
    audit = tmp_path / "audit.jsonl"
    with Engine(host=Host(logger=logger), toolsets=[tools()], plugins="none", audit=FileAudit(audit)) as engine:
        engine.execute(ToolCall("t.get", ["https://example.com/a?token=1"]))
        engine.execute(ToolCall("t.trusted"))
        (first, second) = engine.refusals

    remedy = "t.get: needs net:read:example.com:443; grant it with grants=('net:read:example.com:443',)"
    assert log.getvalue() == f"{remedy}\nt.trusted: requires a trusted host; pass trusted=True\n"
    assert (first.needs, second.needs) == (("net:read:example.com:443",), ())
    assert json.loads(audit.read_text().splitlines()[0])["needs"] == ["net:read:example.com:443"]
    assert "token=1" not in audit.read_text()


def test_records_of_successful_calls_show_no_scopes_but_paths(tmp_path: Path) -> None:
    """Only a refusal needs the scopes."""
    with Engine(
        toolsets=[tools()], plugins="none", policy=ExecutionPolicy(grants=["*:*:*"]), audit=FileAudit(tmp_path / "a")
    ) as engine:
        engine.call("t.get", ["https://example.com"])

    assert json.loads((tmp_path / "a").read_text().splitlines()[-1])["needs"] == ["net:read"]


def test_no_model_sees_a_remedy() -> None:
    """Results, conversations and server responses do not contain it."""
    received: list[Any] = []

    class Model:
        def ask(self, turns: Any) -> Turn:
            return self.ask_with_tools(turns, [])

        def ask_with_tools(self, turns: Any, tools: Any) -> Turn:
            received.extend(turn.tool_results for turn in turns)
            call = ToolCall("t.get", {"url": "https://example.com"}, id="1")
            return Turn("assistant", "no") if any(received) else Turn("assistant", tool_calls=(call,))

    model: Any = Model()
    with Engine(toolsets=[tools()], plugins="none") as engine:
        converse(engine, "go", model=model)
        result = engine.execute(ToolCall("t.get", {"url": "https://example.com"}))

    assert result.error is not None and "example.com" in result.error.remedy
    assert "example.com" not in json.dumps(result_to_data(result))
    assert "example.com" not in " ".join(str(each.error) for results in received for each in results)
    assert "example.com" not in str(result.error) + repr(result.error)


def test_errors_without_a_remedy_have_an_empty_one() -> None:
    assert CallError("text").remedy == ""
    assert (PolicyError("text").remedy, PolicyError("text").grants, PolicyError("text").needs) == ("", (), ())


def test_runtime_check_of_a_declared_need_succeeds() -> None:
    with Engine(toolsets=[tools()], plugins="none", policy=ExecutionPolicy(grants=["lock:open:x"])) as engine:
        assert engine.call("t.declares", ["x"]) is None
