"""The explanations of error codes: their page, their example messages, and the command that prints them."""

from __future__ import annotations

import argparse
import ast
import re
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command
from tests.error_page import FILE, page
from tests.terminals import Terminal

from neuroscript import (
    Approval,
    CallError,
    Engine,
    ExecutionPolicy,
    FlowRule,
    Host,
    Limits,
    Runtime,
    Spill,
    ToolCall,
    ToolPolicy,
    Toolset,
)
from neuroscript.cli.error_help import anchor, read_explanations
from neuroscript.cli.parser import COMMANDS, build
from neuroscript.errors import RETRIES
from neuroscript.llm.wire import read_call

ROOT = Path(__file__).parent.parent
EXPLANATIONS = read_explanations()[1]

demo = Toolset("demo")
files = Toolset("files")
mail = Toolset("mail")


@demo.tool
def total(prices: list[float]) -> float:
    """Add prices."""
    return sum(prices)


@demo.tool
def save(data: dict[str, object]) -> int:
    """Count the keys of a map."""
    return len(data)


@demo.tool
def wrong(rt: Runtime) -> int:
    """Return a string."""
    return "x"  # type: ignore[return-value]


@demo.tool
def loop(rt: Runtime) -> object:
    """Call itself."""
    return rt.call_tool("demo.loop")


IS_AWAKE = threading.Event()


@demo.tool
def sleep(rt: Runtime) -> None:
    """Sleep until the test wakes it."""
    IS_AWAKE.wait(30)


@files.tool(policy=ToolPolicy(requires_approval=True))
def delete(path: str) -> None:
    """Delete nothing."""


@mail.tool(policy=ToolPolicy(sources=("untrusted",), sinks=()))
def forward(rt: Runtime) -> None:
    """Send what someone else has written."""
    rt.call_tool("mail.send")


@mail.tool(policy=ToolPolicy(sources=(), sinks=("outside",)))
def send() -> None:
    """Send nothing."""


