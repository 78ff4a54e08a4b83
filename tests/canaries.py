"""Canary values, tools that leak them through each of their channels, and every sink in which they could appear.

A canary is random. It is written in eight encodings, each behind its own label, so any remaining part of one is found. A
`World` is an engine with every sink, and `World.heard` contains what each sink received.
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import logging
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    CallRecord,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    FileAudit,
    Host,
    LimitError,
    LLMError,
    MemoryAudit,
    PolicyError,
    ReturnError,
    Runtime,
    SqliteAudit,
    TerminalApprover,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    Turn,
    hookimpl,
)
from neuroscript.approval.pending import FileApprover
from neuroscript.approval.request import ApprovalRequest
from neuroscript.audit.recording import Recording
from neuroscript.interop.opentelemetry import Tracing
from neuroscript.tools.serialization import error_to_data, result_to_data

# Encodings of a canary, and the search for them

ODD = " \"'&<>?%\\~é"
"""Characters that each encoding writes differently; their base64 contains ``+`` and ``/``."""

ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": json.dumps,
    "repr": repr,
    "URL": lambda text: quote(text, safe=""),
    "HTML": html.escape,
    "hex": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
}


@attrs.frozen
class Canary:
    """A random string that occurs nowhere else.

    Attributes:
        text: The value to hide, with characters that each encoding writes differently.
        word: The same for names and paths: letters and digits only.
    """

    first: str = attrs.field(factory=lambda: _random())
    last: str = attrs.field(factory=lambda: _random())

    @property
    def text(self) -> str:
        return f"{self.first}{ODD}{self.last}"

    @property
    def word(self) -> str:
        return f"{self.first}{self.last}"

    def traces(self, encoding: str) -> set[str]:
        """Return strings, one of which remains in any encoding that contains this value."""
        ends = (self.first.encode(), self.last.encode())
        match encoding:
            case "hex":
                return {end.hex() for end in ends} | {end.hex().upper() for end in ends}
            case "base64" | "base64url":
                return {_core(end, shift) for end in ends for shift in range(3)}
            case _:
                return {self.first, self.last}


def _random() -> str:
    """Return letters that are not hexadecimal digits, because records contain many of those."""
    return "".join(secrets.choice("ghijklmnopqrstuvwxyz") for _ in range(8))


def _core(data: bytes, shift: int) -> str:
    """Return the base64 characters that encode only these bytes, after a prefix of *shift* bytes."""
    return base64.b64encode(b"\0" * shift + data)[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6].decode()


def written(text: str) -> list[str]:
    """Return a string in each encoding, behind a label."""
    return [f"{label(name)}{encode(text)}" for name, encode in ENCODINGS.items()]


def bare(texts: list[str], encoding: str) -> str:
    """Return one of the strings from `written`, without its label."""
    return texts[[*ENCODINGS].index(encoding)].removeprefix(label(encoding))


def label(encoding: str) -> str:
    """Return the label of an encoded string."""
    return f"in{encoding}:"


def found(canary: Canary, text: str) -> set[str]:
    """Return the encodings that left a trace in a string."""
    return {name for name in ENCODINGS for trace in canary.traces(name) if trace in text}


def labelled(canary: Canary, text: str) -> set[str]:
    """Return the encodings that left a trace behind their own label."""
    return {
        name
        for name in ENCODINGS
        for trace in canary.traces(name)
        if re.search(f"{re.escape(label(name))}.{{0,6}}?{re.escape(trace)}", text)
    }


# What a tool can do with a value

Channel = Callable[[Any, list[str]], Any]
"""Takes a Runtime and a value in each encoding, leaks it, and returns or raises the outcome of the tool."""


def lines(rt: Runtime, texts: list[str]) -> None:
    for text in texts:
        rt.println(text)
    rt.println(texts, {"a": texts}, "".join(texts))


def prompts(rt: Runtime, texts: list[str]) -> None:
    for text in texts:
        rt.prompt_user(text)
    rt.prompt_user("".join(texts), secret=False)


def progress(rt: Runtime, texts: list[str]) -> None:
    for text in texts:
        rt.progress(1, 2, text)


def logs(rt: Runtime, texts: list[str]) -> None:
    log = rt.logger
    for text in texts:
        log.info(text)
        log.warning("a value: %s and %r", text, [text])
        log.error("a map: %(a)s", {"a": text})
        try:
            raise ValueError(text)
        except ValueError:
            log.exception("it failed")
        log.getChild("below").log(logging.INFO, "%s", text, extra={"told": text})


def model(rt: Runtime, texts: list[str]) -> None:
    result = ToolResult("1", "t", texts, error=None)
    failed = ToolResult("1", "t", None, error=ToolFailed(texts[0]))
    turns = [
        Turn("user", "".join(texts)),
        Turn("assistant", tool_calls=(ToolCall("t", texts), ToolCall("t", {text: text for text in texts}))),
        Turn("tool", tool_results=(result, failed)),
    ]
    rt.llm.ask(turns)
    rt.llm.ask_with_tools(turns, [])
    for text in texts:
        rt.llm.embed(text)


def together(texts: list[str]) -> str:
    return " ".join(texts)


def fails(rt: Runtime, texts: list[str]) -> None:
    raise ToolFailed(together(texts))


def fails_oddly(rt: Runtime, texts: list[str]) -> None:
    error = ToolFailed("no", code=together(texts))
    error._retry = together(texts)  # type: ignore[assignment]
    raise error


def fails_as_another(rt: Runtime, texts: list[str]) -> None:
    raise ToolFailed("no", tool=together(texts))


def breaks(rt: Runtime, texts: list[str]) -> None:
    try:
        raise OSError(together(texts))
    except OSError as error:
        raise ExceptionGroup(together(texts), [ValueError(together(texts))]) from error


def exits(rt: Runtime, texts: list[str]) -> None:
    raise SystemExit(together(texts))


def refuses(rt: Runtime, texts: list[str]) -> None:
    text = together(texts)
    error = PolicyError(text, tool=text, code=text, need=text, rule=text)
    error._retry = text  # type: ignore[assignment]
    raise error


def limits(rt: Runtime, texts: list[str]) -> None:
    raise LimitError(together(texts), tool=together(texts), code=together(texts))


def times_out(rt: Runtime, texts: list[str]) -> None:
    error = CallTimeout(together(texts), tool=together(texts), state="stopped")
    error.state = together(texts)  # type: ignore[assignment]
    raise error


def lent_fails(rt: Runtime, texts: list[str]) -> None:
    raise LLMError(together(texts), code=together(texts))


def returns_wrong(rt: Runtime, texts: list[str]) -> None:
    raise ReturnError(together(texts), code=together(texts))


def opens(rt: Runtime, texts: list[str]) -> None:
    rt.fs.read_text("data/" + texts[0].replace("/", ""))


def opens_nowhere(rt: Runtime, texts: list[str]) -> None:
    rt.fs.read_text("/" + together(texts))


def spends(rt: Runtime, texts: list[str]) -> None:
    rt.spend(texts[0], texts[1])


def requires(rt: Runtime, texts: list[str]) -> None:
    rt.require(f"fs:write:x/{bare(texts, 'hex')}")


def calls_nothing(rt: Runtime, texts: list[str]) -> None:
    rt.call_tool(texts[0], texts)


def calls_wrongly(rt: Runtime, texts: list[str]) -> None:
    rt.call_tool_named("c.counts", {text: text for text in texts})


def calls_with_keys(rt: Runtime, texts: list[str]) -> None:
    for name in ENCODINGS:
        rt.call_tool("c.counts", ({bare(texts, name): "5"},))


def reads_wrongly(rt: Runtime, texts: list[str]) -> None:
    rt.call_tool("c.reads", (f"x/{bare(texts, 'hex')}",))


def looks_up(rt: Runtime, texts: list[str]) -> None:
    rt.handles.get(texts[0], "thing")


def keeps_wrongly(rt: Runtime, texts: list[str]) -> None:
    rt.set_var(texts[0], {texts[0]: object()})


def gives(rt: Runtime, texts: list[str]) -> Any:
    return {"list": texts, **{text: text.encode() for text in texts}}


def gives_wrongly(rt: Runtime, texts: list[str]) -> Any:
    return {text: {text: object()} for text in texts}


CHANNELS: dict[str, Channel] = {
    each.__name__: each
    for each in (
        *(lines, prompts, progress, logs, model),
        *(fails, fails_oddly, fails_as_another, breaks, exits, refuses, limits, times_out, lent_fails, returns_wrong),
        *(opens, opens_nowhere, spends, requires, calls_nothing, calls_wrongly, calls_with_keys, reads_wrongly),
        *(looks_up, keeps_wrongly, gives, gives_wrongly),
    )
}

# Tools

VARIABLE = "NEUROSCRIPT_CANARY"
"""The environment variable that a grant names."""

ALL = ToolPolicy(
    capabilities=("fs:read:data/**", "fs:write:data/**", "model:use", "secret:read:lent", f"env:read:{VARIABLE}")
)
HOW = ArgSpec("how", ArgType.STRING, choices=tuple(CHANNELS))
TOKEN = ArgSpec("token", ArgType.STRING, secret=True)
INNER = ArgSpec("inner", ArgType.MAP, keys=(TOKEN,))


def given(rt: Runtime, how: str, value: str) -> Any:
    return CHANNELS[how](rt, written(value))


def nested(rt: Runtime, how: str, options: dict[str, Any]) -> Any:
    return CHANNELS[how](rt, written(options["inner"]["token"]))


def lent(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(rt.secret("lent")))


def environment(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(os.environ[VARIABLE]))


def answered(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(rt.prompt_user("the key, please", secret=True)))


def plain(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(rt.get_var("value")))


def outer(rt: Runtime, name: str, args: dict[str, Any]) -> Any:
    return rt.call_tool_named(name, args)


def counts(rt: Runtime, counts: dict[str, int]) -> int:
    return len(counts)


def reads(rt: Runtime, path: str) -> bool:
    return rt.fs.exists(path)


def fetches(rt: Runtime, path: str) -> None:
    """Do nothing."""


def asks(rt: Runtime, texts: list[str], value: str | None, options: dict[str, Any] | None) -> None:
    """Do nothing; the call needs an approval."""


def tools() -> Toolset:
    """Return the tools, each of which receives a value from another origin."""
    made = Toolset("c")

    def put(func: Any, *args: ArgSpec, policy: ToolPolicy = ALL, result: ArgType = ArgType.ANY) -> None:
        spec = ToolSpec(func.__name__, "c", args, return_type=result, return_nullable=True)
        made.add(spec, func, policy)

    put(given, HOW, ArgSpec("value", ArgType.STRING, secret=True))
    put(nested, HOW, ArgSpec("options", ArgType.MAP, keys=(INNER,)))
    put(lent, HOW)
    put(environment, HOW)
    put(answered, HOW)
    put(plain, HOW)
    put(outer, ArgSpec("name", ArgType.STRING), ArgSpec("args", ArgType.MAP))
    put(counts, ArgSpec("counts", ArgType.MAP_STRING_INT))
    put(reads, ArgSpec("path", ArgType.STRING), policy=ToolPolicy(capabilities=("fs:read:{path}",)))
    put(
        asks,
        ArgSpec("texts", ArgType.SLICE_STRING),
        ArgSpec("value", ArgType.STRING, secret=True, required=False),
        ArgSpec("options", ArgType.MAP, keys=(INNER,), required=False),
        policy=ToolPolicy(requires_approval=True),
    )
    put(
        fetches,
        ArgSpec("path", ArgType.STRING),
        policy=ToolPolicy(requires_approval=True, capabilities=("fs:read:{path}",)),
    )
    return made


GRANTS = ("fs:read:data/**", "model:use:*", "secret:read:lent", f"env:read:{VARIABLE}", "fs:write:data/**")

# Sinks


class Model:
    """A model that stores its input."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.told.append(repr(turns))
        return Turn("assistant", "yes")

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        self.told.append(repr((turns, tools)))
        return Turn("assistant", "yes")

    def embed(self, text: str) -> Sequence[float]:
        self.told.append(text)
        return [1.0]


