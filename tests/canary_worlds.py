"""Engines with every sink in which a canary value could appear, and what each sink received."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.canaries import ENCODINGS, Canary, found, written
from tests.leaking_tools import GRANTS, tools

from neuroscript import (
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    FileAudit,
    FlowRule,
    Host,
    MemoryAudit,
    SqliteAudit,
    TerminalApprover,
    ToolCall,
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


class Model:
    """A model that stores its input."""

    def __init__(self) -> None:
        self.records: list[str] = []

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.records.append(repr(turns))
        return Turn("assistant", "yes")

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        self.records.append(repr((turns, tools)))
        return Turn("assistant", "yes")

    def embed(self, text: str) -> Sequence[float]:
        self.records.append(text)
        return [1.0]


class Observer:
    """Hooks that store their records, and may refuse a call."""

    def __init__(self, decide: Callable[[Any], Any] = lambda call: None) -> None:
        self.records: list[str] = []
        self.decide = decide

    @hookimpl
    def neuroscript_decide(self, call: Any) -> Any:
        return self.decide(call)

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.records.append(repr(record))

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.records.append(repr(record))


class Answers:
    """A prompter that stores questions, and answers the secret ones with one answer."""

    def __init__(self, secret: str) -> None:
        self.asked: list[str] = []
        self._secret = secret

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self.asked.append(prompt)
        return self._secret if secret else "yes"


EntryPoint = Callable[[Any, str, dict[str, Any]], Any]


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


ENTRY_POINTS: dict[str, EntryPoint] = {
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
        flow: Rules about information flow.
        host_options: Further host options.

    Attributes:
        outputs: The output of each sink, complete when the world is closed.
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
        flow: Sequence[FlowRule] = (),
        **host_options: Any,
    ) -> None:
        self.place = place
        (place / "box").mkdir(parents=True)
        self.out, self.asked, self.model, self.observer = io.StringIO(), Answers(answer), Model(), Observer(decide)
        self.records: list[str] = []
        self.failures = 0
        self.outputs: dict[str, str] = {}
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
            "progress": lambda each: self.records.append(repr(each)),
        }
        policy = ExecutionPolicy(grants=GRANTS, approver=approver or FileApprover(place / "pending"), flow=flow)
        watching = self._watching(sinks) if watched else {}
        all_tools = [tools(), *toolsets]
        self.engine = Engine(
            host=Host(**{**lent, **host_options}), policy=policy, toolsets=all_tools, plugins="none", **watching
        )

    def _logger(self) -> logging.Logger:
        logger = logging.getLogger(f"canaries.{secrets.token_hex(4)}")
        logger.propagate = False
        logger.setLevel(logging.DEBUG)
        self._handler = logging.FileHandler(self.place / "log", encoding="utf-8")
        self._handler.setFormatter(
            logging.Formatter("%(name)s %(levelname)s %(message)s %(detail)s", defaults={"detail": ""})
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

    def record(self, sink: str, text: str) -> None:
        """Store the output of a sink."""
        self._texts.setdefault(sink, []).append(text)

    def call(
        self, name: str, args: dict[str, Any], entry_points: Iterator[str] | Sequence[str] = tuple(ENTRY_POINTS)
    ) -> None:
        """Make one call through the entry points, as a model and as a careful host, and store every outcome."""
        for entry_point in entry_points:
            try:
                self.record("host", repr(ENTRY_POINTS[entry_point](self.engine, name, args)))
            except CallError as error:
                self.failed(error)
        self.execute(ToolCall(name, args))
        self.record("decisions", repr(self.engine.check([ToolCall(name, args)])))

    def execute(self, call: ToolCall) -> None:
        """Make a call as a model does."""
        result = self.engine.execute(call)
        self.record("results", f"{json.dumps(result_to_data(result), ensure_ascii=False)}\n{result!r}")
        if result.error is not None:
            self.failed(result.error)

    def failed(self, error: CallError) -> None:
        """Store everything that an error says."""
        problems = "".join(map(str, getattr(error, "problems", ())))
        self.failures += 1
        self.record("errors", f"{error}\n{error!r}\n{error.args!r}\n{vars(error)!r}\n{problems}")
        self.record("error data", json.dumps(error_to_data(error), ensure_ascii=False))

    def end(self) -> Mapping[str, str]:
        """Close the engine, and return the output of each sink."""
        refusals = repr(self.engine.refusals)
        self.engine.close()
        self._handler.close()
        self.outputs = {sink: "\n".join(texts) for sink, texts in self._texts.items()} | {
            "lines": self.out.getvalue(),
            "prompts": "\n".join(self.asked.asked),
            "progress": "\n".join(self.records),
            "model": "\n".join(self.model.records),
            "hooks": "\n".join(self.observer.records),
            "memory": repr(self._memory.records),
            "refusals": refusals,
            "spans": "".join(str(span.to_json()) for span in self._spans.get_finished_spans()),
            "log": (self.place / "log").read_text(),
            **{sink: _content(self.place / name) for sink, name in FILES.items()},
            "database": _rows(self.place / "trail.db"),
        }
        self._provider.shutdown()
        return self.outputs

    def found(self, canary: Canary) -> dict[str, set[str]]:
        """Return the sinks that contain a trace of a canary, with the encodings."""
        return {sink: traces for sink, text in self.outputs.items() if (traces := found(canary, text))}


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