CALLS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "arg.count": ("math.add", (1, 2, 3), {}),
    "arg.missing": ("math.add", {"num1": 1}, {}),
    "arg.unknown": ("math.add", {"num1": 1, "num2": 2, "num3": 3}, {}),
    "arg.not_json": ("math.add", "{", {}),
    "arg.duplicate_key": ("math.add", '{"num1": 1, "num1": 2}', {}),
    "arg.type": ("math.add", "3", {}),
    "arg.url": ("http.get", ["https://a.example:99999/"], {}),
    "call.arguments": ("list.map", ([1], "math.add", [1, 2, 3]), {}),
    "call.timeout": ("demo.sleep", (), {"seconds": 0.1}),
    "coercion.bool": ("str.tojsonstring", (1, "maybe"), {}),
    "coercion.bool_as_number": ("math.add", (True, 1), {}),
    "coercion.bounds": ("math.round", (1.5, 99), {}),
    "coercion.choice": ("http.request", ("FETCH", "http://a.example"), {}),
    "coercion.encoding": ("fs.read", ("\ud800",), {}),
    "coercion.format": ("math.add", ("x", 1), {}),
    "coercion.fraction": ("math.round", (1.5, 2.5), {}),
    "coercion.key": ("demo.save", ({1: 2},), {}),
    "coercion.length": ("os.getenv", ("",), {"grants": ["env:read:*"]}),
    "coercion.lossy": ("math.abs", (2**60 + 1,), {}),
    "coercion.nonfinite": ("math.round", (1.5, float("inf")), {}),
    "coercion.null_element": ("demo.total", ([1, None],), {}),
    "coercion.range": ("math.add", (10**400, 1), {}),
    "coercion.type": ("list.sort", ("a, b",), {}),
    "crypto.bad_token": ("crypto.decodejwt", ("a",), {}),
    "error.bad_code": ("error.new", ([], "x"), {}),
    "handle.unknown": ("tree.getroot", ("h",), {}),
    "limit.depth": ("demo.loop", (), {}),
    "limit.nodes": ("list.sort", ([0] * 200_001,), {}),
    "list.mixed": ("list.sort", (["a", 1],), {}),
    "llm.no_model": ("llm.ask", ("d",), {"grants": ["model:use:*"]}),
    "math.division_by_zero": ("math.divide", (1, 0), {}),
    "math.domain": ("math.sqrt", (-1,), {}),
    "math.overflow": ("math.power", (10, 400), {}),
    "policy.approval": ("files.delete", ("a",), {}),
    "policy.check_failed": ("files.delete", ("a",), {"approver": lambda request: None}),
    "policy.denied": ("fs.delete", ("a",), {"deny": ["fs.delete"]}),
    "policy.flow": ("mail.forward", (), {"flow": [FlowRule(["untrusted"], ["outside"], "refuse")]}),
    "policy.not_allowed": ("git.push", (), {"allow": ["math.*"]}),
    "policy.pending": ("files.delete", ("a",), {"approver": lambda request: Approval.suspend("saved in 1f0c.json")}),
    "policy.rejected": ("files.delete", ("a",), {"approver": lambda request: Approval.reject("it is in use")}),
    "policy.stopped": ("files.delete", ("a",), {"approver": lambda request: Approval.stop("it is in use")}),
    "policy.trust": ("crypto.signjwt", ({}, "s"), {}),
    "return.type": ("demo.wrong", (), {}),
    "sandbox.empty": ("fs.read", ("",), {"grants": ["fs:*:*"]}),
    "sandbox.notfound": ("fs.read", ("drafts/a.txt",), {"grants": ["fs:*:*"]}),
    "sandbox.type": ("fs.read", (".",), {"grants": ["fs:*:*"]}),
    "secret.unknown": ("crypto.hmacwith", ("d", "deploy-key"), {"grants": ["secret:read:*"]}),
    "shape.bad_path": ("shape.select", ({"a": 1}, "a["), {}),
    "shape.bad_shape": ("shape.validate", ({"a": 1}, {"a": "strin"}), {}),
    "shape.mismatch": ("shape.validate", ({"a": "x"}, {"a": "int"}), {}),
    "shape.missing": ("shape.select", ({"a": 1}, "b"), {}),
    "shape.wrong_type": ("shape.select", ({"a": 1}, "a[0]"), {}),
    "str.bad_pattern": ("str.matchregex", ("(", "a"), {}),
    "str.bounds": ("str.substring", ("a", -1, 1), {}),
    "str.no_group": ("str.replaceregex", ("a", "b", "$5"), {}),
    "str.not_base64": ("str.frombase64", ("!!",), {}),
    "time.bad_pattern": ("time.format", (1, "%Q"), {}),
    "time.bad_text": ("time.parse", ("x",), {}),
    "time.range": ("time.format", (1e13,), {}),
    "tool.not_found": ("math.subtrakt", (), {}),
    "tree.not_json": ("tree.loadjson", ("{",), {}),
    "var.constant": ("var.set", ("tenant", "x"), {}),
}
"""A call that ends with each of these codes, and the options of its policy; ``seconds`` is the time limit."""


@pytest.mark.parametrize("code", CALLS)
def test_example_is_the_message_of_a_real_call(code: str, tmp_path: Path) -> None:
    IS_AWAKE.clear()
    tool, arguments, options = CALLS[code]
    timeout = options.get("seconds")
    policy = ExecutionPolicy(**{name: value for name, value in options.items() if name != "seconds"})
    host = Host(sandbox_dir=tmp_path, constants={"tenant": "acme"})

    with Engine(toolsets=[demo, files, mail], policy=policy, host=host) as engine:
        error = engine.execute(ToolCall(tool, arguments), timeout).error
        IS_AWAKE.set()

    assert error is not None
    assert (EXPLANATIONS[code].message, code) == (str(error), error.code)
    assert error.retry in RETRIES


