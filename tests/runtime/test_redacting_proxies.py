"""Canaries in every output of a tool: stdout, questions, progress, models and logs, all real."""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import pty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from neuroscript import (
    Engine,
    ExecutionPolicy,
    Host,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.runtime.redacting_proxies import redacted_result
from neuroscript.runtime.redaction import MARK, Redactor
from neuroscript.runtime.secret_set import SecretSet
from neuroscript.spec.binding import Repair

CANARY = "k3y\"ß<'&>/\\ +?~%=canary"
"""A secret that each encoding writes in another way."""

ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "URL": quote,
    "HTML": html.escape,
    "hex": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
}


class Recorder:
    """A model that records its input, and returns a fixed reply."""

    def __init__(self) -> None:
        self.arrived: list[object] = []

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.arrived.extend(turns)
        return Turn("assistant", "understood")

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        self.arrived.extend(turns)
        return Turn("assistant", "understood", (ToolCall(tools[0].full_name),))

    def embed(self, text: str) -> Sequence[float]:
        self.arrived.append(text)
        return [float(len(text))]


class Place:
    """Every output that a host provides, with real objects, and the data that they received."""

    def __init__(self, directory: Path) -> None:
        self.model = Recorder()
        self.told: list[object] = []
        self._terminal, theirs = pty.openpty()
        self._answers = os.fdopen(theirs, encoding="utf-8")
        self._questions = os.fdopen(os.dup(theirs), "w", encoding="utf-8")
        ours, theirs = os.pipe()
        self._lines, self._output = os.fdopen(ours, encoding="utf-8"), os.fdopen(theirs, "w", encoding="utf-8")
        self._log = directory / "log"
        self._handler = logging.FileHandler(self._log, encoding="utf-8")
        form = "%(filename)s:%(funcName)s %(levelname)s %(message)s %(extra)s"
        self._handler.setFormatter(logging.Formatter(form, defaults={"extra": ""}))
        self.logger = logging.Logger("place", logging.INFO)
        self.logger.manager = logging.Manager(self.logger)  # type: ignore[arg-type]
        self.logger.addHandler(self._handler)

    def host(self, **options: Any) -> Host:
        """Return a host that provides all of it, with *options*."""
        lent: dict[str, Any] = {
            "stdout": self._output,
            "stdin": self._answers,
            "stderr": self._questions,
            "logger": self.logger,
            "llm": self.model,
            "progress": self.told.append,
        }
        return Host(**{**lent, **options})

    def answer(self, line: str) -> None:
        """Type a line at the terminal."""
        os.write(self._terminal, f"{line}\n".encode())

    @property
    def printed(self) -> str:
        """The content of stdout, which is then closed."""
        self._output.close()
        return self._lines.read()

    @property
    def asked(self) -> str:
        """The output of the terminal so far."""
        self._questions.write("<end>")
        self._questions.flush()
        result = b""
        while not result.endswith(b"<end>"):
            result += os.read(self._terminal, 100_000)
        return result.decode()

    @property
    def logged(self) -> str:
        """The content of the log file."""
        return self._log.read_text()

    @property
    def everything(self) -> dict[str, str]:
        """The data of each output."""
        return {
            "println": self.printed,
            "prompt": self.asked,
            "progress": str(self.told),
            "log": self.logged,
            **{f"model {index}": str(arrived) for index, arrived in enumerate(self.model.arrived)},
        }

    def close(self) -> None:
        """Close everything that is open."""
        for each in (self._handler, self._lines, self._output, self._answers, self._questions):
            each.close()
        os.close(self._terminal)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A host all of whose outputs are inspected."""
    place = Place(tmp_path)
    yield place
    place.close()


NEEDS = ToolPolicy(capabilities=("model:use", "secret:read:*"))
POLICY = ExecutionPolicy(grants=["model:use:*", "secret:read:*", "env:read:NS_CANARY"])


def tool_of(func: Callable[[Runtime], Any]) -> Toolset:
    """Return a toolset with one tool, ``g.t``."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g"), func, NEEDS)
    return tools


def say(rt: Runtime, text: str) -> None:
    """Emit a string everywhere a tool can."""
    rt.println("said:", text, [text])
    rt.prompt_user(f"{text}?")
    rt.progress(1, 2, f"doing {text}")
    call = ToolCall(text, {"a": [text], text: 1})
    results = ToolResult("1", "g.t", {"b": text}), ToolResult("2", "g.t", error=ToolFailed(f"no {text}"))
    rt.llm.ask([Turn("user", f"is it {text}?", (call,), results)])
    rt.llm.ask_with_tools([Turn("user", text, (ToolCall("g.t", text),))], [ToolSpec("t", "g")])
    rt.llm.embed(text)
    log: Any = rt.logger
    for tell in (log.debug, log.info, log.warning, log.error, log.critical):
        tell(f"{text.replace('%', '%%')} and %s in %r", text, {"a": text})
    log.log(35, text)
    log.info("map %(a)s", {"a": text})
    log.info("with more", extra={"extra": text})
    log.getChild("below").info(text)
    try:
        raise ValueError(text) from KeyError(text)
    except ValueError as error:
        log.exception("raised %s", text)
        log.error("given", exc_info=error)
        log.error("triple", exc_info=(ValueError, error, None), stack_info=True)


