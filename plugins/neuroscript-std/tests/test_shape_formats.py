"""String formats of the shape toolset, also with hostile input."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from neuroscript import CallError, Engine, ToolFailed
from neuroscript_std.formats import is_email, is_iso_datetime, is_url

FORMS: dict[str, tuple[Callable[[str], bool], list[str], list[str]]] = {
    "email": (
        is_email,
        [
            "test@example.com",
            "test@sub.example.co.uk",
            "test+alias@example.com",
            "a.b!#$%&'*+/=?^_`{|}~-c@x.y",
            "A1@xn--mnchen-3ya.de",
            f"{'l' * 64}@{'.'.join(['d' * 61] * 4)}.com",
        ],
        [
            "",
            "@",
            "test.example.com",
            "test@",
            "@example.com",
            "test@example",
            "test@ example.com",
            " test@example.com",
            "test@example.com\n",
            "a@b@c.de",
            ".a@b.de",
            "a.@b.de",
            "a..b@c.de",
            "a@.de",
            "a@b..de",
            "a@-b.de",
            "a@b-.de",
            "a@b_c.de",
            "a@127.0.0.1",
            '"a b"@c.de',
            "ä@b.de",
            f"{'l' * 65}@d.com",
            f"a@{'d' * 64}.com",
            f"a@{'.'.join(['d' * 61] * 5)}.com",
        ],
    ),
    "url": (
        is_url,
        [
            "http://example.com",
            "HTTPS://Example.COM",
            "https://example.com/path/to/resource?a=b&c[]=%5B#top".replace("[]", "%5B%5D"),
            "https://sub.domain.com:8080/path",
            "https://user:secret@example.com/",
            "http://localhost",
            "http://my_host:1",
            "http://127.0.0.1/?q=@",
            "http://[::1]:80/",
            "https://example.com?q",
            "https://example.com#top",
            "https://example.com:/",
        ],
        [
            "",
            "example.com",
            "//example.com",
            "ftp://example.com",
            "mailto:a@b.de",
            "javascript://example.com/%0aalert(1)",
            "http:/example.com",
            "http://",
            "http:///path",
            "http://?q",
            "http://:80",
            "http://user@",
            "http://a b.com",
            "http://example.com/a b",
            "http://example.com\n",
            "http://example.com/%",
            "http://example.com/%zz",
            "http://example.com:65536",
            "http://example.com:port",
            "http://example.com:80:80",
            "http://[::1",
            "http://[::g]",
            "http://[127.0.0.1]",
            "http://a..b",
            "http://example.com/<x>",
            "http://münchen.de",
            "not a url",
        ],
    ),
    "isoDatetime": (
        is_iso_datetime,
        [
            "2025-01-01T12:00:00Z",
            "2025-01-01T12:00:00+01:00",
            "2025-01-01T12:00:00-23:59",
            "2025-01-01T12:00:00.12345Z",
            "2024-02-29T23:59:59.999999999Z",
            "0001-01-01T00:00:00Z",
        ],
        [
            "",
            "2025-01-01",
            "12:00:00Z",
            "2025-01-01 12:00:00Z",
            "2025-01-01T12:00:00",
            "2025-01-01T12:00Z",
            "2025-01-01t12:00:00z",
            "2025-01-01T12:00:00Z ",
            "2025-01-01T12:00:00Z\n",
            "2025-02-29T12:00:00Z",
            "2025-13-01T12:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T23:59:60Z",
            "2025-01-01T12:00:00.Z",
            "2025-01-01T12:00:00,5Z",
            "2025-01-01T12:00:00+0100",
            "2025-01-01T12:00:00+24:00",
            "0000-01-01T00:00:00Z",
            "20250101T120000Z",
            "٢٠٢٥-01-01T12:00:00Z",
        ],
    ),
}
TEXTS = [(word, text, True) for word, form in FORMS.items() for text in form[1]] + [
    (word, text, False) for word, form in FORMS.items() for text in form[2]
]


@pytest.mark.parametrize(("word", "text", "expected"), TEXTS, ids=[f"{word}-{text!r}"[:60] for word, text, _ in TEXTS])
def test_string_formats(engine: Engine, word: str, text: str, expected: bool) -> None:
    """Upstream's cases, and edge cases of the standards."""
    try:
        result = engine.call("shape.validate", [{"a": text}, {"a": word}])
    except CallError:
        result = False

    assert expected == result


SIZE = 100_000
HOSTILE = {
    "one letter": "a" * SIZE,
    "dots": "a." * (SIZE // 2),
    "at signs": "a@" * (SIZE // 2),
    "a long local part": "a" * SIZE + "@b.de",
    "local dots": "a." * (SIZE // 2) + "@b.de",
    "a long domain": "a@" + "b." * (SIZE // 2) + "!",
    "hyphens": "a@" + "-" * SIZE,
    "a label that is not ended": "a@" + "a-" * (SIZE // 2) + ".de",
    "a long host": "http://" + "a" * SIZE + "!",
    "many at signs": "http://" + "a@" * (SIZE // 2),
    "many colons": "http://" + "a:" * (SIZE // 2),
    "brackets": "http://" + "[" * SIZE,
    "an address": "http://[" + ":" * SIZE + "]",
    "a long path and a wrong end": "http://a/" + "b" * SIZE + " ",
    "percent signs": "http://a/" + "%41" * (SIZE // 3) + "%4",
    "parts of a path": "http://a/" + "b%41" * (SIZE // 4) + " ",
    "slashes": "http://a/" + "/?#" * (SIZE // 3) + "\n",
    "a long port": "http://a:" + "9" * SIZE,
    "a long fraction": "2025-01-01T12:00:00." + "9" * SIZE,
    "digits": "9" * SIZE,
    "a scheme": "http" * (SIZE // 4) + "://a",
    "marks of a scheme": "://" * (SIZE // 3),
}


@pytest.mark.alone
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("word", FORMS)
def test_hostile_strings_are_refused_quickly(word: str, text: str) -> None:
    """The checks do not backtrack, so 100 kB take a fraction of 0.2 seconds."""
    started = time.perf_counter()

    fits = FORMS[word][0](text)

    assert fits is False
    assert time.perf_counter() - started < 0.2


@pytest.mark.alone
def test_hostile_paths_and_shapes_are_refused_quickly(engine: Engine) -> None:
    """At 100 kB, neither language has slow inputs."""
    texts = ["a" * SIZE, "a." * (SIZE // 2), "[0]" * (SIZE // 3), "[" * SIZE, "[" + "0" * SIZE, "." * SIZE]
    names = [text + suffix for text in ("a" * SIZE, "?" * SIZE, "[]" * (SIZE // 2), "\n" * SIZE) for suffix in "?a"]
    started = time.perf_counter()

    valid = [engine.call("shape.isvalidpath", [text]) for text in texts]
    for name in names:
        with pytest.raises(ToolFailed):
            engine.call("shape.validate", [{}, {name: "int", "b": 0}])

    assert [False] * len(texts) == valid
    assert time.perf_counter() - started < 1
