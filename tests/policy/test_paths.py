"""Validation of paths by their text, for every system, and the canonical form of network locations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from neuroscript import SandboxError
from neuroscript.policy.paths import canonical_path, host_port, names_directory, relative

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "paths.json").read_text())["cases"]
WINDOWS = [case for case in CASES if case["platforms"] == ["windows"]]


def code(path: Any, windows: bool = False) -> str:
    """Return the code with which a path is refused."""
    with pytest.raises(SandboxError) as raised:
        relative(path, windows=windows)
    assert raised.value.retry == "model"
    return raised.value.code


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case["id"])
def test_a_special_name_of_windows_is_refused_there(case: dict[str, Any]) -> None:
    """On other systems it is an ordinary name."""
    assert code(case["input"], windows=True) == case["error"].replace("path.", "sandbox.")
    assert relative(case["input"], windows=False) == tuple(case["input"].split("/"))


@pytest.mark.parametrize("path", ["NUL", "a/con.txt", "lpt¹", "COM²/x", "x.", "x /y", "a:b/c", "PROGRA~1", "conout$"])
def test_more_names_of_windows(path: str) -> None:
    """In any case, with any suffix, anywhere in the path."""
    assert code(path, windows=True) in ("sandbox.name", "sandbox.absolute")


@pytest.mark.parametrize("path", ["console.txt", "nullable", "com", "a.con", "lpt10", "x~y", "auxiliary/prn2.txt"])
def test_names_similar_to_those_of_windows_are_accepted(path: str) -> None:
    """They have no special meaning."""
    assert relative(path, windows=True) == tuple(path.split("/"))


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        (".", ()),
        ("a/..", ()),
        ("./a//b/./c/", ("a", "b", "c")),
        ("a/../~x/../b", ("b",)),
        ("a/~b", ("a", "~b")),
        ("..data/...", ("..data", "...")),
        ("é" * 127, ("é" * 127,)),
        ("/".join("d" * 256), tuple("d" * 256)),
        ("./" * 2047 + "d", ("d",)),
    ],
)
def test_a_path_becomes_its_parts(path: str, segments: tuple[str, ...]) -> None:
    """Redundant parts are removed."""
    assert relative(path) == segments


@pytest.mark.parametrize(
    ("path", "word", "text"),
    [
        (b"a", "argtype", "a path must be a string"),
        (None, "argtype", "a path must be a string"),
        ("", "empty", "a path must not be empty; the sandbox itself is '.'"),
        ("a\0", "nul", "a path must not contain a NUL character"),
        ("\udcff", "encoding", "a path must be valid Unicode, without lone surrogates"),
        ("a\tb", "control", "a path must not contain invisible characters"),
        ("a\x7f", "control", "a path must not contain invisible characters"),
        ("\u202egnp.exe", "control", "a path must not contain invisible characters"),
        ("a\u2028b", "control", "a path must not contain invisible characters"),
        ("a\U000e0041", "control", "a path must not contain invisible characters"),
        ("a\\b", "separator", "a path uses '/' as its separator and must not contain a backslash"),
        ("/", "absolute", "a path must be relative to the sandbox"),
        ("c:", "absolute", "a path must be relative to the sandbox"),
        ("./C:/x", "absolute", "a path must be relative to the sandbox"),
        ("./~", "name", "a path must not begin with '~'"),
        ("x/../~root", "name", "a path must not begin with '~'"),
        ("..", "escape", "the path leads out of the sandbox"),
        ("a/../../canary", "escape", "the path leads out of the sandbox"),
        ("é" * 128, "toolong", "a path has at most 256 names of at most 255 bytes each"),
        ("/".join("d" * 257), "toolong", "a path has at most 256 names of at most 255 bytes each"),
        ("é/" * 1400, "toolong", "a path has at most 4095 bytes"),
        ("d/" * 2048, "toolong", "a path has at most 4095 bytes"),
    ],
)
def test_a_path_is_refused(path: Any, word: str, text: str) -> None:
    """Each reason has its own code, and its message does not repeat the path, which may contain anything."""
    assert code(path) == f"sandbox.{word}"
    with pytest.raises(SandboxError) as raised:
        relative(path)
    assert str(raised.value) == text


def test_a_subclass_of_str_is_read_by_its_real_content() -> None:
    """Its overridden methods are not called."""

    class Lying(str):
        def __contains__(self, part: object) -> bool:
            raise AssertionError

        def split(self, *args: Any) -> Any:
            raise AssertionError

        startswith = __getitem__ = __len__ = encode = rpartition = split  # type: ignore[assignment]

    assert code(Lying("../x")) == "sandbox.escape"
    segments = relative(Lying("a/b"))
    assert segments == ("a", "b")
    assert [type(name) for name in segments] == [str, str]


@given(some.text(some.one_of(some.sampled_from("./~a\\:\0"), some.characters()), max_size=30))
def test_an_accepted_path_is_relative_and_canonical(path: str) -> None:
    """No part is empty, a dot, two dots, or contains a separator; parsing the result changes nothing."""
    try:
        segments = relative(path)
    except SandboxError:
        return

    assert not {"", ".", ".."} & {*segments}
    assert not any("/" in name or "\0" in name for name in segments)
    assert relative(canonical_path(segments)) == segments


@pytest.mark.parametrize(("path", "means"), [("a", False), ("a/", True), ("a/.", True), (".", True), ("a/..", True)])
def test_some_paths_can_only_be_directories(path: str, means: bool) -> None:
    """Those that end with a separator or a dot."""
    assert names_directory(path) is means


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("example.com.:443", "example.com:443"),
        ("*.Example.com:80", "*.example.com:80"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("[::1]", "[::1]"),
        ("[0:0:0:0:0:0:0:1]:443", "[::1]:443"),
        ("[2001:DB8::0:1]", "[2001:db8::1]"),
        ("example.com:00443", "example.com:443"),
    ],
)
def test_a_network_location_has_one_spelling(text: str, normal: str) -> None:
    """It is its own canonical form."""
    assert host_port(text) == normal
    assert host_port(normal) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "a:b",
        "a:",
        ":80",
        "::1",
        "[::1",
        "[::1]x",
        "[:::]",
        "a/b",
        "u@a",
        "a?b",
        "a#b",
        "a:65536",
        "a:80:80",
        ".",
        "a..",
    ],
)
def test_an_invalid_network_location_is_refused(text: str) -> None:
    """Without repeating it."""
    with pytest.raises(ValueError, match=r"^expected (host or host:port|an IPv6 address in brackets)$"):
        host_port(text)
