"""Audit logs and recordings of the command, which ``audit verify`` and ``replay`` accept."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult, command, process, run_installed, start

HEAD = re.compile(r"neuroscript: audit head (\d+:[0-9a-f]{64})\n")
LOST = "neuroscript: the audit cannot write a record (OSError)\n"
REFUSED = "denied because the audit cannot record it"

PLUGIN = '''
"""Tools with effects."""

import time
from pathlib import Path

from neuroscript import ToolPolicy


def register(registrar):
    tools = registrar.toolset("p")

    @tools.tool(policy=ToolPolicy(effects=("writes",)))
    def put(path: str) -> None:
        """Leave a file behind."""
        Path(path).write_text("here")

    @tools.tool(policy=ToolPolicy(effects=("writes",)))
    def waits() -> None:
        """Print that it has started, and wait."""
        print("waiting", flush=True)
        time.sleep(60)

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def double(number: int) -> int:
        """Return twice a number."""
        return 2 * number
'''


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    """A plugin file of tools with effects."""
    file = tmp_path / "tools.py"
    file.write_text(PLUGIN)
    return str(file)


@pytest.fixture
def trail(tmp_path: Path) -> str:
    """The path of an audit log."""
    return str(tmp_path / "trail.jsonl")


def lines(*calls: tuple[str, list[object]]) -> bytes:
    return b"".join(json.dumps({"name": name, "arguments": arguments}).encode() + b"\n" for name, arguments in calls)


def head_of(result: CommandResult) -> str:
    """Return the head that a command printed."""
    found = HEAD.search(result.err)
    assert found is not None, result
    return found[1]


def shown_records(trail: str) -> list[tuple[str, str, str]]:
    """Return the kind, the tool and the code of each record."""
    shown = run_installed("audit", "show", trail, "--json")
    records = [json.loads(line) for line in shown.out.splitlines()]
    return [(each["kind"], each["tool"], each.get("code", "")) for each in records]


# JSON lines


def test_audit_log_works_with_a_choice_of_plugins(tmp_path: Path) -> None:
    """The command closes only the audit log at its end, here of its process."""
    result = process(
        "call", "--audit", str(tmp_path / "t.jsonl"), "math.add", "1", "2", NEUROSCRIPT_PLUGINS="neuroscript-std"
    )

    assert (result.code, result.out) == (0, "3.0\n")


def test_printed_head_verifies_the_audit_log(plugin: str, trail: str, tmp_path: Path) -> None:
    """The chain continues over commands, and a later head reveals records cut off at the end."""
    first = run_installed("call", "-p", plugin, "--audit", trail, "p.put", str(tmp_path / "a"))
    second = run_installed(
        "execute", "-p", plugin, f"--audit={trail}", "-", stdin=lines(("p.double", [4]), ("p.none", []))
    )

    assert CommandResult(0, "null\n", f"neuroscript: audit head {head_of(first)}\n") == first
    assert (2, "2:", "5:") == (second.code, head_of(first)[:2], head_of(second)[:2])
    assert 0o600 == Path(trail).stat().st_mode & 0o777
    for head in map(head_of, (first, second)):
        assert 0 == run_installed("audit", "verify", trail, "--head", head).code
    assert [
        *[("intent", "p.put", ""), ("outcome", "p.put", "ok")],
        *[("intent", "p.double", ""), ("outcome", "p.double", "ok"), ("refused", "p.none", "tool.not_found")],
    ] == shown_records(trail)

    Path(trail).write_bytes(b"".join(Path(trail).read_bytes().splitlines(keepends=True)[:-1]))
    cut = run_installed("audit", "verify", trail, "--head", head_of(second))
    assert (1, True) == (cut.code, "cut tail" in cut.out)


def test_refusals_are_recorded(plugin: str, trail: str) -> None:
    """This includes denials, invalid arguments and unknown tools; the head is printed."""
    denied = run_installed("call", "-p", plugin, "--audit", trail, "--deny", "p.*", "p.put", "a")
    unfit = run_installed("call", "-p", plugin, "--audit", trail, "p.double", "x")
    unknown = run_installed("call", "-p", plugin, "--audit", trail, "p.doubel", "1")

    assert (4, 3, 2) == (denied.code, unfit.code, unknown.code)
    assert 0 == run_installed("audit", "verify", trail, "--head", head_of(unknown)).code
    codes = [("refused", "p.put", "policy.denied"), ("refused", "p.double", "coercion.format")]
    assert [*codes, ("refused", "p.doubel", "tool.not_found")] == shown_records(trail)


def test_audit_log_contains_no_values(plugin: str, trail: str, tmp_path: Path) -> None:
    """Neither valid nor invalid ones."""
    run_installed("call", "-p", plugin, "--audit", trail, "p.put", str(tmp_path / "canary-one"))
    run_installed("call", "-p", plugin, "--audit", trail, "p.double", "canary-two")

    assert b"canary" not in Path(trail).read_bytes()


def test_key_protects_the_hash_chain(plugin: str, trail: str, tmp_path: Path) -> None:
    """``verify`` needs the same key; a key that other users can read produces a warning."""
    key = tmp_path / "key"
    key.write_text("5e" * 32)
    key.chmod(0o600)
    done = run_installed("call", "-p", plugin, "--audit", trail, "--audit-key", str(key), "p.double", "4")
    with_key = run_installed("audit", "verify", trail, "--audit-key", str(key), "--head", head_of(done))
    key.chmod(0o644)
    warned = run_installed("call", "-p", plugin, "--audit", trail, "--audit-key", str(key), "p.double", "4")

    assert (0, "8\n") == (done.code, done.out)
    assert (0, 1) == (with_key.code, run_installed("audit", "verify", trail).code)
    assert (0, True) == (warned.code, "other users can access the key" in warned.err)
    assert 2 == run_installed("call", "-p", plugin, "--audit", trail, "p.double", "4").code


def test_interrupt_is_recorded_and_the_head_printed(plugin: str, trail: str) -> None:
    """Ctrl-C arrives while a tool runs."""
    child = start("call", "-p", plugin, "--audit", trail, "p.waits")
    assert child.stdout
    assert b"waiting\n" == child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    result = CommandResult(child.returncode, out.decode(), err.decode())

    assert (130, f"neuroscript: audit head {head_of(result)}\nneuroscript: interrupted\n") == (result.code, result.err)
    assert 0 == run_installed("audit", "verify", trail, "--head", head_of(result)).code
    assert [("intent", "p.waits", ""), ("outcome", "p.waits", "call.interrupted")] == shown_records(trail)


# Unusable audit logs


def test_full_device_refuses_only_calls_with_effects(plugin: str, tmp_path: Path) -> None:
    """There is no head to print."""
    put = process("call", "-p", plugin, "--audit", "/dev/full", "p.put", str(tmp_path / "a"))
    double = process("call", "-p", plugin, "--audit", "/dev/full", "p.double", "4")

    assert CommandResult(4, "", f"{LOST}neuroscript: p.put: {REFUSED}\n") == put
    assert CommandResult(0, "8\n", LOST) == double
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--audit", "."), "cannot write an audit log to .: is a directory"),
        (("--audit", "no/trail"), "cannot write an audit log to no/trail: no such file or directory"),
        (("--audit", "no/a.db"), "cannot write an audit log to no/a.db: no such file or directory"),
        (("--audit", "tools.py"), "tools.py: the file is not an audit log; verify it, and write to another file"),
        (("--audit", "text.SQLite"), "text.SQLite: cannot be used as an audit log: file is not a database"),
        (("--audit", "a.jsonl", "--audit-key", "no"), "cannot read no: no such file or directory"),
        (
            ("--audit", "a.jsonl", "--audit-key", "short"),
            "short: the key file has fewer than 32 bytes; create one with 'openssl rand -hex 32'",
        ),
        (
            ("--audit-key", "short"),
            "--audit-key needs an audit log; add --audit FILE",
        ),
        (
            ("--audit", "a.db", "--audit-key", "short"),
            "--audit-key works only with JSON lines, not with a database; choose another file, or omit the key",
        ),
        (
            ("--audit", "both", "--record", "./both"),
            "--audit and --record name the same file; use two files, because an audit log contains no values",
        ),
        (("--record", "a\0b"), "a\\x00b is not a path that the system can open"),
        (("--record", "tools.py"), "recording tools.py: it is not a recording"),
        (("--record", "no/calls"), "recording no/calls: no such file or directory"),
        (("--record", "/dev/full"), "recording /dev/full: it is not a regular file"),
        (("--audit", "a\0b"), "a\\x00b is not a path that the system can open"),
    ],
)
@pytest.mark.parametrize("name", ["call", "execute"])
def test_unusable_file_ends_the_command_first(
    name: str, words: tuple[str, ...], text: str, plugin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a usage error for an audit log and for a recording."""
    monkeypatch.chdir(tmp_path)
    Path("text.SQLite").write_text("nothing of the kind\n" * 99)
    Path("short").write_text("5e")
    for private in ("short", "tools.py"):
        Path(private).chmod(0o600)
    rest = ["p.put", "ran"] if name == "call" else ["-"]
    result = command(name, "-p", plugin, *words, *rest, stdin=lines(("p.put", ["ran"])), make_engine=None)

    assert CommandResult(2, "", f"neuroscript: {text}\n") == result
    assert not Path("ran").exists()


