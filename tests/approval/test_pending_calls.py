"""Pending calls in files: how they are written, restored and answered."""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.approval.approval_cases import FIELDS, request

from neuroscript import Approval, FileApprover, Handle, PendingApproval, SpecError

# Files


def test_pending_call_is_restored_from_its_file(tmp_path: Path) -> None:
    """Every JSON type and bytes survive, in a file with a generated or a chosen name."""
    arguments = {
        "text": "grüße \x00\u202e\U0001f600",
        "raw": b"\x00\xff",
        "number": 2**63 - 1,
        "float": -0.0,
        "tiny": 5e-324,
        "truth": True,
        "none": None,
        "list": [1, 1.0, "1", [b""], {"a": {}}],
        "map": {"b": 1, "a": [None], "": False},
        "$base64": "YQ==",
    }
    pending = PendingApproval.of(request(arguments=arguments), reason="no terminal", created=1.5)

    own = pending.save(tmp_path)
    named = pending.save(tmp_path / "waits.json")

    assert tmp_path / "waits.json" == named
    assert re.fullmatch(r"fs\.delete-[0-9a-f]{16}\.json", own.name)
    for path in (own, named, str(named)):
        loaded = PendingApproval.load(path)
        assert pending == loaded
        assert repr(arguments) == repr(loaded.call.arguments)
    assert ("fs.delete", "no terminal", 1.5) == (loaded.tool, loaded.reason, loaded.created)
    assert "grüße" not in repr(pending)


def test_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """The umask does not matter."""
    before = os.umask(0)
    try:
        path = suspended_in(tmp_path / "made")
    finally:
        os.umask(before)

    assert (0o600, 0o700) == (path.stat().st_mode & 0o7777, path.parent.stat().st_mode & 0o7777)


def suspended_in(folder: Path) -> Path:
    """Store a request for later, and return its file."""
    answer = FileApprover(folder)(request())
    (path,) = folder.iterdir()
    assert Approval.suspend(f"saved in {path.name}") == answer
    return path


def test_another_user_cannot_read_a_file() -> None:
    """This holds in a world-writable directory too."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = PendingApproval.of(request()).save(directory)
        (Path(directory) / "public").write_text("free")
        read = [
            subprocess.run(["cat", str(each)], capture_output=True, check=False, user="nobody")
            for each in (path, Path(directory) / "public")
        ]

    assert [(1, b""), (0, b"free")] == [(each.returncode, each.stdout) for each in read]
    assert b"Permission denied" in read[0].stderr


def test_file_never_replaces_another(tmp_path: Path) -> None:
    """Nor does it replace a link, and no temporary file is left."""
    (tmp_path / "there").write_text("old")
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")

    for name in ("there", "dangling"):
        with pytest.raises(FileExistsError):
            PendingApproval.of(request()).save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        PendingApproval.of(request()).save(tmp_path / "no" / "directory")

    assert ["dangling", "there"] == sorted(path.name for path in tmp_path.iterdir())
    assert "old" == (tmp_path / "there").read_text()


KILLED = f"""
import os, resource, signal, sys
from neuroscript import ApprovalRequest, PendingApproval
os.umask(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
signal.signal(signal.SIGXFSZ, int(sys.argv[2]))
pending = PendingApproval.of(ApprovalRequest(**{{**{FIELDS!r}, "arguments": {{"text": "x" * 1_000_000}}}}))
try:
    pending.save(sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def test_killed_writer_leaves_no_partial_file(tmp_path: Path) -> None:
    """Only a hidden, private temporary file can remain; a full disk leaves nothing."""
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "waits.json")]

    killed = subprocess.run([*arguments, str(int(signal.SIG_DFL))])
    (left,) = tmp_path.iterdir()
    full = subprocess.run([*arguments, str(int(signal.SIG_IGN))], capture_output=True, text=True)

    assert -signal.SIGXFSZ == killed.returncode
    assert re.fullmatch(r"\.[0-9a-f]{16}\.tmp", left.name)
    assert (100_000, 0o600) == (left.stat().st_size, left.stat().st_mode & 0o7777)
    assert ("File too large\n", 0) == (full.stdout, full.returncode)
    assert [left] == [*tmp_path.iterdir()]


WRITING = f"""
import sys
from neuroscript import ApprovalRequest, PendingApproval
pending = PendingApproval.of(ApprovalRequest(**{{**{FIELDS!r}, "arguments": {{"text": "x" * 100_000}}}}))
while True:
    print(pending.save(sys.argv[1]).name, flush=True)
"""