@pytest.mark.parametrize(
    ("code", "limits", "calls"),
    [
        ("limit.identical_calls", Limits(max_identical_calls=3), 4),
        ("limit.tool_calls", Limits(tool_calls={"fs.read": 5}), 6),
        ("limit.calls", Limits(calls=100), 101),
    ],
)
def test_example_of_a_limit_is_the_message_of_a_real_call(
    code: str, limits: Limits, calls: int, tmp_path: Path
) -> None:
    tool = EXPLANATIONS[code].message.partition(":")[0]
    search = Toolset("web")
    search.tool(name="search")(total)
    policy = ExecutionPolicy(limits=limits, grants=["fs:*:*"])

    with Engine(toolsets=[search], policy=policy, host=Host(sandbox_dir=tmp_path)) as engine:
        arguments = (["1"],) if tool == "web.search" else ("a.txt",)
        error = [engine.execute(ToolCall(tool, arguments)).error for _ in range(calls)][-1]

    assert error is not None
    assert (EXPLANATIONS[code].message, code) == (str(error), error.code)
    assert error.retry == ("model" if code == "limit.identical_calls" else "host")


def test_examples_of_unreadable_calls_are_real_messages() -> None:
    calls = {"call.type": {"type": "x", "name": "a"}, "call.partial": {"functionCall": {"willContinue": True}}}
    for code, data in calls.items():
        with pytest.raises(CallError) as caught:
            read_call(data)
        assert (EXPLANATIONS[code].message, code, "model") == (
            str(caught.value),
            caught.value.code,
            caught.value.retry,
        )


WORDED_BY_THE_HOST = {
    "call.failed",
    "host.failed",
    "limit.reached",
    "plan.failed",
    "policy.hook",
    "prompt.unavailable",
    "sandbox.io",
    "stream.closed",
}
"""Codes whose message comes from the host, a plugin or the operating system, or that have no fixed message."""

SAYS_HOW_TO_INSTALL = {"crypto.needs_jwt", "llm.not_installed", "openapi.no_http"}
"""Codes whose message ends with a command that depends on the installation."""

LETTER = re.compile(r"[a-z]")
MIN_LETTERS = 8
"""Minimum number of letters of a string that identifies a message."""


@pytest.mark.slow
def test_every_other_example_fits_a_message_of_the_sources() -> None:
    """An example whose message was reworded or removed is found."""
    others = {*EXPLANATIONS} - CALLS.keys() - WORDED_BY_THE_HOST - SAYS_HOW_TO_INSTALL

    assert [code for code in sorted(others) if not _fits(EXPLANATIONS[code].message)] == []


@pytest.mark.slow
def test_reworded_example_is_found() -> None:
    assert _fits("http.get: no connection could be made to example.com:443")
    assert not _fits("http.get: no connection is possible with example.com:443")


def _fits(message: str) -> bool:
    """Return whether a string or an f-string of the sources can be a part of a message."""
    return any(_contains(message, template) for template in _templates())


def _contains(message: str, template: Sequence[str]) -> bool:
    """Return whether a message contains all parts of a template, in order."""
    at = 0
    for part in template:
        at = message.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


