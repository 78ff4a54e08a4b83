"""``str`` tools that encode and decode strings: Base64, hexadecimal, gzip.

Decoding is strict (RFC 4648, RFC 1952), and a decoded result is always valid UTF-8.
"""

from __future__ import annotations

import io
import zlib
from binascii import a2b_base64, a2b_hex, b2a_base64
from typing import Final

from neuroscript import Example, ToolFailed, ToolPolicy, Toolset
from neuroscript_std.text.size import MAX_RESULT_BYTES, refuse_above_limit, require_within_limit, utf8_length

PURE: Final = ToolPolicy(effects=("pure",))

GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, no name, no time, unknown system. The last byte differs between Python versions, so it is fixed here."""

toolset = Toolset("str")


@toolset.tool(
    name="tobase64",
    policy=PURE,
    when_to_use="Use it where only ASCII is accepted; for hexadecimal digits, use str.tohex.",
    examples=(
        Example(("hello world",), "aGVsbG8gd29ybGQ="),
        Example(("é",), "w6k=", note="the UTF-8 bytes are encoded"),
        Example((5,), error="coercion.type"),
    ),
)
def to_base64(input_string: str) -> str:
    """Encode a string as Base64.

    Args:
        input_string: The string; its UTF-8 bytes are encoded.

    Returns:
        Base64 with the standard alphabet and padding.

    Raises:
        ToolFailed: str.too_large.
    """
    return _base64(input_string.encode())


@toolset.tool(
    name="frombase64",
    policy=PURE,
    when_to_use=(
        "Use it for plain text; for JSON in Base64, use str.parsefromjsonbase64, for gzip data, str.decompress."
    ),
    examples=(
        Example(("aGVsbG8gd29ybGQ=",), "hello world"),
        Example(("",), ""),
        Example(("aGVsbG8gd29ybGQ",), error="str.not_base64", note="the padding is missing"),
    ),
)
def from_base64(encoded_string: str) -> str:
    """Decode a Base64 string to text.

    Args:
        encoded_string: Base64 with the standard alphabet and padding, without whitespace.

    Returns:
        The decoded string.

    Raises:
        ToolFailed: str.not_base64, str.not_text.
    """
    return _text(decode_base64(encoded_string))


@toolset.tool(
    name="bytestobase64",
    policy=PURE,
    when_to_use="Use str.tobase64 instead, which behaves the same; this name exists for compatibility.",
    examples=(
        Example(("Hello World",), "SGVsbG8gV29ybGQ="),
        Example(("",), ""),
        Example((), error="arg.missing"),
    ),
)
def bytes_to_base64(string_data: str) -> str:
    """Encode the raw UTF-8 bytes of a string as Base64; an alias of str.tobase64.

    Args:
        string_data: The string whose UTF-8 bytes are encoded.

    Returns:
        Base64 with the standard alphabet and padding.

    Raises:
        ToolFailed: str.too_large.
    """
    return _base64(string_data.encode())


@toolset.tool(
    name="bytesfrombase64",
    policy=PURE,
    when_to_use="Use str.frombase64 instead, which behaves the same; this name exists for compatibility.",
    examples=(
        Example(("SGVsbG8gV29ybGQ=",), "Hello World"),
        Example(("w6k=",), "é"),
        Example(("/w==",), error="str.not_text", note="the byte FF is not valid UTF-8"),
    ),
)
def bytes_from_base64(base64_string: str) -> str:
    """Decode Base64 to raw bytes, which must be valid UTF-8; an alias of str.frombase64.

    Args:
        base64_string: Base64 with the standard alphabet and padding, without whitespace.

    Returns:
        The decoded string.

    Raises:
        ToolFailed: str.not_base64, str.not_text.
    """
    return _text(decode_base64(base64_string))


def _base64(data: bytes) -> str:
    refuse_above_limit((len(data) + 2) // 3 * 4)
    return b2a_base64(data, newline=False).decode()


def decode_base64(encoded: str) -> bytes:
    """Decode Base64 strictly, or raise `ToolFailed` with the code str.not_base64."""
    try:
        data = a2b_base64(encoded)
    except ValueError:
        raise _not_base64() from None
    if b2a_base64(data, newline=False) != encoded.encode():  # Python skips invalid characters and drops extra bits
        raise _not_base64()
    return data


def _not_base64() -> ToolFailed:
    text = "invalid Base64; use only A-Z, a-z, 0-9, + and /, padded with = to a multiple of 4"
    return ToolFailed(text, code="str.not_base64", retry="model")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = "the decoded bytes are not valid UTF-8"
        raise ToolFailed(text, code="str.not_text", retry="model") from None


@toolset.tool(
    name="tohex",
    policy=PURE,
    when_to_use="Use it to see individual bytes; for a shorter encoding, use str.tobase64.",
    examples=(
        Example(("hello",), "68656c6c6f"),
        Example(("é",), "c3a9"),
        Example((True,), error="coercion.type"),
    ),
)
def to_hex(input_string: str) -> str:
    """Encode a string as hexadecimal: convert each UTF-8 byte to two hex digits.

    Args:
        input_string: The string to encode.

    Returns:
        Two lowercase hexadecimal digits per byte.

    Raises:
        ToolFailed: str.too_large.
    """
    refuse_above_limit(2 * utf8_length(input_string))
    return input_string.encode().hex()


@toolset.tool(
    name="fromhex",
    policy=PURE,
    when_to_use="Use it for hexadecimal digits; for Base64, use str.frombase64.",
    examples=(
        Example(("68656c6c6f",), "hello"),
        Example(("C3A9",), "é", note="uppercase digits are accepted"),
        Example(("68656c6c6",), error="str.not_hex", note="a digit is missing"),
    ),
)
def from_hex(encoded_string: str) -> str:
    """Decode hexadecimal (hex) digits and convert them to text.

    Args:
        encoded_string: Two digits for each UTF-8 byte, without whitespace.

    Returns:
        The decoded string.

    Raises:
        ToolFailed: str.not_hex, str.not_text.
    """
    try:
        data = a2b_hex(encoded_string)
    except ValueError:
        text = "invalid hexadecimal; use only 0-9 and a-f, two digits per byte"
        raise ToolFailed(text, code="str.not_hex", retry="model") from None
    return _text(data)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to shrink a long string; to encode without compression, use str.tobase64.",
    examples=(
        Example(("",), "H4sIAAAAAAAA/wMAAAAAAAAAAAA="),
        Example(("hello",), "H4sIAAAAAAAA/8tIzcnJBwCGphA2BQAAAA=="),
        Example((["hello"],), error="coercion.type"),
    ),
)
def compress(input_string: str) -> str:
    """Compress a string with gzip and encode the result as Base64.

    Args:
        input_string: The string; its UTF-8 bytes are compressed.

    Returns:
        Base64 of gzip data without a timestamp, so the same string always gives the same result.

    Raises:
        ToolFailed: str.too_large.
    """
    from gzip import compress as compressed

    data = compressed(input_string.encode(), mtime=0)
    return require_within_limit(_base64(GZIP_HEADER + data[len(GZIP_HEADER) :]))


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for the output of str.compress or other gzip data; for uncompressed text, use str.frombase64.",
    examples=(
        Example(("H4sIAAAAAAAA/8tIzcnJBwCGphA2BQAAAA==",), "hello"),
        Example(("H4sIAAAAAAAA/wMAAAAAAAAAAAA=",), ""),
        Example(("aGVsbG8=",), error="str.not_gzip", note="valid Base64, but not gzip data"),
    ),
)
def decompress(base64_encoded_string: str) -> str:
    """Decompress a string that was compressed with gzip and encoded as Base64.

    Args:
        base64_encoded_string: Strict Base64 of gzip data with one or more members.

    Returns:
        The decompressed string, at most 8 MiB of UTF-8.

    Raises:
        ToolFailed: str.not_base64, str.not_gzip, str.not_text, str.too_large.
    """
    from gzip import GzipFile

    data = decode_base64(base64_encoded_string)
    try:
        if not data:
            raise EOFError
        with GzipFile(fileobj=io.BytesIO(data)) as stream:  # unpacks only as much as is read
            unpacked = stream.read(MAX_RESULT_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        text = "the decoded bytes are not complete gzip data; pass the output of str.compress"
        raise ToolFailed(text, code="str.not_gzip", retry="model") from None
    refuse_above_limit(len(unpacked))
    return _text(unpacked)
