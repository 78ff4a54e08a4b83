"""Texts in other codes: Base64, hexadecimal digits, gzip.

Decoding is strict, and what comes out is a text: valid UTF-8. Source: upstream ``tools_string_codes.go`` and
``tools_string_extra.go``; RFC 4648 sections 4 and 8; RFC 1952.
"""

from __future__ import annotations

import io
import zlib
from binascii import a2b_base64, a2b_hex, b2a_base64
from typing import Final

from neuroscript import Example, ToolFailed, ToolPolicy, Toolset
from neuroscript_std.text.size import LIMIT, refuse_above_limit, size, within_limit

PURE: Final = ToolPolicy(effects=("pure",))

GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, no name, no time, system unknown: Python versions differ in the last byte."""

toolset = Toolset("str")


@toolset.tool(
    name="tobase64",
    policy=PURE,
    when_to_use="To carry a text through a place that takes only letters; str.tohex is longer but reads byte by byte.",
    examples=(
        Example(("hello world",), "aGVsbG8gd29ybGQ="),
        Example(("é",), "w6k=", note="of the UTF-8 bytes"),
        Example((5,), error="coercion.type"),
    ),
)
def to_base64(input_string: str) -> str:
    """Write a text in Base64.

    Args:
        input_string: The text; its UTF-8 bytes are encoded.

    Returns:
        Base64 with the standard alphabet and padding.

    Raises:
        ToolFailed: str.too_large.
    """
    return _base64(input_string.encode())


@toolset.tool(
    name="frombase64",
    policy=PURE,
    when_to_use="For Base64 of a text; str.parsefromjsonbase64 reads JSON out of it, str.decompress gzip data.",
    examples=(
        Example(("aGVsbG8gd29ybGQ=",), "hello world"),
        Example(("",), ""),
        Example(("aGVsbG8gd29ybGQ",), error="str.not_base64", note="the padding is missing"),
    ),
)
def from_base64(encoded_string: str) -> str:
    """Read a text out of its Base64.

    Args:
        encoded_string: Base64 with the standard alphabet and padding, without blanks or line breaks.

    Returns:
        The text whose UTF-8 bytes were encoded.

    Raises:
        ToolFailed: str.not_base64, str.not_text.
    """
    return _text(decoded(encoded_string))


@toolset.tool(
    name="bytestobase64",
    policy=PURE,
    when_to_use="Where a plan written for upstream calls it so; str.tobase64 does the same and is the plainer name.",
    examples=(
        Example(("Hello World",), "SGVsbG8gV29ybGQ="),
        Example(("",), ""),
        Example((), error="arg.missing"),
    ),
)
def bytes_to_base64(string_data: str) -> str:
    """Write the UTF-8 bytes of a text in Base64.

    Args:
        string_data: The text whose bytes are encoded.

    Returns:
        Base64 with the standard alphabet and padding.

    Raises:
        ToolFailed: str.too_large.
    """
    return _base64(string_data.encode())


@toolset.tool(
    name="bytesfrombase64",
    policy=PURE,
    when_to_use="Where a plan written for upstream calls it so; str.frombase64 does the same and is the plainer name.",
    examples=(
        Example(("SGVsbG8gV29ybGQ=",), "Hello World"),
        Example(("w6k=",), "é"),
        Example(("/w==",), error="str.not_text", note="FF is no UTF-8"),
    ),
)
def bytes_from_base64(base64_string: str) -> str:
    """Read the bytes in a Base64 text as UTF-8.

    Args:
        base64_string: Base64 with the standard alphabet and padding, without blanks or line breaks.

    Returns:
        The text that the bytes stand for.

    Raises:
        ToolFailed: str.not_base64, str.not_text.
    """
    return _text(decoded(base64_string))


def _base64(data: bytes) -> str:
    refuse_above_limit((len(data) + 2) // 3 * 4)
    return b2a_base64(data, newline=False).decode()


def decoded(encoded: str) -> bytes:
    """Return the bytes of a Base64 text, or raise a `ToolFailed`, str.not_base64, where it is not to the letter."""
    try:
        data = a2b_base64(encoded)
    except ValueError:
        raise _not_base64() from None
    if b2a_base64(data, newline=False) != encoded.encode():  # Python skips what is no digit, and drops odd bits
        raise _not_base64()
    return data


def _not_base64() -> ToolFailed:
    text = "not Base64; give A-Z, a-z, 0-9, + and /, padded with = to a multiple of 4, and nothing else"
    return ToolFailed(text, code="str.not_base64", retry="model")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = "the decoded bytes are not UTF-8, so they are no text"
        raise ToolFailed(text, code="str.not_text", retry="model") from None


@toolset.tool(
    name="tohex",
    policy=PURE,
    when_to_use="To see a text byte by byte; str.tobase64 is shorter.",
    examples=(
        Example(("hello",), "68656c6c6f"),
        Example(("é",), "c3a9"),
        Example((True,), error="coercion.type"),
    ),
)
def to_hex(input_string: str) -> str:
    """Write the UTF-8 bytes of a text as hexadecimal digits.

    Args:
        input_string: The text to write.

    Returns:
        Two lower-case digits for each byte.

    Raises:
        ToolFailed: str.too_large.
    """
    refuse_above_limit(2 * size(input_string))
    return input_string.encode().hex()


@toolset.tool(
    name="fromhex",
    policy=PURE,
    when_to_use="For hexadecimal digits of a text's bytes; str.frombase64 reads the shorter code.",
    examples=(
        Example(("68656c6c6f",), "hello"),
        Example(("C3A9",), "é", note="capitals count too"),
        Example(("68656c6c6",), error="str.not_hex", note="a digit is missing"),
    ),
)
def from_hex(encoded_string: str) -> str:
    """Read a text out of hexadecimal digits.

    Args:
        encoded_string: Two digits for each UTF-8 byte, without blanks.

    Returns:
        The text that the bytes stand for.

    Raises:
        ToolFailed: str.not_hex, str.not_text.
    """
    try:
        data = a2b_hex(encoded_string)
    except ValueError:
        text = "not hexadecimal; give two digits of 0-9 and a-f for each byte, and nothing else"
        raise ToolFailed(text, code="str.not_hex", retry="model") from None
    return _text(data)


@toolset.tool(
    policy=PURE,
    when_to_use="To make a long text with repetitions smaller; str.tobase64 where it need not become smaller.",
    examples=(
        Example(("",), "H4sIAAAAAAAA/wMAAAAAAAAAAAA="),
        Example(("hello",), "H4sIAAAAAAAA/8tIzcnJBwCGphA2BQAAAA=="),
        Example((["hello"],), error="coercion.type"),
    ),
)
def compress(input_string: str) -> str:
    """Compress a text with gzip, and write that in Base64.

    Args:
        input_string: The text; its UTF-8 bytes are compressed.

    Returns:
        Base64 of gzip data without a time, so that one text always gives the same.

    Raises:
        ToolFailed: str.too_large.
    """
    from gzip import compress as compressed

    data = compressed(input_string.encode(), mtime=0)
    return within_limit(_base64(GZIP_HEADER + data[len(GZIP_HEADER) :]))


@toolset.tool(
    policy=PURE,
    when_to_use="For what str.compress wrote, or other gzip data in Base64; str.frombase64 for a text as it is.",
    examples=(
        Example(("H4sIAAAAAAAA/8tIzcnJBwCGphA2BQAAAA==",), "hello"),
        Example(("H4sIAAAAAAAA/wMAAAAAAAAAAAA=",), ""),
        Example(("aGVsbG8=",), error="str.not_gzip", note="Base64, but not of gzip data"),
    ),
)
def decompress(base64_encoded_string: str) -> str:
    """Read a text that was compressed with gzip and written in Base64.

    Args:
        base64_encoded_string: Base64, to the letter, of gzip data in one or more parts.

    Returns:
        The text, at most 8 MiB of UTF-8.

    Raises:
        ToolFailed: str.not_base64, str.not_gzip, str.not_text, str.too_large.
    """
    from gzip import GzipFile

    data = decoded(base64_encoded_string)
    try:
        if not data:
            raise EOFError
        with GzipFile(fileobj=io.BytesIO(data)) as stream:  # never more than is asked for is unpacked
            unpacked = stream.read(LIMIT + 1)
    except (OSError, EOFError, zlib.error):
        text = "the decoded bytes are not whole gzip data; str.compress writes such data"
        raise ToolFailed(text, code="str.not_gzip", retry="model") from None
    refuse_above_limit(len(unpacked))
    return _text(unpacked)
