"""``neuroscript audit``: show, follow, verify and summarize audit logs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.audit_records import ADD, KEY, intent, outcome, refused
from tests.cli.conftest import ROOT, CommandResult, command, environment, process, start
from tests.cli.test_terminal import seen

from neuroscript import CallRecord, FileAudit, SqliteAudit, ToolFacts
from neuroscript.audit import read
from neuroscript.runtime.records import labelled_record

GET = ToolFacts("http.get", effects=("net",))
RECORDS = (
    intent(1),
    outcome(1, seconds=0.00123),
    outcome(2, about=ADD, needs=(), seconds=2.0, rule="*"),
    refused(3, about=GET, needs=("net:read",), rule="http.*"),
    intent(4),
    intent(5, parent=4, depth=2),
    outcome(5, parent=4, depth=2, code="tool.failed", seconds=0.5),
)

STREAMS = (
    outcome(1, about=ADD, needs=(), spent={"items": 1, "result_bytes": 8}),
    outcome(2, about=ADD, needs=(), code="stream.closed", spent={"items": 20, "result_bytes": 160, "EUR": "0.1"}),
    outcome(3, needs=(), code="tool.failed", spent={"items": 0, "result_bytes": 0}),
)

CALLS = """\
2023-11-14 22:13:20Z  fs.write          ok, 1.23 ms, call 1; fs:write:a.txt
2023-11-14 22:13:20Z  math.add          ok, 2 s, call 2
2023-11-14 22:13:20Z  http.get          refused by http.*: policy.denied, call 3; net:read
2023-11-14 22:13:20Z  fs.write          tool.failed, 500 ms, call 5 in 4; fs:write:a.txt
2023-11-14 22:13:20Z  fs.write          began, outcome unknown, call 4; fs:write:a.txt
"""
STREAMED = """\
2023-11-14 22:13:20Z  math.add          ok, 1 ms, call 1, 1 item, 8 bytes
2023-11-14 22:13:20Z  math.add          stream.closed, 1 ms, call 2, 20 items, 160 bytes
2023-11-14 22:13:20Z  fs.write          tool.failed, 1 ms, call 3, 0 items, 0 bytes
"""
HEAD = re.compile(r"head (\d+:[0-9a-f]{64})\n")


def file_of(path: Path, *records: CallRecord, key: bytes | None = KEY) -> str:
    """Write JSON lines with a hash chain, and return the head."""
    audit = FileAudit(path, key=key)
    for record in records:
        audit.write(record)
    audit.close()
    return audit.head


@pytest.fixture(params=["lines", "database"])
def trail(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An audit log of a few calls, as JSON lines or as a database."""
    if request.param == "lines":
        file_of(tmp_path / "trail", *RECORDS)
    else:
        audit = SqliteAudit(tmp_path / "trail")
        for record in RECORDS:
            audit.write(record)
        audit.close()
    return str(tmp_path / "trail")


@pytest.fixture
def lines(tmp_path: Path) -> str:
    """An audit log of JSON lines."""
    file_of(tmp_path / "trail", *RECORDS)
    return str(tmp_path / "trail")


@pytest.fixture
def key(tmp_path: Path) -> str:
    """The key file of the audit log."""
    path = tmp_path / "key"
    path.write_text(KEY.hex())
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        pytest.param([], [0, 1, 2, 3, 4], id="all"),
        pytest.param(["--tool", "FS.*"], [0, 3, 4], id="a group"),
        pytest.param(["--tool", "*.get"], [2], id="a tool"),
        pytest.param(["--code", "ok"], [0, 1], id="those that ran"),
        pytest.param(["--code", "*.*"], [2, 3], id="those that did not"),
        pytest.param(["--code", "ok", "--tool", "math.*"], [1], id="both"),
        pytest.param(["--tool", "fs"], [], id="none"),
    ],
)
def test_show_prints_each_call_once(words: list[str], rows: list[int], trail: str) -> None:
    """Each call has its outcome; calls without an outcome come last."""
    result = command("audit", "show", trail, *words)

    wanted = CALLS.splitlines(keepends=True)
    assert CommandResult(0, "".join(wanted[row] for row in rows)) == result


