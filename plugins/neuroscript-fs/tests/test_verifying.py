"""The fs.verify tool, called through an engine: supported lists, results, refusals."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from neuroscript import CallError, Engine, ToolFailed

EngineWith = Callable[..., Engine]


def code_of(engine: Engine, *args: str, retry: str = "host") -> str:
    """Return the error code of a call, and assert who can retry."""
    with pytest.raises(CallError) as caught:
        engine.call("fs.verify", args)
    assert caught.value.retry == retry
    return caught.value.code


@pytest.mark.parametrize("program", ["md5sum", "sha256sum", "sha512sum"])
@pytest.mark.parametrize("mode", ["--text", "--binary"])
def test_lists_of_common_programs_are_supported(engine: Engine, root: Path, program: str, mode: str) -> None:
    """A file that changes afterwards is reported."""
    (root / "empty" / "a b").write_bytes(b"\0")
    names = ["data/a.txt", "data/old/b.txt", "empty/a b", "notes.txt", "photo.jpg"]
    done = subprocess.run([program, mode, *names], cwd=root, capture_output=True, check=True)
    (root / "list").write_bytes(done.stdout)
    (root / "upper").write_bytes(b"\r\n".join(line[:32].upper() + line[32:] for line in done.stdout.split(b"\n")))
    (root / "notes.txt").write_text("other")
    (root / "photo.jpg").unlink()

    expected = {"ok": names[:3], "changed": ["notes.txt"], "missing": ["photo.jpg"]}
    assert expected == engine.call("fs.verify", ["list"])
    assert expected == engine.call("fs.verify", ["upper", ""])


DIGEST = hashlib.sha256(b"").hexdigest()
ODD = ["a,b", "a*", "a?", "[a]", "{a}", "a b", " a", "*a", "a  b", "é", "fs:read", "dots...", "-"]


def test_names_are_not_patterns(engine_with: EngineWith, root: Path) -> None:
    """A name with wildcard characters means that one file, also in a directory with such a name."""
    place = root / "d,{*}[x]"
    place.mkdir()
    for name in ODD:
        (place / name).touch()
    (root / "list").write_text("".join(f"{DIGEST}  {name}\n" for name in ODD))
    engine = engine_with("fs:read:list", "fs:read:d\\,\\{\\*\\}\\[x\\]/**")

    assert {"ok": ODD, "changed": [], "missing": []} == engine.call("fs.verify", ["list", "d,{*}[x]"])


NOT_BELOW = {
    "../notes.txt": "host",
    "../data2/a": "host",
    "old/../../notes.txt": "host",
    "../../etc/passwd": "model",  # outside of the sandbox
    "..": "host",
}


@pytest.mark.parametrize(("name", "retry"), NOT_BELOW.items(), ids=NOT_BELOW)
def test_list_cannot_name_files_outside_its_directory(engine: Engine, root: Path, name: str, retry: str) -> None:
    """Even if the whole sandbox is readable: the names come from data, not from the caller."""
    (root / "list").write_text(f"{DIGEST}  {name}\n")

    assert "policy.capability" == code_of(engine, "list", "data", retry=retry)


def test_directories_and_links_count_as_missing(engine: Engine, root: Path) -> None:
    """As does a name below a file."""
    (root / "link").symlink_to(root / "notes.txt")
    names = ["data", "link", "notes.txt/a", "notes.txt/", "nothing"]
    (root / "list").write_text("".join(f"{DIGEST}  {name}\n" for name in names))

    assert {"ok": [], "changed": [], "missing": names} == engine.call("fs.verify", ["list"])


BROKEN = {
    "no digest": "notes.txt",
    "a digest of another length": f"{DIGEST[:40]}  a",
    "other digits": f"{'g' * 64}  a",
    "one blank": f"{DIGEST} a",
    "no name": f"{DIGEST}  ",
    "an absolute path": f"{DIGEST}  /etc/passwd",
    "a name with escapes": f"\\{DIGEST}  a\\nb",
    "a comment": "# sums",
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_invalid_line_is_reported_by_number(engine: Engine, root: Path, line: str) -> None:
    """The error does not contain the line."""
    (root / "list").write_text(f"{DIGEST}  ../outside\n\n{line}\n")

    with pytest.raises(ToolFailed) as caught:
        engine.call("fs.verify", ["list", "data"])

    text = "line 3: expected 32, 64 or 128 hexadecimal digits, two spaces and a name, got something else"
    assert (f"fs.verify: {text}", "fs.bad_list", "model") == (str(caught.value), caught.value.code, caught.value.retry)


def test_verify_needs_grants_for_list_and_directory(engine_with: EngineWith) -> None:
    """Without both, nothing is read."""
    args = ["SHA256SUMS", "data"]

    assert "policy.capability" == code_of(engine_with("fs:read:SHA256SUMS"), *args)
    assert "policy.capability" == code_of(engine_with("fs:read:data/**"), *args)
    assert ["a.txt"] == engine_with("fs:read:data/**", "fs:read:SHA256SUMS").call("fs.verify", args)["ok"]
