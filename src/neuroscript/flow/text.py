"""Strings in the form in which results and arguments are compared: decoded, and as words without punctuation."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from array import array
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from neuroscript.coercion.scalars import AnyContent
from neuroscript.io.text import join_surrogates

LEVELS: Final = 2
"""Maximum number of nested encodings that are decoded."""

MAX_DECODED_RATIO: Final = 4
"""Maximum length of everything that is decoded from a string, as a multiple of its length."""

MAX_DECIMAL_BITS: Final = 1024
"""Integers of more bits are compared by hexadecimal digits, because decimal digits take quadratic time."""

UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""A character of a script that puts no spaces between words; each of them is a word."""

SEPARATORS: Final = rf"[^\w{UNSPACED.pattern[1:]}*"
WORD_AND_GAP: Final = re.compile(rf"({UNSPACED.pattern}|[^\W_{UNSPACED.pattern[1:]}+)({SEPARATORS}(?:_{SEPARATORS})*)")
"""A word, and what follows it up to the next one: separators and underscores."""

JOINERS: Final = re.compile(r"[/?&=#:,;|<>(){}\[\]]")
"""Characters that join an address or a field with another one, so that they end a token."""

QUOTES: Final = b"\"'`\\"
REMOVED_BYTES: Final = QUOTES + bytes(code for code in (*range(32), 127) if not chr(code).isspace())
"""ASCII characters that are not compared: quotes and control characters."""

REMOVED_CHARS: Final = dict.fromkeys(REMOVED_BYTES)

WORD_BYTES: Final = bytes(code if code > 127 or chr(code).isalnum() else ord(" ") for code in range(256))
"""Maps other ASCII punctuation, in UTF-8, to spaces."""

DOT_ABOVE: Final = "\u0307"
"""A combining mark that appears when the case of a Turkish letter is folded."""

MAX_REPLACED_CHARS: Final = 32
"""Number of different characters above which `str.translate` is faster than replacing them one by one."""

REMOVED: Final = frozenset("\u02b9\u02bb\u02bc\u02bd\u02c8\u115f\u1160\u201a\u201e\u2032\u2033\u2034\u2800\u3164")
"""Fillers, quotes and primes that their category does not tell apart from letters and symbols."""

REMOVED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Me", "Mc", "Mn", "Pf", "Pi"})
"""Control and format characters, combining marks that compose with no letter, and typographic quotes."""