def test_reported_file_is_complete_after_a_kill(tmp_path: Path) -> None:
    """Every file with a final name is complete."""
    child = subprocess.Popen([sys.executable, "-c", WRITING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    reported = [child.stdout.readline().strip() for _ in range(50)]
    child.kill()
    reported += child.stdout.read().split()
    child.wait()
    child.stdout.close()

    saved = {path.name: PendingApproval.load(path) for path in tmp_path.glob("*.json")}
    assert {*reported} <= {*saved}
    assert {"x" * 100_000} == {each.call.arguments["text"] for each in saved.values()}  # type: ignore[call-overload,index]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (datetime.datetime(2025, 1, 1), "datetime"),
        (array("f", [0.5]), "array"),
        (Handle("tree:1", "tree"), "Handle"),
        ({1: "a"}, "dict"),
        ([{"$base64": "YQ=="}], "list"),
        ([datetime.datetime(2025, 1, 1)], "list"),
        (float("nan"), "float"),
        (object(), "object"),
    ],
    ids=["time", "embedding", "handle", "keys", "looks-like-bytes", "deep", "nan", "object"],
)
def test_unrestorable_arguments_are_not_written(tmp_path: Path, value: Any, kind: str) -> None:
    """The approver rejects the call and gives the name and type of each such argument, never its value."""
    question = request(arguments={"a": value, "b": 1, "c": value})

    with pytest.raises(SpecError) as caught:
        PendingApproval.of(question).save(tmp_path)

    sentence = "cannot be stored and read back exactly"
    assert f"pending approval: a {sentence} ({kind}); c {sentence} ({kind})" == str(caught.value)
    expected = f"it cannot wait for approval: a {sentence} ({kind}); c {sentence} ({kind})"
    assert Approval.reject(expected) == FileApprover(tmp_path)(question)
    assert [] == [*tmp_path.iterdir()]


def test_secret_arguments_are_not_written(tmp_path: Path) -> None:
    """A secret argument that was not passed does not count."""
    question = request(arguments={"path": "a", "token": "hunter2", "key": b"k"}, secrets=frozenset({"token", "key"}))
    with pytest.raises(SpecError) as caught:
        PendingApproval.of(question)
    rejected = FileApprover(tmp_path / "sub")(question)
    fine = PendingApproval.of(attrs.evolve(question, arguments={"path": "a", "token": None})).save(tmp_path)

    sentence = "is secret and must not be stored"
    assert f"pending approval: token {sentence}; key {sentence}" == str(caught.value)
    assert Approval.reject(f"it cannot wait for approval: token {sentence}; key {sentence}") == rejected
    assert {"path": "a", "token": None} == PendingApproval.load(fine).call.arguments
    assert [] == [*(tmp_path / "sub").iterdir()]


def test_unwritable_directory_rejects_the_call(tmp_path: Path) -> None:
    """The reason does not contain the path."""
    (tmp_path / "file").write_text("")

    assert Approval.reject("it cannot wait for approval: its file cannot be written (FileExistsError)") == FileApprover(
        tmp_path / "file"
    )(request())


@pytest.mark.parametrize("name", ["fingerprint", "policy", "session", "digest"])
def test_answer_must_match_all_four_fields(name: str) -> None:
    """The error gives each field that differs."""
    pending = PendingApproval.of(request())
    now = {each: FIELDS[each] for each in ("fingerprint", "policy", "session", "digest")}

    assert () == pending.agrees(**now)
    assert (name,) == pending.agrees(**{**now, name: now[name][:-1] + "4"})
    assert ("fingerprint", "policy", "session", "digest") == pending.agrees("", "", "", "")


# Untrusted files


def fault(path: Path) -> str:
    """Return the error of reading a file."""
    with pytest.raises(SpecError) as caught:
        PendingApproval.load(path)
    return str(caught.value).removeprefix("pending approval: ")


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o644, 0o660, 0o777])
def test_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = suspended_in(tmp_path)
    path.chmod(mode)

    assert f"other users can access the file: its mode is {mode:04o}, but must be 0600" == fault(path)


