"""Audit logs of a few days, and consoles that show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest
from starlette.testclient import TestClient
from tests.audit_records import ADD, KEY, intent, outcome, refused
from tests.console.conftest import ServedConsole, serving
from tests.console.page_client import BASE, PageClient

from neuroscript import CallRecord, Engine, FileAudit, SqliteAudit, ToolFacts
from neuroscript.console import app
from neuroscript.console.application import ConsoleApp

DELETE = ToolFacts("fs.delete", "d" * 64, "neuroscript-fs", "0.1.0", "fs.*", effects=("deletes",))
GET = ToolFacts("http.get", effects=("net",))
DAY_SECONDS = 86_400.0


def yesterday() -> float:
    """Return noon of yesterday in UTC."""
    return time() // DAY_SECONDS * DAY_SECONDS - DAY_SECONDS / 2


def days() -> tuple[CallRecord, ...]:
    """Return the records of some calls, of which one deleted a file yesterday."""
    noon = yesterday()
    return (
        outcome(1, about=DELETE, session="ann", time=noon - DAY_SECONDS, needs=("fs:delete:old.txt",)),
        intent(2, about=ADD, session="ann", time=noon),
        outcome(3, about=ADD, parent=2, depth=2, session="ann", time=noon, seconds=0.2),
        outcome(4, about=DELETE, session="bob", time=noon, needs=("fs:delete:plan.txt",)),
        refused(5, about=GET, session="bob", time=noon, rule="http.*", needs=("net:read",)),
        outcome(2, about=ADD, session="ann", time=noon, seconds=0.5),
        outcome(6, about=DELETE, session="ann", time=time(), code="tool.failed", needs=("fs:delete:new.txt",)),
        intent(7, session="ann", time=time()),
    )


def write(path: Path, *records: CallRecord, key: bytes | None = None) -> str:
    """Append records to a log, and return its head, or ``""`` for a database."""
    audit = SqliteAudit(path) if path.suffix == ".db" else FileAudit(path, key=key)
    for record in records:
        audit.write(record)
    audit.close()
    return getattr(audit, "head", "")


@pytest.fixture(params=["trail.jsonl", "trail.db"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An audit log, as JSON lines or as a database."""
    path: Path = tmp_path / request.param
    write(path, *days())
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """An audit log of JSON lines with a key."""
    path = tmp_path / "trail.jsonl"
    write(path, *days(), key=KEY)
    return path


def console_app(*logs: Path, **options: object) -> ConsoleApp:
    """Return a console with these logs, and no tools."""
    return app(Engine(plugins="none"), audit=logs, **options)  # type: ignore[arg-type]


@pytest.fixture
def client(log: Path) -> Iterator[PageClient]:
    """A browser without JavaScript that is signed in to a console with the log."""
    application = console_app(log)
    with TestClient(application, base_url=BASE, follow_redirects=False) as browser:
        yield PageClient.of(application, browser)


@pytest.fixture
def console(lines: Path) -> Iterator[ServedConsole]:
    """A console that is served, with an audit log that has a key."""
    with serving(console_app(lines, audit_key=KEY)) as served:
        yield served