class Observer:
    """Hooks that store their records, and may refuse a call."""

    def __init__(self, decide: Callable[[Any], Any] = lambda call: None) -> None:
        self.told: list[str] = []
        self.decide = decide

    @hookimpl
    def neuroscript_decide(self, call: Any) -> Any:
        return self.decide(call)

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.told.append(repr(record))

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.told.append(repr(record))


class Answers:
    """A prompter that stores questions, and answers the secret ones with one answer."""

    def __init__(self, secret: str) -> None:
        self.asked: list[str] = []
        self._secret = secret

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self.asked.append(prompt)
        return self._secret if secret else "yes"


Door = Callable[[Any, str, dict[str, Any]], Any]


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


DOORS: dict[str, Door] = {
    "call": lambda session, name, args: session.call(name, tuple(args.values())),
    "call_named": lambda session, name, args: session.call_named(name, args),
    "acall": lambda session, name, args: asyncio.run(session.acall(name, tuple(args.values()))),
    "acall_named": lambda session, name, args: asyncio.run(session.acall_named(name, args)),
    "stream": lambda session, name, args: list(session.stream(name, args)),
    "astream": lambda session, name, args: asyncio.run(_drained(session.astream(name, args))),
    "timed": lambda session, name, args: session.call_named(name, args, timeout=60),
    "within": lambda session, name, args: session.call_named("c.outer", {"name": name, "args": args}),
}
"""Every entry point that returns a result or an error, except those that return a `ToolResult`."""

