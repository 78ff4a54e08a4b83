"""TOML with the line of each value: documents of every form, damaged ones, and such as are made to take long."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript.io.toml import MAX_DEPTH, Place, TomlError, parse_toml

ODD = ("", "#", " = ", "[x]", "[[x]]", "{", "}", ",", ".", "é", "]")
"""Parts of strings that look like other syntax."""

BASIC = (*ODD, '\\"', "\\\\", "'", "'''", "\\u00e9")
LITERAL = (*ODD, '"', '"""', "\\", "\\u00e9")
FAR = ("", "\n", "\n\n# no\n", "\nx = 1\n[y]\n")
"""Parts of strings in each kind of quotes, including multi-line strings."""

NAMES = ("a", "b-c", "d_e", "7", "f#", "g.h", "i = j", "[k]", "l m", "é", "n,", "{o}")


@attrs.define
class Written:
    """A document as it is written, and what is to be found on the line of each place."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    text: str = ""
    tokens: dict[Place, str] = attrs.field(factory=dict)
    count: int = 0

    def one(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def fresh(self) -> int:
        self.count += 1
        return 1000 + self.count

    def noise(self) -> None:
        self.text += self.one("", "", "\n", "# a = [1]\n", "  # '''\n", "\t\n")

    def key(self, place: Place) -> Place:
        """Write a key that no other is like, and return its place."""
        name = f"{self.one(*NAMES)}{self.fresh()}"
        forms = [f'"{name}"', f"'{name}'", f'"\\u{ord(name[0]):04x}{name[1:]}"']
        if name.isascii() and name.replace("-", "").replace("_", "").isalnum():
            forms.append(name)
        written = self.one(*forms)
        self.text += written
        self.tokens[(*place, name)] = written
        return (*place, name)

    def pair(self, place: Place, depth: int) -> None:
        for _ in range(self.one(0, 0, 1, 2)):
            place = self.key(place)
            self.text += self.one(".", " . ", ".\t")
        place = self.key(place)
        self.text += self.one("=", " = ", "\t=  ")
        self.value(place, depth)

    def value(self, place: Place, depth: int) -> None:
        match self.one("scalar", "scalar", "scalar", *(("array", "inline") if depth else ())):
            case "array":
                self.items(place, depth - 1)
            case "inline":
                self.inline(place, depth - 1)
            case _:
                self.scalar(place)

    def scalar(self, place: Place) -> None:
        token = f"t{self.fresh()}"
        basic, literal, far = self.one(*BASIC), self.one(*LITERAL), self.one(*FAR)
        forms = [
            f'"{token}{basic}"',
            f"'{token}{literal}'",
            f'"""{token}{basic}{far}""{basic}x"""',
            f'"""{token}{far}{basic}{self.one("", *"12")}""\\"""""',
            f"'''{token}{literal}{far}''x{literal}'''''",
        ]
        number = str(self.fresh())
        forms += [number, f"{number}.5e1", f"0x{number}", f"{number}-01-02 03:04:05", f"{number}-01-02T03:04:05Z"]
        written = self.one(*forms)
        self.text += written
        self.tokens.setdefault(place, token if token in written else number)

    def items(self, place: Place, depth: int) -> None:
        self.text += "["
        many = self.one(0, 1, 2, 3)
        for index in range(many):
            self.noise()
            start = len(self.text)
            self.value((*place, index), depth)
            first = self.text[start:].split("\n")[0]
            self.tokens[*place, index] = first
            self.text += self.one("", " ", "\n", " # ,]\n")
            self.text += "," if index < many - 1 else self.one("", ",", ",\n")
        self.noise()
        self.text += "]"

    def inline(self, place: Place, depth: int) -> None:
        self.text += self.one("{", "{ ")
        for index in range(self.one(0, 1, 2)):
            self.text += ", " if index else ""
            self.pair(place, depth)
        self.text += self.one("}", " }")

    def table(self, place: Place, head: str, depth: int) -> None:
        """Write the keys of a table, and then its subtables under their own headers."""
        for _ in range(self.one(0, 1, 2, 3)):
            self.noise()
            self.text += self.one("", "  ")
            self.pair(place, 2)
            self.text += self.one("\n", " # x = [\n")
        for _ in range(self.one(0, 1, 2) if depth else 0):
            self.below(place, head, depth - 1)

    def below(self, place: Place, head: str, depth: int) -> None:
        before, self.text = self.text, ""
        inner = self.key(place)
        head, self.text = f"{head}{self.one('.', ' . ') if head else ''}{self.text}", before
        match self.one("table", "hidden", "many"):
            case "table":
                self.text += f"[{head}]{self.one('', ' # [z]')}\n"
                self.table(inner, head, depth)
            case "many":
                for index in range(self.one(1, 2, 3)):
                    self.tokens[*inner, index] = self.tokens[inner]
                    self.text += f"[[ {head} ]]\n"
                    self.table((*inner, index), head, depth)
            case _:
                last = self.key_of(inner)
                self.text += f"[{head}.{last[0]}]\n"
                self.table(last[1], f"{head}.{last[0]}", 0)

    def key_of(self, place: Place) -> tuple[str, Place]:
        before, self.text = self.text, ""
        inner = self.key(place)
        written, self.text = self.text, before
        return written, inner


@st.composite
def documents(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Written:
    written = Written(draw)
    written.noise()
    written.table((), "", 3)
    written.text = written.one(written.text, written.text.replace("\n", "\r\n"))
    return written


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of each value but the outermost table."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*place, key)
        yield from places(each, (*place, key))


@pytest.mark.slow
@given(documents())
def test_the_line_of_each_place_holds_what_is_written_there(written: Written) -> None:
    """Of each key that tomllib finds the key as it is written, of each item of an array its beginning."""
    document = parse_toml(written.text)
    lines = written.text.split("\n")

    assert set(written.tokens) == set(places(tomllib.loads(written.text))) == set(document.lines)
    for place, token in written.tokens.items():
        assert token.rstrip("\r") in lines[document.line(place) - 1], (place, written.text)


@pytest.mark.slow
@given(documents(), st.data())
def test_a_damaged_document_is_judged_by_tomllib(written: Written, data: st.DataObject) -> None:
    """Both parsers accept and reject the same documents, and an error contains the line."""
    text = written.text
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 3)))
    damaged = (
        text[:at] + data.draw(st.sampled_from(['"', "'''", "[", "]", "=", "\n", "", "#", "\0", "{", "\\"])) + text[end:]
    )
    try:
        values = tomllib.loads(damaged, parse_float=Decimal)
    except tomllib.TOMLDecodeError:
        with pytest.raises(TomlError) as caught:
            parse_toml(damaged)
        assert 1 <= caught.value.line <= damaged.count("\n") + 1
        assert caught.value.hint.isprintable()
    else:
        assert json.dumps(values, default=str) == json.dumps(parse_toml(damaged).values, default=str)


def test_a_place_that_is_not_there_stands_where_the_nearest_one_does() -> None:
    """What is missing has the line of the table that it is missing in."""
    document = parse_toml("\n[a]\nb = 1\n[a.c]\n")

    assert [document.line(each) for each in (("a", "x", 3), ("a", "c", "y"), ("z",), ())] == [2, 4, 1, 1]


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a = 1\nb = \n", 2, "invalid value, at column 5"),
        ("a = 1\na = 2\n", 2, "cannot overwrite a value, at column 6"),
        ("a = [\n1,\n", 2, None),
        ('a = "', 1, None),
        ("a = 1\n\n[b\n", 3, None),
        (f"x = 1\na = {'9' * 5000}", 2, "a value other than a string has at most 200 characters"),
        (f"\na = {'[' * 50}{']' * 50}", 2, "tables and arrays nest at most 16 levels deep"),
        (f"\na = {'[' * 100_000}", 2, "tables and arrays nest at most 16 levels deep"),
        (f"\n{'a.' * 200_000}b = 1", 2, "tables and arrays nest at most 16 levels deep"),
        (f"\n[{'a.' * 200_000}b]", 2, "tables and arrays nest at most 16 levels deep"),
        (f"\na = {'{b = ' * 50_000}", 2, "tables and arrays nest at most 16 levels deep"),
        ("a = \x01", 1, "invalid value, at column 5"),
    ],
    ids=["no value", "twice", "open array", "open text", "open header", "digits", "nested", "deep array", "deep key",
         "deep header", "deep table", "control"],
)  # fmt: skip
def test_error_of_invalid_toml_contains_its_line(text: str, line: int, hint: str | None) -> None:
    """Also what is made to take long, or to fill the stack."""
    with pytest.raises(TomlError) as caught:
        parse_toml(text)

    assert (line, hint or caught.value.hint) == (caught.value.line, caught.value.hint)


@pytest.mark.parametrize("text", [
    "a = [" + "1," * 100_000 + "]",
    "\n" * 250_000,
    "# " * 125_000,
    'a = "' + "\\n" * 125_000 + '"',
    'a = """' + '""x' * 75_000 + '"""',
    "a = '''" + "''x" * 75_000 + "'''",
    "".join(f"a{index} = 1\n" for index in range(15_000)),
    "[[a]]\n" * 40_000,
], ids=["items", "lines", "comment", "escapes", "quotes", "literal", "keys", "tables"])  # fmt: skip
def test_a_long_document_is_read(text: str) -> None:
    """In time that grows with its length."""
    assert parse_toml(text).line(("a",)) >= 1


def test_numbers_stay_decimal() -> None:
    """A tenth is a tenth; an exponent that no number has gives none."""
    values = parse_toml("a = 0.10\nb = 1e99999999999999999999\nc = inf\nd = 7").values

    assert [str(each) for each in values.values()] == ["0.10", "NaN", "Infinity", "7"]
    assert type(values["d"]) is int


def test_at_most_so_deep() -> None:
    """Which is more than any policy needs."""
    deep = ".".join("a" * MAX_DEPTH)

    assert parse_toml(f"{deep} = 1").line(("a",) * MAX_DEPTH) == 1
    with pytest.raises(TomlError):
        parse_toml(f"{deep} = [1]")