@cache
def _templates() -> list[list[str]]:
    """Return the fixed parts of each string and f-string of the sources that has several words."""
    paths = [*ROOT.glob("src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    texts = (text for path in paths for text in _texts(ast.parse(path.read_text())))
    return [text for text in texts if " " in (fixed := "".join(text)) and len(LETTER.findall(fixed)) >= MIN_LETTERS]


def _texts(tree: ast.AST) -> Iterator[list[str]]:
    """Yield the fixed parts of each string; an f-string is one string."""
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=values):
                parts.update(values)
                text = "".join(str(each.value) if isinstance(each, ast.Constant) else "\0" for each in values)
                yield text.split("\0")
            case ast.Constant(value=str(text)) if node not in parts:
                yield [text]


def test_page_is_up_to_date() -> None:
    """If not, run ``python3 dev.py run tests.error_page``."""
    assert page() == FILE.read_text(encoding="utf-8")


def test_each_code_has_an_anchor() -> None:
    text = FILE.read_text(encoding="utf-8")
    anchors = re.findall(r'^<a id="(.+)"></a>$', text, re.MULTILINE)

    assert sorted(anchors) == sorted(map(anchor, EXPLANATIONS))
    assert len({*anchors}) == len(anchors)
    assert [f"### {code}" for code in EXPLANATIONS if f"\n### {code}\n" not in text] == []


def test_explanations_are_complete_sentences() -> None:
    parts = [part for each in EXPLANATIONS.values() for part in (each.cause, each.remedy)]

    assert [part for part in parts if not re.fullmatch(r"[A-Z`].*[.]", part)] == []
    assert [code for code, each in EXPLANATIONS.items() if not each.message] == []


def test_explanations_name_existing_tools_and_commands() -> None:
    with Engine() as engine:
        tools = {*engine.tools}
    known = {*tools, *EXPLANATIONS, "math.subtrakt"}
    groups = {name.partition(".")[0] for name in tools} - {"error"}  # the name of the exception in Python
    texts = [" ".join(each) for each in EXPLANATIONS.values()]
    names = {name for text in texts for name in re.findall(r"\b[a-z]+\.[a-z][a-z_0-9]+\b", text)}
    commands = {name for text in texts for name in re.findall(r"`neuroscript ([a-z]+)", text)}

    assert sorted(name for name in names - known if name.partition(".")[0] in groups) == []
    assert sorted(commands - {*COMMANDS}) == []


def test_commands_in_explanations_are_complete() -> None:
    """A command with actions is followed by one of them."""
    texts = [f"{each.cause} {each.remedy}" for each in EXPLANATIONS.values()]
    used = {words for text in texts for words in re.findall(r"`neuroscript ([^`]+)`", text)}
    actions = {name: _actions(parser) for name, parser in _subparsers(build()).items()}

    assert len(used) > 10
    assert [words for words in sorted(used) if not _is_complete(words.split(), actions)] == []


def _is_complete(words: list[str], actions: dict[str, set[str]]) -> bool:
    """Return whether a command has the action that it needs."""
    needed = actions[words[0]]
    return not needed or not {*words[1:2]}.isdisjoint(needed)


def _actions(parser: argparse.ArgumentParser) -> set[str]:
    return {*_subparsers(parser)}


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands of a parser."""
    found = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return {name: each for action in found for name, each in action.choices.items()}


def test_spill_does_not_avoid_the_limit_of_results(tmp_path: Path) -> None:
    """So the remedy does not recommend it."""
    policy = ExecutionPolicy(limits=Limits(result_bytes=1_000))
    with Engine(policy=policy, host=Host(sandbox_dir=tmp_path), spill=Spill(threshold_bytes=100)) as engine:
        error = engine.execute(ToolCall("list.reverse", {"list": ["x" * 2_000]})).error

    assert error is not None
    text = "returned a result of more than 1000 bytes"
    assert (error.code, error.retry, error.text) == ("limit.result_bytes", "host", text)
    assert "`--spill` does not help" in EXPLANATIONS["limit.result_bytes"].remedy


# The command


def test_help_explains_a_code() -> None:
    assert command("help", "policy.trust") == CommandResult(
        0,
        "policy.trust\n"
        "  cause    The tool requires a trusted host, and yours is not.\n"
        "  example  crypto.signjwt: requires a trusted host\n"
        "  remedy   If you trust every caller of this engine with the tool, pass `--trusted` or\n"
        "           `ExecutionPolicy(trusted=True)`.\n"
        "  page     how-to/troubleshooting#policytrust\n",
    )


def test_help_suggests_a_code() -> None:
    text = "neuroscript: unknown error code policy.capabilty; did you mean policy.capability?\n"

    assert command("help", "policy.capabilty") == CommandResult(2, "", text)


START = "from tests.cli.probe import engine, main; main({words!r}, make_engine=engine)"


@pytest.mark.parametrize(
    ("words", "error", "code"),
    [
        (["call", "probe.echo"], "probe.echo: text: expected string, got nothing", "arg.missing"),
        (["call", "probe.non"], "unknown tool probe.non", "tool.not_found"),
    ],
)
def test_error_on_a_terminal_names_its_help(words: list[str], error: str, code: str) -> None:
    terminal = Terminal(START.format(words=words))
    try:
        seen = terminal.see(f"neuroscript: for help: neuroscript help {code}\r\n")
    finally:
        terminal.close()

    assert seen.startswith(f"neuroscript: {error}")


def test_error_in_a_pipe_is_unchanged() -> None:
    error = "neuroscript: probe.echo: text: expected string, got nothing\n"

    assert command("call", "probe.echo") == CommandResult(3, "", error)
