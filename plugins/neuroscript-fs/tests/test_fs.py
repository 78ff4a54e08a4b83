"""The file tools, called through an engine: upstream's cases, changes, refusals."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import CallError, Engine, ToolFailed
from neuroscript_fs.filenames import sanitizefilename

EngineWith = Callable[..., Engine]

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "upstream.json"
UPSTREAM = [case for case in json.loads(VECTORS.read_text()) if case["tool_or_fn"].startswith("tool.fs.")]
CODES = {
    "toolset-103": "sandbox.notfound",
    "toolset-105": "policy.capability",  # no grant covers a path outside
    "toolset-108": "sandbox.type",
    "toolset-111": "sandbox.notempty",
    "toolset-112": "policy.capability",
    "toolset-113": "sandbox.notdir",
    "toolset-114": "sandbox.exists",
    "toolset-115": "sandbox.notfound",
    "toolset-118": "sandbox.empty",
}


def outcome(engine: Engine, tool: str, *args: Any, retry: str = "host") -> Any:
    """Return the result of a call, or the code of its error.

    Args:
        retry: Who can make the call succeed where a grant is missing; for other errors it is the model.
    """
    try:
        return engine.call(f"fs.{tool}", args)
    except CallError as error:
        assert error.retry == (retry if error.code == "policy.capability" else "model")
        return error.code


def paths(entries: list[dict[str, Any]]) -> list[str]:
    return [each["path"] for each in entries]


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["id"])
def test_upstream_cases(engine: Engine, root: Path, case: dict[str, Any]) -> None:
    """Results and files are those of upstream; a refusal has a code."""
    for name in case.get("setup", {}).get("dirs", []):
        (root / name).mkdir()
    for name, content in case.get("setup", {}).get("files", {}).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content)

    result = outcome(engine, case["tool_or_fn"].removeprefix("tool.fs."), *case["args"], retry="model")

    assert (CODES[case["id"]] if "error" in case["expect"] else case["expect"]["value"]) == result
    for name, content in case.get("after", {}).get("files", {}).items():
        assert content == (root / name).read_text()


def test_read_returns_what_write_wrote(engine: Engine, root: Path) -> None:
    """As UTF-8, with the original line endings."""
    text = "Grüße\r\n☃\n\rlast"

    engine.call("fs.write", ["a/b/c.txt", text])

    assert text.encode() == (root / "a/b/c.txt").read_bytes()
    assert text == engine.call("fs.read", ["a/b/c.txt"])
    engine.call("fs.append", ["a/b/c.txt", "\nmore"])
    assert f"{text}\nmore" == engine.call("fs.read", ["a/b/c.txt"])


def test_move_includes_directory_content(engine: Engine, root: Path) -> None:
    """The old path is gone, and the new one has the same content."""
    engine.call("fs.move", ["data", "empty/new"])

    assert not (root / "data").exists()
    assert "old\n" == (root / "empty/new/old/b.txt").read_text()


def test_delete_removes_entry(engine: Engine, root: Path) -> None:
    """Files, empty directories and links, which are not followed."""
    (root / "link").symlink_to(root / "data" / "a.txt")

    assert ["OK"] * 3 == [engine.call("fs.delete", [name]) for name in ("notes.txt", "empty", "link")]

    assert ["SHA256SUMS", "data", "photo.jpg"] == sorted(each.name for each in root.iterdir())
    assert (root / "data" / "a.txt").exists()


LINES = {
    "all": ((), "one\ntwo\nthree\n"),
    "from the second": ((1,), "two\nthree\n"),
    "one": ((1, 1), "two\n"),
    "none": ((0, 0), ""),
    "more than there are": ((2, 9), "three\n"),
    "behind the last": ((3,), ""),
    "null, as models send it": ((0, None), "one\ntwo\nthree\n"),
}


@pytest.mark.parametrize(("args", "expected"), LINES.values(), ids=LINES)
def test_read_range_of_lines(engine: Engine, args: tuple[Any, ...], expected: str) -> None:
    """Offset and limit count lines, so no character is split."""
    assert expected == engine.call("fs.read", ["data/a.txt", *args])


COUNTED = {"": 0, "\n": 1, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, "a\r\nb\r": 2, "x" * 300_000 + "\n" + "y": 2}


@pytest.mark.parametrize(("text", "expected"), COUNTED.items(), ids=[repr(each[:9]) for each in COUNTED])
def test_linecount_matches_read(engine: Engine, text: str, expected: int) -> None:
    """A last line without a newline counts."""
    engine.call("fs.write", ["lines.txt", text])

    assert expected == engine.call("fs.linecount", ["lines.txt"])


def test_read_rejects_binary_files(engine: Engine, root: Path) -> None:
    """The error contains the position of the first invalid byte, and no content."""
    (root / "mixed").write_bytes(b"fine\n\xc3\xa4\xff\n")

    with pytest.raises(ToolFailed) as caught:
        engine.call("fs.read", ["mixed"])

    assert "fs.read: the file is not UTF-8 text: byte 8 of 9 is invalid" == str(caught.value)
    assert ("fs.not_text", "model") == (caught.value.code, caught.value.retry)
    assert "fine\n" == engine.call("fs.read", ["mixed", 0, 1])


@pytest.mark.parametrize("line", ["x" * 1023 + "\n", "x" * 2**20], ids=["many lines", "one line"])
def test_read_is_limited_to_8_mib(engine: Engine, root: Path, line: str) -> None:
    """A longer file can be read in parts."""
    whole = line * (8 * 2**20 // len(line))
    (root / "long").write_text(whole)
    assert whole == engine.call("fs.read", ["long"])

    (root / "long").write_text(f"{whole}y")

    for args in ([], [0, 1 + line.count("\n") * 2**13]):
        with pytest.raises(ToolFailed) as caught:
            engine.call("fs.read", ["long", *args])
    text = "there are more than 8388608 bytes to read; read fewer lines with offset and limit"
    assert (text, "fs.too_large", "model") == (caught.value.text, caught.value.code, caught.value.retry)


def test_hash_is_sha256_of_the_bytes(engine: Engine, root: Path) -> None:
    """For text and binary files."""
    (root / "bytes").write_bytes(bytes(range(256)) * 5000)

    assert hashlib.sha256(bytes(range(256)) * 5000).hexdigest() == engine.call("fs.hash", ["bytes"])


def test_entries_have_the_same_shape(engine: Engine) -> None:
    """Every tool returns the same keys in the same order."""
    expected = {
        "name": "a.txt",
        "path": "data/a.txt",
        "is_dir": False,
        "kind": "file",
        "size_bytes": 14,
        "modified_unix": 1700000000.0,
        "modified_rfc3339": "2023-11-14T22:13:20.000000+00:00",
    }

    for tool, args in [("list", ["data"]), ("walk", ["data"]), ("list", ["data", True]), ("glob", ["*", "data"])]:
        entries = engine.call(f"fs.{tool}", args)
        assert list(expected.items()) == list(entries[0].items())
        assert entries == [engine.call("fs.stat", [each["path"]]) for each in entries]


def test_entries_are_sorted_by_path(engine: Engine, root: Path) -> None:
    """On every file system."""
    for name in ("data/old-er", "data/Z", "data/é", "data/old.txt"):
        (root / name).touch()

    for entries in (engine.call("fs.list", ["data"]), engine.call("fs.walk"), engine.call("fs.glob", ["**"])):
        assert sorted(paths(entries)) == paths(entries)
        assert "data/old-er" in paths(entries)


def test_default_path_is_the_sandbox(engine: Engine) -> None:
    """The paths of its entries have no directory prefix."""
    top = ["SHA256SUMS", "data", "empty", "notes.txt", "photo.jpg"]

    assert top == paths(engine.call("fs.list"))
    assert top == paths(engine.call("fs.list", ["."]))
    assert [*top[:2], "data/a.txt", "data/old", "data/old/b.txt", *top[2:]] == paths(engine.call("fs.walk"))
    assert ["notes.txt"] == paths(engine.call("fs.glob", ["*.txt"]))


def test_links_are_listed_but_not_followed(
    engine: Engine, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """They are not read either, whether they lead out of the sandbox or not."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("secret")
    (root / "way-out").symlink_to(outside)
    (root / "way-in").symlink_to(root / "data")

    shown = {each["path"]: each["kind"] for each in engine.call("fs.walk")}

    assert ("symlink", "symlink") == (shown["way-out"], shown["way-in"])
    assert not any(path.startswith(("way-out/", "way-in/")) for path in shown)
    for tool, name in [("read", "way-out/secret"), ("hash", "way-in/a.txt"), ("list", "way-out"), ("walk", "way-in")]:
        assert outcome(engine, tool, name) in ("sandbox.symlink", "sandbox.notdir")