URL_ESCAPES: Final = re.compile("%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*")
HTML_ESCAPE: Final = re.compile("&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[a-zA-Z][a-zA-Z0-9]{1,31};)")
CODE_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|([nrtbfv\"'\\/]))")
SCRIPT_ESCAPE: Final = re.compile("%(u[0-9a-fA-F]{4})")
BLANK_ESCAPES: Final = frozenset("nrtbfv")

RUN_CHARS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
RUN_BYTES: Final = bytes(code if code in RUN_CHARS else ord(" ") for code in range(256))
"""Maps every ASCII character that base64 and hexadecimal digits do not contain to a space."""

MIN_RUN_CHARS: Final = 6
"""Length of the shortest string that is decoded: base64 of 4 characters without padding."""

MIN_ENCODED_CHARS: Final = 20
"""Length from which a run that looks like a word of prose is decoded too."""

HEAD: Final = b"[CDI-Za-f][A-HQ-Xg-nw-z0-3]"
QUAD: Final = HEAD + b"[ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
"""Four base64 characters that encode three ASCII characters."""

TAIL: Final = b"(?:" + HEAD + b"[A-Za-z0-9+/_-]?)?"
TEXT_RUNS: Final = (
    re.compile(3 * QUAD + b"(?:" + QUAD + b")*" + TAIL),  # twice as fast as {3,}
    re.compile(b" (?:" + QUAD + b"){1,2}" + TAIL + b"(?= )"),
)
"""Base64 of ASCII: at least 9 characters of it anywhere, or fewer that are a whole run."""

ASCII_BYTE: Final = b"[02-7][0-9a-fA-F]"
HEX_TEXT: Final = re.compile(b" " + 4 * ASCII_BYTE + b"(?:" + ASCII_BYTE + b")*")
"""Hexadecimal digits of at least 4 ASCII characters."""

BYTE: Final = "[0-9a-f][0-9a-f] "
HEX_BYTES: Final = re.compile(f" {4 * BYTE}(?:{BYTE})*")
"""Hexadecimal digits of at least 4 bytes, with separators between the bytes."""

HEX_RUN: Final = re.compile(b"(?:[0-9a-fA-F]{2}){4,}")

RUN_START: Final = re.compile(b"(?<![A-Za-z0-9])[A-Za-z0-9]")
MAX_FOREIGN_CHARS: Final = 65_536
"""Maximum length of a string in which encoded text that is not ASCII is found too, because that takes longer."""

MAX_RUN_STARTS: Final = 8
"""Maximum number of places in a run where base64 of text that is not ASCII may begin."""

TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


EDGE, SPACE, JOINER, GLUE, NO_GAP = range(5)
"""What is between two words, from the strongest separator: `EDGE` is between two strings, `NO_GAP` is nothing."""


class Part(NamedTuple):
    """A word, and what follows it: `EDGE`, `SPACE`, `JOINER`, `GLUE` or `NO_GAP`."""

    word: str
    gap: int


class Leaves(NamedTuple):
    """The strings of a plain value.

    Attributes:
        values: Its strings, bytes and numbers, as strings.
        keys: The keys of its maps.
    """

    values: list[str]
    keys: list[str]


def leaves(value: object) -> Leaves:
    """Return the strings of a plain value, in their order. Booleans, None and handles have none."""
    found = Leaves([], [])
    waiting: list[Any] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.values.append(text)
            case bytes() as data:
                found.values.append(data.decode("utf-8", "replace"))
            case bool():
                pass
            case int() as number:
                found.values.append(str(number) if number.bit_length() <= MAX_DECIMAL_BITS else f"{number:x}")
            case float() as number:
                found.values.append(repr(number).removesuffix(".0"))
            case datetime() as time:
                found.values.append(time.isoformat())
            case list() | tuple() | array() as items:
                waiting.extend(reversed(items))
            case AnyContent() as content:
                waiting.extend(reversed(content.values))
            case dict() as items:
                waiting.extend(reversed(items.values()))
                found.keys.extend(key for key in items if isinstance(key, str))
    return found


def decode_escapes(text: str) -> str:
    """Return *text* without escapes of URLs, HTML and JSON, compatibility forms and invisible characters."""
    text = _visible(text)
    for _ in range(LEVELS):
        decoded = _decode_code(_decode_html(_decode_url(text)))
        if decoded == text:
            break
        text = _visible(decoded)
    return text


def _visible(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return _replaced(text, [char for char in _foreign(text) if _is_removed(char)], "")


def _foreign(text: str) -> list[str]:
    """Return the different characters of *text* that are not ASCII."""
    return [char for char in {*text} if not char.isascii()]


def _is_removed(char: str) -> bool:
    return char in REMOVED or (unicodedata.category(char) in REMOVED_CATEGORIES and not char.isspace())


def _replaced(text: str, chars: list[str], by: str) -> str:
    if len(chars) > MAX_REPLACED_CHARS:
        return text.translate(dict.fromkeys(map(ord, chars), by))
    for char in chars:
        text = text.replace(char, by)
    return text


def _decode_url(text: str) -> str:
    if "%" not in text:
        return text
    return URL_ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)


def _decode_html(text: str) -> str:
    # A name needs its semicolon: "&" also separates the fields of a URL, and "&regards" begins with "&reg".
    return HTML_ESCAPE.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _decode_code(text: str) -> str:
    text = SCRIPT_ESCAPE.sub(r"\\\1", text) if "%u" in text else text
    return join_surrogates(CODE_ESCAPE.sub(_unescaped, text)) if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    four, braced, two, char = found.groups()
    if char:
        return " " if char in BLANK_ESCAPES else char
    code = int(four or braced or two, 16)
    return chr(code) if code <= 0x10FFFF else found[0]


def words(text: str) -> list[str]:
    """Return the words of a string without escapes, in lower case and without quotes."""
    text = text.casefold()
    if not text.isascii():
        foreign = _foreign(text)
        if UNSPACED.search("".join(foreign)):
            text = UNSPACED.sub(r" \g<0> ", text)
        others = [char for char in foreign if not char.isalnum() and not UNSPACED.match(char)]
        text = _replaced(text.replace(DOT_ABOVE, ""), others, " ")
    return text.encode(errors="replace").translate(WORD_BYTES, REMOVED_BYTES).decode().split()


def parts(text: str) -> tuple[int, list[Part]]:
    """Return the gap before the first word of a string without escapes, and its `words` with the gaps after them."""
    if text.isascii() and text.isalnum():
        return NO_GAP, [Part(text.lower(), NO_GAP)]
    text = text.casefold().replace(DOT_ABOVE, "").translate(REMOVED_CHARS)
    found = WORD_AND_GAP.findall(text)
    gaps = {gap: _gap(gap) for gap in {gap for _, gap in found}}
    before = text[: len(text) - sum(map(len, itertools.chain.from_iterable(found)))]
    return _gap(before), [Part(word, gaps[gap]) for word, gap in found]


def _gap(separator: str) -> int:
    if not separator:
        return NO_GAP
    if any(map(str.isspace, separator)):
        return SPACE
    return JOINER if JOINERS.search(separator) else GLUE


def decode_runs(text: str, words: str) -> list[str]:
    """Return what the base64 and the hexadecimal digits in a string encode, decoded up to two levels.

    Args:
        text: A string without escapes.
        words: Its words, with a space before and after each of them.

    Raises:
        OverflowError: If they encode more than `MAX_DECODED_RATIO` permits.

    """
    pieces: list[str] = []
    is_short = len(text) <= MAX_FOREIGN_CHARS
    left = MAX_DECODED_RATIO * (len(text) + MIN_RUN_CHARS)
    level = [text]
    for depth in range(LEVELS):
        found = [*_decode_bytes(words)] if depth == 0 else []
        for each in level:
            found += _decode_once(each, is_short)
        level = [decode_escapes(each) for each in dict.fromkeys(found)]
        left -= sum(map(len, level))
        if left < 0:
            raise OverflowError
        pieces += filter(None, level)
    return pieces


def _decode_bytes(words: str) -> Iterator[str]:
    for found in HEX_BYTES.finditer(words.replace(" 0x", " ")):
        yield bytes.fromhex(found[0]).decode("utf-8", "replace")


def _decode_once(text: str, is_short: bool) -> Iterator[str]:
    found = text.encode("ascii", "replace").replace(b"0x", b" ").translate(RUN_BYTES).split()
    runs = [
        run
        for run in found
        if len(run) >= MIN_RUN_CHARS
        # Encoded text is hardly ever alike to a word of prose.
        and not (run.isalpha() and (run.islower() or run.istitle()) and len(run) < MIN_ENCODED_CHARS)
    ]
    joined = b" %b " % b" ".join(runs)
    for pattern in TEXT_RUNS:
        yield from (_base64(run).decode("latin-1") for run in pattern.findall(joined))
    yield from (bytes.fromhex(run[1:].decode()).decode("latin-1") for run in HEX_TEXT.findall(joined))
    if is_short:
        yield from _decode_foreign(runs)


def _base64(run: bytes) -> bytes:
    run = run.strip().translate(TO_STANDARD)
    return a2b_base64(run[: len(run) - (len(run) % 4 == 1)] + b"==")


def _decode_foreign(runs: Iterable[bytes]) -> Iterator[str]:
    """Decode strings that are not ASCII; other bytes are hardly ever valid UTF-8."""
    for run in runs:
        if HEX_RUN.fullmatch(run):
            yield from _readable(bytes.fromhex(run.decode()))
        for start in [found.start() for found in RUN_START.finditer(run)][:MAX_RUN_STARTS]:
            yield from _readable(_base64(run[start:]))


def _readable(data: bytes) -> Iterator[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
    if not text.isascii() and all(char.isprintable() or char.isspace() for char in text):
        yield text