@pytest.mark.parametrize("words", [["call", "--dry-run", "p.double", "4"], ["execute", "--dry-run", "-"]])
def test_dry_run_writes_no_files(words: list[str], plugin: str, tmp_path: Path) -> None:
    """It neither creates nor continues an audit log or a recording."""
    kept = [tmp_path / name for name in ("trail.jsonl", "trail.db", "calls")]
    name, *rest = words
    for audit in kept[:2]:
        files = ("--audit", str(audit), "--record", str(kept[2]))
        result = command(name, "-p", plugin, *files, *rest, stdin=lines(("p.double", [4])), make_engine=None)
        assert (0, "") == (result.code, result.err)

    assert [] == [each for each in kept if each.exists()]


# Databases


@pytest.mark.parametrize("name", ["trail.db", "trail.sqlite", "trail.SQLITE3"])
def test_database_name_creates_a_database(name: str, plugin: str, tmp_path: Path) -> None:
    """It has a row for each call, committed when the command ends, and no head."""
    trail = tmp_path / name
    calls = lines(("p.double", [4]), ("p.put", [str(tmp_path / "a")]), ("p.double", ["x"]))
    result = run_installed("execute", "-p", plugin, "--audit", str(trail), "-", stdin=calls)

    with sqlite3.connect(trail) as connection:
        rows = connection.execute("SELECT kind, tool, code FROM calls ORDER BY id").fetchall()
    connection.close()
    assert (3, "") == (result.code, result.err)
    assert [
        ("outcome", "p.double", "ok"),
        ("outcome", "p.put", "ok"),
        ("refused", "p.double", "coercion.format"),
    ] == rows
    assert 0 == run_installed("audit", "verify", str(trail)).code