def origins(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Yield engines that know the canary from different sources."""
    yield Engine(plugins="none", policy=POLICY, host=place.host(secrets={"key": CANARY}))
    monkeypatch.setenv("NS_CANARY", CANARY)
    yield Engine(plugins="none", policy=POLICY, host=place.host())
    monkeypatch.delenv("NS_CANARY")
    by_call = Engine(plugins="none", policy=POLICY, host=place.host())
    by_call._hide({"password": CANARY})
    yield by_call


@pytest.mark.parametrize("origin", [0, 1, 2], ids=["host", "environment", "argument"])
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_secret_is_in_no_output(name: str, origin: int, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any encoding, from any source."""
    text = ENCODINGS[name](CANARY)
    place.answer("yes")
    with [*origins(place, monkeypatch)][origin] as engine:
        engine.register(tool_of(lambda rt: say(rt, text)))
        engine.call("g.t")

    result = place.everything

    forms = {write(each) for write in (str, repr, json.dumps) for each in (text, CANARY)}
    assert [where for where, arrived in result.items() for form in forms if form.strip("'\"") in arrived] == []
    assert [where for where, arrived in result.items() if MARK not in arrived] == []
    assert len(result) == 7


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_string_that_is_not_secret_is_in_every_output(name: str, place: Place) -> None:
    """So the test above would find a canary, and nothing else is redacted."""
    text = ENCODINGS[name]("no secret at all")
    place.answer("yes")
    with Engine(
        plugins="none", policy=POLICY, host=place.host(), toolsets=[tool_of(lambda rt: say(rt, text))]
    ) as engine:
        engine.call("g.t")
        assert engine.secrets is None

    result = place.everything
    assert [where for where, arrived in result.items() if text not in arrived or MARK in arrived] == []
    assert place.logged.count(text) > 20


def test_a_secret_answer_is_redacted_afterwards(place: Place) -> None:
    """Other answers are not; the tool itself receives the answer."""

    def ask(rt: Runtime) -> list[str]:
        answers = [rt.prompt_user("Name?"), rt.prompt_user("Password?", secret=True)]
        rt.println(*answers)
        rt.logger.info("%s has %s", *answers)
        return answers

    place.answer("Ada Lovelace")
    place.answer("hunter22")
    with Engine(plugins="none", policy=POLICY, host=place.host(), toolsets=[tool_of(ask)]) as engine:
        assert engine.call("g.t") == ["Ada Lovelace", "hunter22"]
        with engine.session() as other:
            assert other.secrets.text("hunter22") == MARK

    assert place.printed == f"Ada Lovelace {MARK}\n"
    assert place.logged == f"test_redacting_proxies.py:ask INFO Ada Lovelace has {MARK} \n"


def test_a_string_is_redacted_before_it_is_escaped(place: Place) -> None:
    """So a line break in a secret does not hide it."""
    with Engine(
        plugins="none", host=place.host(secrets={"key": "line 1\nline 2 of it"}), toolsets=[tool_of_lines()]
    ) as engine:
        engine.call("g.lines")

    assert place.printed == f"a {MARK}\\nb\n"


def tool_of_lines() -> Toolset:
    """Return a toolset with a tool that prints a secret of two lines."""
    tools = Toolset("g")
    tools.add(ToolSpec("lines", "g"), lambda rt: rt.println("a line 1\nline 2 of it\nb"))
    return tools


# The logger


def logging_tool(place: Place, tell: Callable[[Any], Any], **options: Any) -> Any:
    """Return the logger that a tool receives in an engine with a secret."""
    host = place.host(secrets={"key": "canary"}, **options)
    with Engine(plugins="none", policy=POLICY, host=host, toolsets=[tool_of(lambda rt: tell(rt.logger))]) as engine:
        return engine.call("g.t")


def test_a_redacting_logger_reports_the_line_of_the_tool(place: Place) -> None:
    """Through every method, and below an adapter of the host."""

    def tell(log: Any) -> None:
        log.info("100 %")
        log.log(20, "%d %%", 5)

    def caller(log: Any) -> None:
        log.warning("above", stacklevel=2)

    logging_tool(place, tell)
    logging_tool(place, lambda log: caller(log))
    logging_tool(place, tell, logger=logging.LoggerAdapter(place.logger, {"extra": "more"}))

    assert place.logged.splitlines() == [
        "test_redacting_proxies.py:tell INFO 100 % ",
        "test_redacting_proxies.py:tell INFO 5 % ",
        "test_redacting_proxies.py:<lambda> WARNING above ",
        "test_redacting_proxies.py:tell INFO 100 % more",
        "test_redacting_proxies.py:tell INFO 5 % more",
    ]


def test_a_disabled_message_is_not_formatted(place: Place) -> None:
    """As with any logger, it costs nothing."""
    written: list[str] = []

    class Dear:
        def __str__(self) -> str:
            written.append("written")
            return "dear"

    logging_tool(place, lambda log: [log.debug("%s", Dear()), log.info("%s", Dear()), None][-1])

    assert written == ["written"]
    assert place.logged == "test_redacting_proxies.py:<lambda> INFO dear \n"


@pytest.mark.parametrize("form", ["error", "triple", "handled"])
def test_an_exception_is_logged_after_its_message(form: str, place: Place) -> None:
    """Redacted and with its cause, even if it is no longer being handled."""

    def tell(log: Any) -> None:
        try:
            raise ValueError("a canary") from KeyError("canary")
        except ValueError as error:
            given = {"error": error, "triple": (ValueError, error, None), "handled": True}[form]
            if form == "handled":
                log.exception("failed")
        if form != "handled":
            log.error("failed", exc_info=given)

    logging_tool(place, tell)

    lines = place.logged.splitlines()
    assert lines[0] == "test_redacting_proxies.py:tell ERROR failed"
    assert f"KeyError: '{MARK}'" in lines
    assert lines[-1] == f"ValueError: a {MARK} "


def test_an_unformattable_message_is_omitted(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    """The default would print it with all values to stderr."""
    logging_tool(place, lambda log: log.info("%d of the %d", "canary"))

    assert (
        place.logged == "test_redacting_proxies.py:<lambda> INFO %d of the %d (with 1 arguments that do not match) \n"
    )
    assert capfd.readouterr() == ("", "")


def test_other_attributes_of_a_logger_are_unchanged(place: Place) -> None:
    """Its name and level; methods receive redacted values."""

    class Leveled(logging.Logger):
        def notice(self, msg: str, *args: object, **options: Any) -> None:
            self._log(25, msg, args, **options)

    logger = Leveled("place", logging.INFO)
    logger.addHandler(place.logger.handlers[0])
    logger.getChild = lambda suffix: logger  # type: ignore[method-assign]
    seen = logging_tool(
        place, lambda log: [log.name, log.level, log.isEnabledFor(10), log.notice("a %s", "canary")], logger=logger
    )

    assert seen == ["place", 20, False, None]
    assert f"Level 25 a {MARK}" in place.logged


def test_a_custom_logger_receives_one_string(place: Place) -> None:
    """A percent sign in it is not a format."""
    messages: list[str] = []

    class Lines:
        def info(self, msg: str, *args: object) -> None:
            messages.append(msg % args)

        debug = warning = error = info

    logging_tool(place, lambda log: log.info("%s is 100 %%", "canary"), logger=Lines())

    assert messages == [f"{MARK} is 100 %"]


def test_without_secrets_a_tool_receives_the_objects_of_the_host(place: Place) -> None:
    """Without a proxy."""
    got: list[object] = []
    with Engine(
        plugins="none",
        policy=POLICY,
        host=place.host(),
        toolsets=[tool_of(lambda rt: got.extend([rt.logger, rt.llm]))],
    ) as engine:
        engine.call("g.t")

    assert got == [place.logger.getChild("g.t"), place.model]


# Results that a host sends to a model


def test_a_result_is_redacted_as_a_whole() -> None:
    """Value, paths, error, and an unknown name; id and time are unchanged."""
    known = SecretSet()
    known.add("canary")
    secrets = Redactor(known)
    reported = ToolResult("canary-id", "g.t", ["canary"], repairs=(Repair("a['canary']", "str", "int"),), seconds=1.5)
    failed = ToolResult("2", "canary", error=ToolNotFound("canary"))

    redacted = redacted_result(secrets, reported)

    assert redacted == ToolResult(
        "canary-id", "g.t", [MARK], repairs=(Repair(f"a['{MARK}']", "str", "int"),), seconds=1.5
    )
    assert (redacted_result(secrets, failed).tool, str(failed.error)) == (MARK, f"unknown tool {MARK}")


def test_a_custom_model_receives_redacted_turns(place: Place) -> None:
    """For example maps; its reply is returned unchanged."""
    turn: Any = {"role": "user", "content": "a canary"}
    host = place.host(secrets={"key": "canary"})
    tool = tool_of(lambda rt: rt.llm.ask([turn]).content)
    with Engine(plugins="none", policy=POLICY, host=host, toolsets=[tool]) as engine:
        assert engine.call("g.t") == "understood"

    assert place.model.arrived == [{"role": "user", "content": f"a {MARK}"}]
