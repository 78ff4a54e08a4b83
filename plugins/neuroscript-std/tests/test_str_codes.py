"""Base64, hexadecimal and gzip: strict decoding and size limits."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroscript import Engine
from neuroscript_std.str import toolset

MIB = 1024 * 1024
NOT_BASE64 = "invalid Base64; use only A-Z, a-z, 0-9, + and /, padded with = to a multiple of 4"
NOT_HEX = "invalid hexadecimal; use only 0-9 and a-f, two digits per byte"
NOT_TEXT = "the decoded bytes are not valid UTF-8"
NOT_GZIP = "the decoded bytes are not complete gzip data; pass the output of str.compress"
TOO_LARGE = "the result would exceed 8 MiB; process less text per call"

HELLO = gzip.compress(b"hello", mtime=0)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


@pytest.mark.parametrize("name", ["frombase64", "bytesfrombase64", "parsefromjsonbase64", "decompress"])
@pytest.mark.parametrize(
    "text",
    ["QQ", "QQ=", "QQ===", "QQ==QQ==", "QR==", "QUJD\n", "QU JD", "=", "====", "Q", "-_8=", "QUJDé", "QQ==\0"],
    ids=ascii,
)
def test_base64_is_decoded_strictly(error_of: Callable[..., tuple[str, str, str]], name: str, text: str) -> None:
    """Padding is required, no character is skipped, and no bits are dropped."""
    assert (f"str.{name}: {NOT_BASE64}", "str.not_base64", "model") == error_of(f"str.{name}", text)


@pytest.mark.parametrize("text", ["6", "68 65", "0x68", "6g", "６８", "68\n"], ids=ascii)
def test_hex_is_decoded_strictly(error_of: Callable[..., tuple[str, str, str]], text: str) -> None:
    """Two ASCII digits per byte, without whitespace."""
    assert (f"str.fromhex: {NOT_HEX}", "str.not_hex", "model") == error_of("str.fromhex", text)


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("frombase64", base64),
        ("bytesfrombase64", base64),
        ("fromhex", bytes.hex),
        ("decompress", lambda data: base64(gzip.compress(data))),
    ],
)
@pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\x80", b"a\xc3"], ids=["no-utf8", "surrogate", "cut"])
def test_decoded_bytes_must_be_utf8(
    error_of: Callable[..., tuple[str, str, str]], name: str, encode: Any, data: bytes
) -> None:
    """Invalid bytes are refused, not replaced."""
    assert (f"str.{name}: {NOT_TEXT}", "str.not_text", "model") == error_of(f"str.{name}", encode(data))


@settings(max_examples=50, deadline=None)
@given(st.text())
@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("tobase64", "frombase64"),
        ("bytestobase64", "bytesfrombase64"),
        ("tohex", "fromhex"),
        ("compress", "decompress"),
    ],
)
def test_encoding_round_trip(there: str, back: str, text: str) -> None:
    """For each pair of tools and any string."""
    with Engine(toolsets=[toolset], plugins="none") as engine:
        assert text == engine.call(f"str.{back}", (engine.call(f"str.{there}", (text,)),))


def test_compression_is_deterministic(engine: Engine) -> None:
    """The data contains no time and no system name, and any gzip reader accepts it."""
    data = engine.call("str.compress", ("hello " * 100,))

    assert data == engine.call("str.compress", ("hello " * 100,))
    assert data.startswith("H4sIAAAAAAAA/")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        HELLO[:-1],
        HELLO[:-8],
        HELLO[:5],
        HELLO[:-1] + b"\x01",
        HELLO[:10] + b"\xff" * 8,
        HELLO + b"more",
        HELLO[:2] + b"\x07" + HELLO[3:],
        zlib.compress(b"hello"),
    ],
    ids=["empty", "text", "cut", "no-trailer", "half-header", "wrong-size", "no-deflate", "rest", "method", "zlib"],
)
def test_incomplete_gzip_is_refused(error_of: Callable[..., tuple[str, str, str]], data: bytes) -> None:
    """No partial content is returned."""
    expected = f"str.decompress: {NOT_GZIP}", "str.not_gzip", "model"

    assert expected == error_of("str.decompress", base64(data))


def test_gzip_with_several_members_is_decompressed(engine: Engine) -> None:
    """They are concatenated, however many there are."""
    data = base64(HELLO * 2 + gzip.compress(b"") * 10_000)

    assert "hellohello" == engine.call("str.decompress", (data,))


def test_decompression_limit_is_exact(engine: Engine) -> None:
    """The limit itself is accepted."""
    data = base64(gzip.compress(b"a" * 8 * MIB))

    assert 8 * MIB == len(engine.call("str.decompress", (data,)))


def test_decompression_bomb_uses_bounded_memory(error_of: Callable[..., tuple[str, str, str]]) -> None:
    """8 MiB of Base64 that expand to 6 GB are decompressed only up to the limit."""
    part = gzip.compress(bytes(16 * MIB))
    bomb = base64(part * (6_000_000 // len(part)))
    expected = f"str.decompress: {TOO_LARGE}", "str.too_large", "model"

    tracemalloc.start()
    try:
        answer = error_of("str.decompress", bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert expected == answer
    assert peak < 64 * MIB
    assert 6_000_000 // len(part) * 16 * MIB > 5 * 10**9
