"""Redaction of secrets in every encoded form."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.runtime.hidden_secrets import PASSWORD, hiding

from neuroscript.runtime.redaction import MARK


def lower_digits(quoted: str) -> str:
    """Return the URL quoting with lowercase hexadecimal digits."""
    return "".join(f"%{each[:2].lower()}{each[2:]}" for each in f"%00{quoted}".split("%")[1:])[3:]


def upper_digits(text: str) -> str:
    """Return JSON with uppercase digits in its escapes."""
    written = (json.dumps(each)[1:-1] for each in text)
    return "".join(each.upper().replace("\\U", "\\u") if each.startswith("\\u") else each for each in written)


def based(shift: int, url_safe: bool) -> Callable[[str], str]:
    """Return a function that encodes a string in base64 after a prefix of *shift* bytes."""
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return lambda text: encode(b"?>!"[:shift] + text.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "HTML in JSON": lambda text: json.dumps(html.escape(text)),
    "repr in JSON": lambda text: json.dumps(repr(f'"{text}')),
    "JSON in repr": lambda text: repr(json.dumps(text)),
    "JSON with upper digits": upper_digits,
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in a script": lambda text: (
        json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ),
    "JSON of Go": lambda text: (
        json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ),
    "repr": repr,
    "repr in ASCII": ascii,
    "repr of bytes": lambda text: repr(text.encode()),
    "URL": quote,
    "URL with nothing safe": lambda text: quote(text, safe=""),
    "URL with plus": quote_plus,
    "URL with lower digits": lambda text: lower_digits(quote(text, safe="")),
    "URL with plus and lower digits": lambda text: lower_digits(quote_plus(text)),
    "URL as a browser writes a component": lambda text: quote(text, safe="!'()*"),
    "URL, each byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "HTML with numbers": lambda text: html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "UTF-8 read as Latin-1": lambda text: text.encode().decode("latin-1"),
}
"""Encodings in which a part of a string is written as a part of the result."""

QUOTED = {
    "JSON in repr": 2,
    "JSON of Go": 1,
    "HTML in JSON": 1,
    "JSON": 1,
    "JSON in UTF-8": 1,
    "JSON in JSON": 3,
    "JSON of PHP": 1,
    "JSON in a script": 1,
    "repr": 1,
    "repr in ASCII": 1,
    "repr of bytes": 1,
}
"""The number of surrounding characters, by encoding."""


def core(name: str, text: str) -> str:
    """Return the part of a longer encoded string that encodes *text*."""
    written = ENCODINGS[name](text)
    if name == "repr in JSON":
        return written[4:-2]
    if name == "repr of bytes":
        return written[2:-1]
    return written[QUOTED.get(name, 0) : len(written) - QUOTED.get(name, 0)]


ANY_TEXT = some.text(some.characters(exclude_categories=["Cs"]))
ANY_SECRET = some.one_of(
    some.text(some.characters(exclude_categories=["Cs"]), min_size=6, max_size=40),
    some.text("aA0\"'\\/ +%&<\nä€🔑", min_size=6, max_size=20),
)


# Encoded forms


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("secret", ["correcthorse", PASSWORD, "a'quoted'one", 'a "quoted" one', "sk-live_0123~."])
def test_each_form_is_hidden(name: str, secret: str) -> None:
    """The complete form is hidden, and nothing around it."""
    around = f"<x>{core(name, secret)}(y)"

    assert hiding(secret).text(around) == f"<x>{MARK}(y)"


@pytest.mark.parametrize("secret", ["-----BEGIN-----\nMIIa\n  MIIb\n-----END-----\n", b"first line\r\nsecond\n"])
def test_multiline_secret_is_hidden_where_its_lines_are_joined(secret: str | bytes) -> None:
    """Errors join lines; fragments that are too short remain."""
    text = secret if isinstance(secret, str) else secret.decode()

    assert hiding(secret).text(f"<{' '.join(text.split())}>") == f"<{MARK}>"
    assert hiding("a\n\n\n\n\nb").text("a b") == "a b"


@pytest.mark.parametrize("url_safe", [False, True])
@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("secret", ["secretkey", "secretkeys", "secretkeys!", "??>>??>>~~~~", "ÿÿÿÿÿÿ"])
def test_base64_is_hidden_at_every_offset(shift: int, url_safe: bool, secret: str) -> None:
    """This holds with and without padding; no character with a bit of the secret remains."""
    written = based(shift, url_safe)(secret)
    left = {0: "", 1: "P", 2: "Pz"}[shift]
    in_a_url = quote(written, safe="")

    assert hiding(secret).text(f"({written})") == f"({left}{MARK})"
    assert hiding(secret).text(f"({written.rstrip('=')})") == f"({left}{MARK})"
    assert hiding(secret).text(f"({in_a_url.split('%3D')[0]})") == f"({left}{MARK})"


@given(secret=ANY_SECRET, before=ANY_TEXT, after=ANY_TEXT)
def test_no_form_of_a_secret_remains_in_any_context(secret: str, before: str, after: str) -> None:
    """Any secret and context are encoded together in each way."""
    secrets = hiding(secret)

    for name, write in ENCODINGS.items():
        parts = secrets.text(write(before + secret + after)).split(MARK)
        forms = {core(name, secret), core(name, secret).replace("'", "\\'")}
        assert not [form for form in forms for part in parts if form in part], name


@given(secret=ANY_SECRET, before=some.binary(max_size=9), after=some.binary(max_size=9), url_safe=some.booleans())
def test_no_base64_of_a_secret_remains_in_any_context(secret: str, before: bytes, after: bytes, url_safe: bool) -> None:
    """No substring of the output decodes to it, from any offset."""
    written = base64.b64encode(before + secret.encode() + after, b"-_" if url_safe else None).decode()

    parts = hiding(secret).text(written).split(MARK)

    for part in parts:
        for start in range(4):
            run = part[start:].rstrip("=")
            assert secret.encode() not in base64.b64decode(run[: len(run) // 4 * 4], b"-_" if url_safe else None)
    assert len(parts) > 1


@given(some.lists(some.text('[]secrt"\\', min_size=6, max_size=12), min_size=1, max_size=4), some.text('[]secrt"\\'))
def test_redaction_is_idempotent(values: list[str], text: str) -> None:
    """This includes secrets that resemble the mark or that the mark completes."""
    secrets = hiding(*values)

    once = secrets.text(text)

    assert secrets.text(once) is once
    assert not [value for value in values for part in once.split(MARK) if value in part]


@given(some.text("ghijk [secret]\n\\", max_size=200))
def test_string_without_secrets_is_returned_unchanged(text: str) -> None:
    """This includes strings that already contain the mark."""
    assert hiding("zq7!XK", PASSWORD, b"\xff\xfe\xfd\xfc\xfb\xfa").text(text) is text


@pytest.mark.parametrize(
    ("values", "text", "hidden"),
    [
        (["abcdef", "defghi"], "-abcdefghi-", f"-{MARK}-"),
        (["abcdef", "abcdefghi"], "-abcdefghi-abcdefgh-", f"-{MARK}-{MARK}gh-"),
        (["cdefgh", "abcdefghij"], "-abcdefghij-cdefgh-", f"-{MARK}-{MARK}-"),
        (["abcdef", "ghijkl"], "abcdefghijkl", MARK * 2),
        (["(a+)+$.*[^"], "(a+)+$.*[^ aaaaaaaa", f"{MARK} aaaaaaaa"),
        (["line 1\nline 2"], "line 1\nline 2\n", f"{MARK}\n"),
        ([" stripped\n"], "(stripped)( stripped\n)", f"({MARK})({MARK})"),
        (["aaaaaa"], "a" * 6 + "b" + "a" * 20 + "b" + "a" * 5, f"{MARK}b{MARK}b{'a' * 5}"),
        (["x" * 100], f"[{'x' * 64}…]", f"[{MARK}]"),
        (["\x1b[31mred"], r"\x1b[31mred", MARK),
    ],
    ids=[
        "overlapping",
        "one begins another",
        "one in another",
        "side by side",
        "regex",
        "lines",
        "blanks",
        "run",
        "cut",
        "escaped",
    ],
)
def test_overlapping_secrets_are_hidden_together(values: list[str], text: str, hidden: str) -> None:
    """No part of one remains next to another."""
    assert hiding(*values).text(text) == hidden


@pytest.mark.parametrize(
    "write",
    [
        repr,
        bytes.hex,
        lambda data: base64.b64encode(data).decode(),
        quote,
        lambda data: data.decode("latin-1"),
        lambda data: json.dumps(data.decode(errors="surrogateescape")),
    ],
    ids=["repr", "hex", "base64", "URL", "Latin-1", "JSON of a file's name"],
)
def test_bytes_are_secrets_too(write: Callable[[bytes], str]) -> None:
    """They need not be valid UTF-8."""
    for data in (b"\x00\xff'\"\\key", "schlüssel".encode()):
        assert MARK in hiding(data).text(write(data))
    assert hiding("schlüssel".encode()).text("ein schlüssel") == f"ein {MARK}"


def test_known_limits_match_the_documentation() -> None:
    """Changed case, reversal, splitting, compression and fragments are not detected: a tool can evade redaction."""
    text = "CORRECTHORSE esrohtcerroc correct horse correct\nhorse c,o,r,r,e,c,t,h,o,r,s,e correcthors"

    assert hiding("correcthorse").text(text) is text