KEY = bytes(range(32))


class World:
    """An engine with every sink.

    Args:
        place: A new directory for all files.
        secret: The secret that the host provides, or None.
        answer: The answer to secret prompts.
        value: The value of the variable ``value``, which is not secret.
        approver: The approver of the policy; by default, requests are stored in files.
        decide: The hook that may refuse.
        watched: Whether there are sinks, hooks and a recording.
        toolsets: Further toolsets.
        sinks: Further sinks.
        lends: Further host options.

    Attributes:
        heard: The output of each sink, complete when the world is closed.
        failures: The number of errors.
    """

    def __init__(
        self,
        place: Path,
        secret: str | None = None,
        answer: str = "",
        *,
        value: str = "",
        approver: Callable[[ApprovalRequest], Any] | None = None,
        decide: Callable[[Any], Any] = lambda call: None,
        watched: bool = True,
        toolsets: Sequence[Toolset] = (),
        sinks: Sequence[Any] = (),
        **lends: Any,
    ) -> None:
        self.place = place
        (place / "box").mkdir(parents=True)
        self.out, self.asked, self.model, self.observer = io.StringIO(), Answers(answer), Model(), Observer(decide)
        self.told: list[str] = []
        self.failures = 0
        self.heard: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {}
        self._memory, self._spans = MemoryAudit(100_000), InMemorySpanExporter()
        self._provider = TracerProvider()
        self._provider.add_span_processor(SimpleSpanProcessor(self._spans))
        lent = {
            "logger": self._logger(),
            "stdout": self.out,
            "prompter": self.asked,
            "llm": self.model,
            "sandbox_dir": place / "box",
            "variables": {"value": value},
            "secrets": {} if secret is None else {"lent": secret},
            "progress": lambda each: self.told.append(repr(each)),
        }
        policy = ExecutionPolicy(grants=GRANTS, approver=approver or FileApprover(place / "pending"))
        watching = self._watching(sinks) if watched else {}
        all_tools = [tools(), *toolsets]
        self.engine = Engine(
            host=Host(**{**lent, **lends}), policy=policy, toolsets=all_tools, plugins="none", **watching
        )

    def _logger(self) -> logging.Logger:
        logger = logging.getLogger(f"canaries.{secrets.token_hex(4)}")
        logger.propagate = False
        logger.setLevel(logging.DEBUG)
        self._handler = logging.FileHandler(self.place / "log", encoding="utf-8")
        self._handler.setFormatter(
            logging.Formatter("%(name)s %(levelname)s %(message)s %(told)s", defaults={"told": ""})
        )
        logger.addHandler(self._handler)
        return logger

    def _watching(self, sinks: Sequence[Any]) -> dict[str, Any]:
        files = FileAudit(self.place / "trail.jsonl", key=KEY), SqliteAudit(self.place / "trail.db")
        return {
            "audit": [self._memory, *files, *sinks],
            "recording": Recording(self.place / "recording.jsonl"),
            "hooks": [self.observer, Tracing(self._provider, content=True)],
        }

    def hear(self, sink: str, text: str) -> None:
        """Store the output of a sink."""
        self._texts.setdefault(sink, []).append(text)

    def call(self, name: str, args: dict[str, Any], doors: Iterator[str] | Sequence[str] = tuple(DOORS)) -> None:
        """Make one call through the entry points, as a model and as a careful host, and store every outcome."""
        for door in doors:
            try:
                self.hear("host", repr(DOORS[door](self.engine, name, args)))
            except CallError as error:
                self.failed(error)
        self.execute(ToolCall(name, args))
        self.hear("decisions", repr(self.engine.check([ToolCall(name, args)])))

    def execute(self, call: ToolCall) -> None:
        """Make a call as a model does."""
        result = self.engine.execute(call)
        self.hear("results", f"{json.dumps(result_to_data(result), ensure_ascii=False)}\n{result!r}")
        if result.error is not None:
            self.failed(result.error)

    def failed(self, error: CallError) -> None:
        """Store everything that an error says."""
        problems = "".join(map(str, getattr(error, "problems", ())))
        self.failures += 1
        self.hear("errors", f"{error}\n{error!r}\n{error.args!r}\n{vars(error)!r}\n{problems}")
        self.hear("error data", json.dumps(error_to_data(error), ensure_ascii=False))

    def end(self) -> Mapping[str, str]:
        """Close the engine, and return the output of each sink."""
        refusals = repr(self.engine.refusals)
        self.engine.close()
        self._handler.close()
        self.heard = {sink: "\n".join(texts) for sink, texts in self._texts.items()} | {
            "lines": self.out.getvalue(),
            "prompts": "\n".join(self.asked.asked),
            "progress": "\n".join(self.told),
            "model": "\n".join(self.model.told),
            "hooks": "\n".join(self.observer.told),
            "memory": repr(self._memory.records),
            "refusals": refusals,
            "spans": "".join(str(span.to_json()) for span in self._spans.get_finished_spans()),
            "log": (self.place / "log").read_text(),
            **{sink: _content(self.place / name) for sink, name in FILES.items()},
            "database": _rows(self.place / "trail.db"),
        }
        self._provider.shutdown()
        return self.heard

    def found(self, canary: Canary) -> dict[str, set[str]]:
        """Return the sinks that contain a trace of a canary, with the encodings."""
        return {sink: traces for sink, text in self.heard.items() if (traces := found(canary, text))}