# Recordings


def test_recording_can_be_replayed(plugin: str, tmp_path: Path) -> None:
    """Calls of pure tools run again; a changed definition is the first difference."""
    file = str(tmp_path / "calls.jsonl")
    first = run_installed("call", "-p", plugin, "--record", file, "p.double", "4")
    calls = lines(("p.double", [5]), ("p.put", [str(tmp_path / "a")]))
    second = run_installed("execute", "-p", plugin, "--record", file, "-", stdin=calls)
    replayed = run_installed("replay", "-p", plugin, file)

    assert CommandResult(0, "8\n") == first
    assert (0, "") == (second.code, second.err)
    assert 0o600 == Path(file).stat().st_mode & 0o777
    assert (
        CommandResult(0, "2 calls run again, same results\n1 skipped, because their tools are not pure\n") == replayed
    )

    Path(plugin).write_text(PLUGIN.replace("2 * number", "3 * number"))
    changed = run_installed("replay", "-p", plugin, file)
    assert (1, "line 1: p.double: result: was int, is a different value") == (changed.code, changed.out.splitlines()[0])


def test_audit_log_and_recording_work_together(plugin: str, trail: str, tmp_path: Path) -> None:
    """They contain the same calls."""
    file = tmp_path / "calls.jsonl"
    result = run_installed("call", "-p", plugin, "--audit", trail, "--record", str(file), "p.double", "4")

    assert 0 == run_installed("audit", "verify", trail, "--head", head_of(result)).code
    assert [[4]] == [json.loads(line)["args"] for line in file.read_text().splitlines()]


def test_lost_recorded_calls_are_reported(plugin: str, tmp_path: Path) -> None:
    """The calls run, because no result depends on the recording; its file may have only 1024 bytes."""
    calls = lines(*[("p.double", [number]) for number in range(9)])
    words = ("execute", "-p", plugin, "--record", str(tmp_path / "calls"), "-")
    result = process(*words, stdin=calls, shell="| cat", before="trap '' XFSZ; ulimit -f 1;")

    assert 9 == len(result.out.splitlines())
    assert re.fullmatch(r"neuroscript: warning: \d of the calls could not be written to the recording\n", result.err)