def test_show_json_prints_records_unchanged(trail: str) -> None:
    """There is one complete record per line; the filters apply."""
    all_of_them = command("audit", "show", trail, "--json")
    refusals = command("audit", "show", trail, "--json", "--code", "policy.*")

    assert [*read(trail)] == [json.loads(line) for line in all_of_them.out.splitlines()]
    assert ["http.get"] == [json.loads(line)["tool"] for line in refusals.out.splitlines()]


def test_show_prints_the_size_of_streams(tmp_path: Path) -> None:
    """It shows items and bytes, and that one stream was closed early."""
    file_of(tmp_path / "trail", *STREAMS)

    result = command("audit", "show", str(tmp_path / "trail"))

    assert CommandResult(0, STREAMED, "") == result


LABELLED = (
    "http.get ok, 1 ms, call 2; net:read; labels untrusted",
    "fs.write refused by a -> b: policy.flow, call 3; labels private:mail, untrusted",
    "fs.write ok, 1 ms, call 4; fs:write:a.txt",
)


@pytest.mark.parametrize(
    ("words", "rows"),
    [([], [0, 1, 2]), (["--label", "untrusted"], [0, 1]), (["--label", "private*"], [1]), (["--label", "private"], [])],
    ids=ascii,
)
@pytest.mark.parametrize("kind", ["lines", "database"])
def test_show_prints_and_selects_labels(kind: str, words: list[str], rows: list[int], tmp_path: Path) -> None:
    """They are part of the chain; records without labels have no such field."""
    audit = FileAudit(tmp_path / "trail") if kind == "lines" else SqliteAudit(tmp_path / "trail")
    labelled = (
        labelled_record(outcome(2, about=GET, needs=("net:read",)), ("untrusted",)),
        labelled_record(refused(3, code="policy.flow", rule="a -> b", needs=()), ("private:mail", "untrusted")),
    )
    for record in (*labelled, outcome(4)):
        audit.write(record)
    audit.close()
    trail = str(tmp_path / "trail")

    shown = " ".join(command("audit", "show", *words, trail).out.split())

    assert shown == " ".join(f"2023-11-14 22:13:20Z {LABELLED[row]}" for row in rows)
    assert command("audit", "verify", trail).code == 0
    assert [record.get("labels") for record in read(trail)] == [["untrusted"], ["private:mail", "untrusted"], None]


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        pytest.param(["--effect", "deletes"], [2, 3], id="an effect"),
        pytest.param(["--session", "s2"], [3, 4], id="a session"),
        pytest.param(["--since", "2023-11-15"], [2, 3], id="since a date"),
        pytest.param(["--until", "2023-11-14"], [1, 4], id="until the end of a date"),
        pytest.param(["--since", "2023-11-15T10:00", "--until", "2023-11-15T12:00"], [2], id="between times"),
        pytest.param(["--effect", "deletes", "--since", "2023-11-15", "--session", "s2"], [3], id="who deleted a file"),
    ],
)
def test_show_selects_by_effect_session_and_time(words: list[str], calls: list[int], tmp_path: Path) -> None:
    """Times are UTC."""
    delete = ToolFacts("fs.delete", effects=("deletes",))
    hour = 1_700_042_400.0  # 2023-11-15T10:00Z
    file_of(
        tmp_path / "trail",
        outcome(1, session="s1", time=hour - 86_400),
        outcome(2, about=delete, session="s1", time=hour),
        outcome(3, about=delete, session="s2", time=hour + 7200),
        intent(4, session="s2", time=hour - 86_400),
    )
    result = command("audit", "show", str(tmp_path / "trail"), *words)

    assert [int(each) for each in re.findall(r"call (\d+)", result.out)] == calls


def test_tail_shows_the_last_records_and_the_head(lines: str, tmp_path: Path) -> None:
    """This includes the beginning of calls, because tail shows what was written last."""
    head = file_of(tmp_path / "trail")
    result = command("audit", "tail", lines, "-n", "2")
    none = command("audit", "tail", lines, "-n", "0")
    in_json = command("audit", "tail", lines, "-n", "1", "--json")

    rows = "2023-11-14 22:13:20Z  fs.write          begins, call 5 in 4; fs:write:a.txt\n" + CALLS.splitlines(True)[3]
    assert CommandResult(0, f"{rows}head {head}\n") == result
    assert CommandResult(0, f"head {head}\n") == none
    assert [[*read(lines)][-1], {"head": head}] == [json.loads(line) for line in in_json.out.splitlines()]