def approvals(value: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls that need an approval, with a value in every possible place."""
    for text in written(value):
        yield "c.asks", {"texts": [text]}
    yield "c.fetches", {"path": f"data/{ENCODINGS['hex'](value)}"}
    yield "c.asks", {"texts": [], "value": value}
    yield "c.asks", {"texts": [], "options": {"inner": {"token": value}}}


def ask_at_terminal(value: str, is_secret: bool) -> None:
    """Let the user of this process's terminal approve all of them; to be run in a separate process."""
    host = Host(secrets={"lent": value} if is_secret else {})
    policy = ExecutionPolicy(grants=GRANTS, approver=TerminalApprover())
    with Engine(host=host, policy=policy, toolsets=[tools()], plugins="none") as engine:
        for name, args in approvals(value):
            print(engine.execute(ToolCall(name, args)))
    print("=> that was all", flush=True)


FILES = {"file": "trail.jsonl", "recording": "recording.jsonl", "pending": "pending", "raw database": "trail.db"}
SINKS = {
    *(
        "errors",
        "error data",
        "results",
        "host",
        "decisions",
        "lines",
        "prompts",
        "progress",
        "model",
        "hooks",
        "memory",
    ),
    *("refusals", "spans", "log", "database", *FILES),
}
"""The sinks of a world; the terminal and the command line have separate tests."""


def _content(path: Path) -> str:
    paths = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    return "\n".join(f"{each.name}\n{each.read_bytes().decode(errors='replace')}" for each in paths)


def _rows(path: Path) -> str:
    if not path.exists():
        return ""
    with closing(sqlite3.connect(path)) as connection:
        return repr(connection.execute("SELECT * FROM calls").fetchall())