def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """The error also gives every other problem."""
    path = suspended_in(tmp_path)
    os.chown(path, 65534, -1)
    assert "the file belongs to another user" == fault(path)

    path.chmod(0o644)
    mode = "other users can access the file: its mode is 0644, but must be 0600"
    assert f"the file belongs to another user; {mode}" == fault(path)


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """Links and directories are refused; a pipe is refused without waiting for it."""
    path = suspended_in(tmp_path / "sub")
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe", 0o600)

    assert "the file is a symbolic link; pass the path of the file itself" == fault(tmp_path / "link")
    assert "it is not a regular file" == fault(tmp_path / "pipe") == fault(tmp_path / "sub")
    with pytest.raises(FileNotFoundError):
        PendingApproval.load(tmp_path / "missing")


GOOD = {
    "version": 1,
    "tool": "fs.delete",
    "arguments": {"path": "a"},
    "fingerprint": "1" * 64,
    "policy": "2" * 64,
    "session": "alice",
    "digest": "3" * 64,
    "approver": 0,
    "reason": "",
    "created": 1,
}
HEX = "must be 64 hexadecimal digits"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 2}, "version must be 1; the file was written by another release"),
        ({"approver": -1}, "approver must be 0 or more"),
        ({"version": True}, "version must be int, not bool"),
        ({"version": "1"}, "version must be int, not str"),
        ({"tool": ""}, "tool must not be empty"),
        ({"tool": ["fs.delete"]}, "tool must be str, not list"),
        ({"arguments": ["a"]}, "arguments must be dict, not list"),
        ({"policy": "2" * 63}, f"policy {HEX}"),
        ({"policy": "2" * 64 + "\n"}, f"policy {HEX}"),
        ({"fingerprint": "A" * 64, "digest": ""}, f"fingerprint {HEX}; digest {HEX}"),
        ({"session": None}, "session must be str, not None"),
        ({"created": "now"}, "created must be int or float, not str"),
        ({"created": True}, "created must be int or float, not bool"),
        ({"created": -1}, "created must be seconds since 1970"),
        ({"created": 10**400}, "created must be seconds since 1970"),
        ({"created": float("inf")}, "created must be seconds since 1970"),
        ({"arguments": {"a": {"$base64": "?"}, "b": 1}}, "arguments: a holds what no call can"),
        ({"arguments": {"a": [float("inf")]}}, "arguments: a holds what no call can"),
        ({"approved": True, "x\x1b": 1}, "approved is unknown; x\\x1b is unknown"),
        ({"tool": 1, "more": 1, "policy": ""}, f"more is unknown; tool must be str, not int; policy {HEX}"),
    ],
    ids=ascii,
)
def test_every_problem_of_a_file_is_reported(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    """The error gives names and types; the same file without the problem is accepted."""
    text = json.dumps({**GOOD, **changes}).replace("Infinity", "1e999")

    assert expected == fault(private(tmp_path, text.encode()))
    assert "alice" == PendingApproval.load(private(tmp_path, json.dumps(GOOD).encode())).session


def private(folder: Path, content: bytes) -> Path:
    """Write a file with valid permissions and this content."""
    path = folder / "file"
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("name", GOOD)
def test_file_with_missing_fields_is_refused(tmp_path: Path, name: str) -> None:
    content = {key: value for key, value in GOOD.items() if key != name}

    assert f"{name} is missing" == fault(private(tmp_path, json.dumps(content).encode()))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "line 1, column 1 is not JSON"),
        (b"{", "line 1, column 2 is not JSON"),
        (b"[]", "expected an object, got list"),
        (b"null", "expected an object, got None"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"\x00" * 100, "line 1, column 1 is not JSON"),
        (b'{"version": 1, "version": 1}', "the JSON text contains a duplicate key"),
        (b'{"version": NaN}', "NaN is not a JSON number"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "a number in the JSON text is too long"),
        (b"[" * 1_000_000, "the JSON text nests too deeply"),
    ],
    ids=["empty", "cut", "list", "null", "binary", "nul", "twice", "nan", "digits", "deep"],
)
def test_file_that_is_not_an_object_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    assert expected == fault(private(tmp_path, content))


def test_deeply_nested_arguments_are_refused_without_a_crash(tmp_path: Path) -> None:
    """The JSON reader accepts more levels than the code after it."""
    text = json.dumps(GOOD).replace('"a"}', "[" * 900 + "]" * 900 + "}")

    assert fault(private(tmp_path, text.encode())) in (
        "arguments: path holds what no call can",
        "the JSON text nests too deeply",
    )


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    """A sparse file costs an attacker nothing."""
    path = private(tmp_path, b"{}")
    os.truncate(path, 2**40)

    assert "the file has more than 67108864 bytes" == fault(path)