def test_tail_of_a_database_has_no_head(tmp_path: Path) -> None:
    """A database has no hash chain."""
    audit = SqliteAudit(tmp_path / "trail.db")
    for call in range(1, 31):
        audit.write(outcome(call))
    audit.close()

    result = command("audit", "tail", str(tmp_path / "trail.db"))

    assert [*range(21, 31)] == [int(number) for number in re.findall(r"call (\d+)", result.out)]
    assert "head" not in result.out


@pytest.mark.parametrize("kind", ["lines", "database"])
def test_tail_follows_new_records(kind: str, tmp_path: Path) -> None:
    """It continues until interrupted, and shows a line when it is complete."""
    path = tmp_path / "trail"
    audit = FileAudit(path) if kind == "lines" else SqliteAudit(path, batch=1)
    audit.write(outcome(1))
    child = start("audit", "tail", str(path), "--follow", "--json")
    assert child.stdin and child.stdout and child.stderr
    reported = [child.stdout.readline() for _ in range(2 if kind == "lines" else 1)]
    for call in (2, 3):
        audit.write(outcome(call))
        reported.append(child.stdout.readline())
    if kind == "lines":
        whole = path.read_bytes().splitlines(keepends=True)[-1]
        with path.open("ab", buffering=0) as file:
            for part in (whole[:100], whole[100:]):
                file.write(part)
                time.sleep(0.5)
        reported.append(child.stdout.readline())
    child.send_signal(signal.SIGINT)
    rest, err = child.communicate(timeout=30)
    audit.close()

    calls = [record["call"] for record in map(json.loads, reported) if "call" in record]
    assert ([1, 2, 3, *([3] if kind == "lines" else [])], b"") == (calls, rest)
    assert (130, b"neuroscript: interrupted\n") == (child.returncode, err)


def test_verify_reports_an_intact_audit_log(lines: str, key: str) -> None:
    """It prints what it checked, what the check can detect, and the calls without outcome."""
    result = command("audit", "verify", lines, "--audit-key", key)

    head = HEAD.search(result.out)
    assert head
    expected = f"""\
{lines}: intact
7 records, 1 to 7; with this key, forgery is detected too

calls without outcome
  line 5  fs.write  call 4 of run run1

head {head[1]}
"""
    assert CommandResult(0, expected) == result
    assert 0 == command("audit", "verify", lines, "--audit-key", key, "--head", head[1]).code