def test_file_time_out_of_range_does_not_fail_the_listing(engine: Engine, root: Path) -> None:
    """The entry has no RFC 3339 time, but still a timestamp."""
    os.utime(root / "notes.txt", (10**12, 10**12))
    if (root / "notes.txt").stat().st_mtime < 10**12:
        os.utime(root / "notes.txt", (0, -(10**11)))

    entry = engine.call("fs.stat", ["notes.txt"])

    seconds = (root / "notes.txt").stat().st_mtime
    assert seconds == entry["modified_unix"]
    assert (entry["modified_rfc3339"] is None) == (not -62135596800 <= seconds < 253402300800)


# Grants

CONFINED = {
    "its own file": ("read", ["data/a.txt"], "one\ntwo\nthree\n"),
    "another file": ("read", ["notes.txt"], "policy.capability"),
    "another way to its own file": ("read", ["empty/../data/a.txt"], "one\ntwo\nthree\n"),
    "a way out of its directory": ("read", ["data/../notes.txt"], "policy.capability"),
    "its directory": ("walk", ["data"], ["data/a.txt", "data/old", "data/old/b.txt"]),
    "its directory with a slash": ("list", ["data/"], ["data/a.txt", "data/old"]),
    "what is below it": ("list", ["data/old"], ["data/old/b.txt"]),
    "the sandbox": ("walk", ["."], "policy.capability"),
    "the sandbox unless it is said": ("list", [], "policy.capability"),
    "the sandbox the long way": ("list", ["data/.."], "policy.capability"),
    "a directory whose name begins alike": ("list", ["data2"], "policy.capability"),
    "a pattern in its directory": ("glob", ["**/*.txt", "data"], ["data/a.txt", "data/old/b.txt"]),
    "a pattern anywhere": ("glob", ["data/*.txt"], "policy.capability"),
    "a pattern that leads out": ("glob", ["../*", "data"], "policy.capability"),
    "what it is": ("stat", ["data"], ["data"]),
    "what another one is": ("stat", ["empty"], "policy.capability"),
    "writing": ("write", ["data/a.txt", ""], "policy.capability"),
    "deleting": ("delete", ["data/a.txt"], "policy.capability"),
}


