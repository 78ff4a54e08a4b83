"""Files held to lists of digests, through an engine as a caller would: what is read, what is told, what is refused."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from neuroscript import CallError, Engine, ToolFailed

EngineWith = Callable[..., Engine]


def code_of(engine: Engine, *args: str, retry: str = "host") -> str:
    """Return the code of the error that a call ends in, and assert who can make the call succeed."""
    with pytest.raises(CallError) as caught:
        engine.call("fs.verify", args)
    assert caught.value.retry == retry
    return caught.value.code


@pytest.mark.parametrize("program", ["md5sum", "sha256sum", "sha512sum"])
@pytest.mark.parametrize("mode", ["--text", "--binary"])
def test_lists_that_others_wrote_are_read(engine: Engine, root: Path, program: str, mode: str) -> None:
    """Those of the programs that everybody has; what is changed afterwards is told."""
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


def test_a_name_is_never_a_pattern(engine_with: EngineWith, root: Path) -> None:
    """Whatever characters it has, it is that one file, below a directory of such a name too."""
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
def test_a_list_leads_nowhere_but_below_its_directory(engine: Engine, root: Path, name: str, retry: str) -> None:
    """Even if all of the sandbox may be read: a list is data, and its names are not the caller's."""
    (root / "list").write_text(f"{DIGEST}  {name}\n")

    assert "policy.capability" == code_of(engine, "list", "data", retry=retry)


def test_what_is_no_file_is_missing(engine: Engine, root: Path) -> None:
    """A directory, a link, wherever it leads, and a name below a file."""
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
def test_a_line_that_is_none_of_a_list_is_named(engine: Engine, root: Path, line: str) -> None:
    """By its number and not by what it holds, whatever stands before it."""
    (root / "list").write_text(f"{DIGEST}  ../outside\n\n{line}\n")

    with pytest.raises(ToolFailed) as caught:
        engine.call("fs.verify", ["list", "data"])

    text = "line 3: expected 32, 64 or 128 hexadecimal digits, two blanks and a name, got something else"
    assert (f"fs.verify: {text}", "fs.bad_list", "model") == (str(caught.value), caught.value.code, caught.value.retry)


def test_verifying_needs_the_list_and_the_directory(engine_with: EngineWith) -> None:
    """Both, or nothing is read."""
    args = ["SHA256SUMS", "data"]

    assert "policy.capability" == code_of(engine_with("fs:read:SHA256SUMS"), *args)
    assert "policy.capability" == code_of(engine_with("fs:read:data/**"), *args)
    assert ["a.txt"] == engine_with("fs:read:data/**", "fs:read:SHA256SUMS").call("fs.verify", args)["ok"]