def test_verify_lists_problems_by_line(lines: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1."""
    path = Path(lines)
    monkeypatch.chdir(path.parent)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([whole[0], whole[1].replace(b'"ok"', b'"no"'), whole[3], whole[3]]))
    *_, last = whole
    head = f"7:{json.loads(last)['hash']}"

    result = command("audit", "verify", path.name, "--audit-key", key, "--head", head)
    in_json = command("audit", "verify", lines, "--audit-key", key, "--json")

    problems = """\
problems
  line 2  edited    its hash does not match, or it is not a record
  line 3  removed   record 3 is missing before it
  line 4  inserted  record 4 is repeated here
  line 5  cut tail  records 5 to 7 are missing at the end
"""
    assert (1, f"{path.name}: NOT intact", "") == (result.code, result.out.partition("\n")[0], result.err)
    assert problems in result.out
    data = json.loads(in_json.out)
    assert (1, False, 2) == (in_json.code, data["intact"], data["records"])
    assert ["edited", "removed", "inserted"] == [problem["kind"] for problem in data["problems"]]


def test_verify_limits_the_listed_problems(lines: str, key: str) -> None:
    """The others are counted."""
    with Path(lines).open("ab") as file:
        file.write(b"x\n" * 5000)

    result = command("audit", "verify", lines, "--audit-key", key)

    assert (1, 20) == (result.code, result.out.count("  edited  its hash does not match, or it is not a record\n"))
    assert "  and 4980 more\n" in result.out


def test_verify_reports_a_recovered_incomplete_record(lines: str, key: str) -> None:
    """The audit log is still intact."""
    path = Path(lines)
    path.write_bytes(path.read_bytes()[:-100])
    torn = command("audit", "verify", lines, "--audit-key", key)
    file_of(path)
    repaired = command("audit", "verify", lines, "--audit-key", key)

    assert (1, True) == (torn.code, "line 7  torn tail  the file ends within a record" in torn.out)
    assert (0, True) == (repaired.code, "line 7  torn tail repaired  " in repaired.out)
    shown = command("audit", "show", lines)
    assert "recovered after an incomplete record of " in shown.out
    assert shown.err.endswith(": line 7 is not a record; see neuroscript audit verify\n")


def test_verify_without_a_key_states_its_limits(tmp_path: Path) -> None:
    """This applies to a chain without a key, and to a missing key."""
    file_of(tmp_path / "plain", *RECORDS, key=None)
    file_of(tmp_path / "keyed", *RECORDS)

    plain = command("audit", "verify", str(tmp_path / "plain"))
    keyed = command("audit", "verify", str(tmp_path / "keyed"))

    worth = "without a key, damage is detected but not forgery, because every hash can be recomputed"
    assert (0, True) == (plain.code, worth in plain.out.replace("\n", " "))
    assert (1, True) == (
        keyed.code,
        "the file  wrong key  no record at the beginning matches its plain SHA-256" in keyed.out,
    )


def test_verify_of_a_database_checks_for_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also finds calls without outcome; without a hash chain, key and head have no effect."""
    monkeypatch.chdir(tmp_path)
    path = "trail.db"
    audit = SqliteAudit(path)
    audit.write(intent(7))
    audit.close()

    result = command("audit", "verify", path)
    head = command("audit", "verify", path, "--head", "0:" + "0" * 64)

    expected = f"""\
{path}: no damage
1 record; a database has no hash chain, so neither damage nor forgery is detected

calls without outcome
  line 1  fs.write  call 7 of run run1

"""
    assert CommandResult(0, expected) == result
    assert CommandResult(2, "", "neuroscript: audit: a database has no hash chain; omit key and head\n") == head


@pytest.mark.parametrize(
    ("data", "mode", "code", "text"),
    [
        (KEY, 0o600, 0, ""),
        (KEY, 0o644, 0, "warning: {}: other users can access the key; run chmod 600 on the file"),
        (b"short", 0o600, 2, "{}: the key file has fewer than 32 bytes; create one with 'openssl rand -hex 32'"),
        (None, 0, 2, "cannot read {}: no such file or directory"),
    ],
)
def test_key_file_is_checked_first(data: bytes | None, mode: int, code: int, text: str, lines: str) -> None:
    """It is checked before the audit log."""
    path = Path(lines).with_name("other")
    if data is not None:
        path.write_bytes(data)
        path.chmod(mode)

    result = command("audit", "verify", lines, "--audit-key", str(path))

    name = str(path) if len(str(path)) <= 64 else f"{str(path)[:64]}…"
    assert (code, f"neuroscript: {text.format(name)}\n" if text else "") == (result.code, result.err)


def test_stats_counts_calls_codes_durations_and_refusals(trail: str) -> None:
    """It prints a page, or one JSON object."""
    result = command("audit", "stats", trail)
    in_json = command("audit", "stats", trail, "--json")

    records = len([*read(trail)])
    assert (0, "") == (result.code, result.err)
    assert (
        f"""\
5 calls in {records} records

tool      calls  min / median / max         ended
fs.write      3  1.23 ms / 251 ms / 500 ms  ok 1, tool.failed 1
http.get      1  -                          policy.denied 1
math.add      1  2 s / 2 s / 2 s            ok 1

refusals by rule
    1  http.*  policy.denied

1 call without outcome; see neuroscript audit verify
"""
        == result.out
    )
    data = json.loads(in_json.out)
    assert {"min": 0.00123, "median": 0.250615, "max": 0.5} == data["tools"]["fs.write"].pop("seconds")
    assert {"calls": 3, "codes": {"ok": 1, "tool.failed": 1}} == data["tools"]["fs.write"]
    assert [{"rule": "http.*", "code": "policy.denied", "calls": 1}] == data["refusals"]
    assert (5, 1) == (data["calls"], data["without_outcome"])


@pytest.mark.parametrize("action", ["show", "tail", "verify", "stats"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere", "cannot read nowhere: no such file or directory"),
        ("sandbox", "cannot read sandbox: is a directory"),
        ("/proc/self/mem", "cannot read /proc/self/mem: input/output error"),
        ("a\0b", "a\\x00b is not a path that the system can open"),
        ("", "cannot read : no such file or directory"),
    ],
)
def test_unreadable_file_is_reported(action: str, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one line, and the usual exit code."""
    monkeypatch.chdir(ROOT)

    assert CommandResult(2, "", f"neuroscript: {text}\n") == command("audit", action, name)


@pytest.mark.parametrize("data", [b"\xff\x00\x1b[2J\n" * 5, b"{}\n" * 5, b"x" * 1000, b'{"kind": "a"'])
def test_other_files_are_rejected(data: bytes, tmp_path: Path) -> None:
    """Nothing of their contents is printed."""
    (tmp_path / "file").write_bytes(data)

    for action in ("show", "tail", "stats"):
        result = command("audit", action, str(tmp_path / "file"))
        assert (2, "", True) == (
            result.code,
            result.out,
            result.err.endswith(" is not an audit log: no line is a record\n"),
        )
    result = command("audit", "verify", str(tmp_path / "file"))
    assert (1, True) == (
        result.code,
        "the file  damaged  no line is a record: the file is not an audit log\n" in result.out,
    )


def test_empty_file_is_not_an_error(tmp_path: Path) -> None:
    """No call has been made yet."""
    (tmp_path / "file").touch()

    for action in ("show", "tail", "stats"):
        result = command("audit", action, str(tmp_path / "file"))
        assert (0, "", True) == (result.code, result.out, result.err.endswith("contains no records\n"))
    assert 0 == command("audit", "verify", str(tmp_path / "file")).code


@pytest.mark.parametrize("data", [b"SQLite format 3\0", b"SQLite format 3\0" + b"x" * 5000])
def test_damaged_database_is_reported(data: bytes, tmp_path: Path) -> None:
    """The message is that of SQLite."""
    (tmp_path / "file").write_bytes(data)

    for action in ("show", "tail", "verify", "stats"):
        result = command("audit", action, str(tmp_path / "file"))
        assert (2, "", True) == (
            result.code,
            result.out,
            "is not an audit log database, or cannot be read" in result.err,
        )


HOSTILE = [
    {
        "kind": "outcome",
        "tool": ["x"],
        "code": {},
        "run": {},
        "call": "1",
        "time": "now",
        "seconds": None,
        "needs": [1],
    },
    {"kind": "outcome", "tool": None, "time": 1e300, "seconds": 10**400, "call": -1e11, "needs": {"a": 1}},
    {"kind": "refused", "rule": 5, "time": -1e11, "call": True},
    {"kind": "recovered", "cut": []},
    {"kind": "\x1b[2J", "tool": "\x1b]0;owned\x07"},
    {"kind": "intent", "run": [], "call": 1.5, "tool": 3},
]


def test_records_with_any_types_can_be_shown(tmp_path: Path) -> None:
    """Nothing in them can control the terminal."""
    path = tmp_path / "trail"
    path.write_text("".join(json.dumps(record) + "\n" for record in HOSTILE))
    at = str(path)

    for words in (
        ["show", at],
        ["show", at, "--json"],
        ["stats", at],
        ["stats", at, "--json"],
        ["verify", at, "--json"],
    ):
        result = command("audit", *words)
        assert (result.code, result.err) in ((0, ""), (1, ""))
        assert "\x1b" not in result.out
    assert "\\x1b]0;owned" in command("audit", "show", str(path)).out


def test_names_in_records_cannot_control_the_terminal(tmp_path: Path) -> None:
    """The audit log itself contains them unescaped."""
    odd = ToolFacts("a\x1b[2J\u202e")
    head = file_of(tmp_path / "trail", refused(1, about=odd, rule="\x1b[31m", needs=("fs:\x07",)))

    shown = command("audit", "show", str(tmp_path / "trail"))

    assert "a\\x1b[2J\\u202e" in shown.out
    assert "refused by \\x1b[31m: policy.denied, call 1; fs:\\x07" in shown.out
    assert "\x1b" not in command("audit", "tail", str(tmp_path / "trail"), "--json").out
    assert head


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "expected an action: show, tail, verify, stats (see neuroscript audit --help)"),
        (["show"], "the following arguments are required: FILE (see neuroscript audit show --help)"),
        (
            ["tail", "x", "-n", "-1"],
            "argument -n: expected a whole number below a million (see neuroscript audit tail --help)",
        ),
        (
            ["show", "{}", "--since", "yesterday"],
            "--since: expected a date such as 2026-11-27, or a time such as 2026-11-27T14:30, in UTC",
        ),
        (["verify", "{}", "--head", "1"], "audit: head must be seq:hash, as 'audit tail' prints it"),
    ],
)
def test_usage_errors_refer_to_the_help(words: list[str], text: str, lines: str) -> None:
    result = command("audit", *(word.format(lines) for word in words))

    assert CommandResult(2, "", f"neuroscript: {text}\n") == result


@pytest.mark.parametrize("words", [[], ["show"], ["tail"], ["verify"], ["stats"]])
def test_every_action_has_help(words: list[str]) -> None:
    """Its lines fit the terminal."""
    result = command("audit", *words, "--help")

    assert (0, "") == (result.code, result.err)
    assert result.out.startswith("usage: neuroscript audit")
    assert max(map(len, result.out.splitlines())) <= 110


@pytest.mark.parametrize("action", ["show", "tail", "verify", "stats"])
def test_output_fits_a_terminal(action: str, tmp_path: Path) -> None:
    """The terminal has 80 columns, and names may be long."""
    long = ToolFacts("a" * 30 + "." + "b" * 30)
    file_of(
        tmp_path / "t", *RECORDS, refused(6, about=long, rule="rule." * 10, needs=("fs:read:" + "x" * 90,)), key=None
    )

    text = re.sub(r"\x1b\[[\d;]*m", "", seen("audit", action, os.path.relpath(tmp_path / "t", ROOT)))

    assert max(map(len, text.splitlines())) <= 80
    assert text


@pytest.mark.parametrize("words", [["show"], ["show", "--json"], ["tail"], ["verify"], ["stats"]])
def test_closed_pipe_sets_the_exit_code(words: list[str], lines: str) -> None:
    """It produces no message."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nowhere:
        gone = subprocess.run(
            [sys.executable, "-m", "neuroscript", "audit", *words, lines],
            cwd=ROOT,
            env=environment(),
            stdout=nowhere,
            stderr=subprocess.PIPE,
        )

    assert (5, b"") == (gone.returncode, gone.stderr)


def test_full_disk_sets_the_exit_code(lines: str) -> None:
    """It produces one line."""
    full = process("audit", "show", "--json", lines, shell=">/dev/full")

    assert CommandResult(5, "", "neuroscript: cannot write the results: no space left on device\n") == full


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("neuroscript au", {"audit "}),
        ("neuroscript audit s", {"show", "stats"}),
        ("neuroscript audit verify --a", {"--audit-key "}),
    ],
)
def test_actions_and_options_are_completed(line: str, expected: set[str], tmp_path: Path) -> None:
    answer = tmp_path / "answer"

    result = process(
        COMP_LINE=line, COMP_POINT=str(len(line)), _ARGCOMPLETE="1", _ARGCOMPLETE_STDOUT_FILENAME=str(answer)
    )

    assert (0, expected) == (result.code, set(answer.read_text().split("\013")))


def test_audit_log_is_read_from_a_pipe(lines: str) -> None:
    """For example, from a compressed file."""
    result = process("audit", "show", "/dev/stdin", stdin=Path(lines).read_bytes())

    assert (0, CALLS) == (result.code, result.out)