@pytest.mark.parametrize(("tool", "args", "expected"), CONFINED.values(), ids=CONFINED)
def test_grant_is_limited_to_its_directory(
    engine_with: EngineWith, root: Path, tool: str, args: list[Any], expected: Any
) -> None:
    """``fs:read:data/**`` allows reading and listing data and everything below it, and nothing else."""
    (root / "data2").mkdir()

    result = outcome(engine_with("fs:read:data/**"), tool, *args)

    entries = [result] if isinstance(result, dict) else result
    assert expected == (paths(entries) if isinstance(entries, list) else result)


def test_listing_needs_access_to_the_whole_directory(engine_with: EngineWith) -> None:
    """A grant for one level, or for some names, is not enough to list a directory."""
    for grant in ("fs:read:data/*", "fs:read:data", "fs:read:data/*.txt", "fs:write:data/**"):
        assert "policy.capability" == outcome(engine_with(grant), "list", "data")
    assert "one\ntwo\nthree\n" == outcome(engine_with("fs:read:data/*.txt"), "read", "data/a.txt")


MOVED = {
    "both": (["fs:delete:inbox/**", "fs:write:done/**"], None),
    "its source alone": (["fs:delete:inbox/**"], "policy.capability"),
    "its destination alone": (["fs:write:done/**"], "policy.capability"),
    "writing at both": (["fs:write:*"], "policy.capability"),
}


@pytest.mark.parametrize(("grants", "code"), MOVED.values(), ids=MOVED)
def test_move_needs_delete_and_write_grants(
    engine_with: EngineWith, root: Path, grants: list[str], code: str | None
) -> None:
    """Without both, neither path changes."""
    for name in ("inbox", "done"):
        (root / name).mkdir()
    (root / "inbox" / "a").touch()

    result = outcome(engine_with(*grants), "move", "inbox/a", "done/b")

    assert code == (result if isinstance(result, str) else None)
    assert (root / "done/b").exists() is (code is None)
    assert (root / "inbox/a").exists() is (code is not None)


# Limits


def test_free_needs_a_grant_for_the_sandbox_only(engine_with: EngineWith, root: Path) -> None:
    """A grant for a part of the sandbox is not enough."""
    result = engine_with("fs:read:.").call("fs.free")

    assert ["total_bytes", "free_bytes"] == list(result)
    assert shutil.disk_usage(root).total == result["total_bytes"]
    assert 0 <= result["free_bytes"] <= result["total_bytes"]
    assert "policy.capability" == outcome(engine_with("fs:read:."), "list")
    assert "policy.capability" == outcome(engine_with("fs:read:data/**"), "free")


# File names

SANITIZED = {
    "": "default_sanitized_name",
    "héllo": "hllo",
    ".hidden": "hidden",
    "a\0b": "invalid_null_byte_name",
    "con.txt": "con_.txt",
    "AUX": "AUX_",
    "com1.tar.gz": "com1_.tar.gz",
    "CON ": "CON_",
    "console": "console",
    "a...b": "a_b",
    "a - b": "a_-_b",
    "a--__b": "a-_b",
    "~/x": "x",
    "C:x": "C_x",
    "x" * 101: "x" * 100,
    "x" * 99 + ".y": "x" * 99,
    "con.falcon.txt": "con_.falcon.txt",
    "con." + "x" * 97: "con_." + "x" * 95,
    "con." + "_." * 60 + "x": "con_",
}


@pytest.mark.parametrize(("name", "expected"), SANITIZED.items(), ids=[repr(each[:12]) for each in SANITIZED])
def test_sanitized_names_follow_upstream(engine: Engine, name: str, expected: str) -> None:
    """Windows device names are recognized with any extension."""
    assert expected == engine.call("fs.sanitizefilename", [name])
    assert "OK" == engine.call("fs.write", [expected, "it can be written"])


@given(st.text(st.sampled_from("._-aC0 /\\:é\x00~\nnoulpt19"), max_size=130) | st.text(max_size=20))
def test_sanitized_names_are_always_valid(text: str) -> None:
    """Short, ASCII, no device name; a valid name does not change."""
    name = sanitizefilename(text)

    assert re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_])?", name)
    assert not re.match(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", name, re.IGNORECASE)
    assert name == sanitizefilename(name)
