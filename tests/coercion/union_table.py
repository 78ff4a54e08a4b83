"""A written table of 80 values and 12 unions: which alternative is chosen, and why.

Run it as a module to print what pydantic's smart mode chooses beside it, where pydantic is installed.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, Required

from typing_extensions import TypedDict

from neuroscript import ArgSpec, CallError, coerce, tool


class Card(TypedDict):
    """A payment by card."""

    kind: Literal["card"]
    number: str


class Cash(TypedDict, total=False):
    """A payment in cash."""

    kind: Required[Literal["cash"]]
    amount: int


UNIONS: Final[dict[str, Any]] = {
    "A": int | str,
    "B": str | int,
    "C": bool | int,
    "D": int | float,
    "E": int | Literal["auto"],
    "F": datetime.datetime | str,
    "G": str | datetime.date,
    "H": datetime.date | Decimal,
    "I": list[int] | int,
    "J": list[int] | list[str],
    "K": Card | Cash,
    "L": dict[str, int] | list[str] | str,
}

ROWS: Final[tuple[tuple[Any, Mapping[str, Any], str], ...]] = (
    (True, {"C": True}, 'a boolean is neither a number nor text'),
    (False, {"C": False}, 'a boolean is neither a number nor text'),
    (0, {"ABCDEI": 0, "H": '0'}, 'an int is an int before it is a boolean, a float or a decimal number'),
    (1, {"ABCDEI": 1, "H": '1'}, 'an int is an int, though a boolean could be made from it'),
    (2, {"ABCDEI": 2, "H": '2'}, 'an int is exact'),
    (-1, {"ABCDEI": -1, "H": '-1'}, 'an int is exact'),
    (5.0, {"ABCEI": 5, "D": 5.0, "H": '5.0'}, 'a float is exact where declared; a whole one becomes an int where not'),
    (1.5, {"D": 1.5, "H": '1.5'}, 'a fraction is a float or a decimal number, never an int'),
    (2**63, {"D": 9.223372036854776e+18, "H": '9223372036854775808'}, 'too large for an int, and exact as a float'),
    (float("nan"), {}, 'not a number'),
    (10**400, {}, 'too large for all but a long decimal number, and too long for that'),
    ("5", {"ABFGHL": '5', "CDEI": 5}, 'text stays text beside str; digits are a number elsewhere'),
    (" 5 ", {"ABFGL": ' 5 ', "CDEI": 5, "H": '5'}, 'blanks belong to a string and not to a number'),
    ("5.0", {"ABFGHL": '5.0', "CDEI": 5}, 'text stays text; .0 is a whole number'),
    ("1.5", {"ABFGHL": '1.5', "D": 1.5}, 'text stays text; a fraction is not an int'),
    ("1e3", {"ABFGL": '1e3', "D": 1000.0, "H": '1E+3'}, 'text stays text; an exponent is not an int, and decimal has its own spelling'),
    ("true", {"ABFGL": 'true', "C": True}, 'text stays text; the word is a boolean'),
    ("TRUE", {"ABFGL": 'TRUE', "C": True}, 'text stays text; the word is a boolean in any case'),
    ("0", {"ABFGHL": '0', "CDEI": 0}, 'digits are an int, not a boolean'),
    ("1", {"ABFGHL": '1', "CDEI": 1}, 'digits are an int, not a boolean'),
    ("", {"ABFGL": ''}, 'empty text is text beside str, and nothing elsewhere'),
    ("null", {"ABFGL": 'null'}, 'the word is text beside str, and nothing elsewhere'),
    ("auto", {"ABEFGL": 'auto'}, 'a member is exact'),
    (" AUTO ", {"ABFGL": ' AUTO ', "E": 'auto'}, 'a member but for case and blanks'),
    ("automatic", {"ABFGL": 'automatic'}, 'near a member is not a member'),
    ("abc", {"ABFGL": 'abc'}, 'text only'),
    ("2026-01-02", {"ABFGHL": '2026-01-02'}, 'a date is a date or text, and no date and time'),
    ("2026-01-02 10:00", {"ABGL": '2026-01-02 10:00', "F": '2026-01-02T10:00:00'}, 'a format that is declared before str takes text that parses'),
    ("2026-01-02T10:00:00", {"ABFGL": '2026-01-02T10:00:00'}, 'canonical as it is'),
    ("2026-01-02T10:00:00Z", {"ABGL": '2026-01-02T10:00:00Z', "F": '2026-01-02T10:00:00+00:00'}, 'a format that is declared before str takes text that parses, and its canonical offset is numeric'),
    (" 2026-01-02 ", {"ABFGL": ' 2026-01-02 ', "H": '2026-01-02'}, 'blanks around a date do not count; a date alone is not a date and time'),
    ("2026-02-30", {"ABFGL": '2026-02-30'}, 'no day, so text only'),
    ("10:00", {"ABFGL": '10:00'}, 'a time alone is not a date and time'),
    ("1_000", {"ABFGL": '1_000'}, 'an underscore is not a digit'),
    ("1,000", {"ABFGL": '1,000'}, 'a comma is not a digit'),
    ("\u0663", {"ABFGL": '٣'}, 'a digit of another script is not a digit'),
    ("\ud800", {}, 'no valid Unicode'),
    ("[1, 2]", {"ABFGL": '[1, 2]', "IJ": [1, 2]}, 'JSON text is read where no alternative is text'),
    ("[1, \"a\"]", {"ABFGL": '[1, "a"]'}, 'JSON text of two types fits neither list'),
    ("[]", {"ABFGL": '[]', "IJ": []}, 'an empty JSON list is read where no alternative is text'),
    ("{}", {"ABFGL": '{}'}, 'an empty JSON object is not a list, and lacks the discriminator'),
    ("[1, 2", {"ABFGL": '[1, 2'}, 'broken JSON'),
    ("```json\n[1]\n```", {"ABFGL": '```json\n[1]\n```', "IJ": [1]}, 'JSON text in a fence is read where no alternative is text'),
    ("{\"a\": 1}", {"ABFGL": '{"a": 1}'}, 'JSON text of an object stays text beside str'),
    ("{\"kind\": \"cash\"}", {"ABFGL": '{"kind": "cash"}', "K": {'kind': 'cash'}}, 'JSON text is read and told apart by its kind'),
    ("NaN", {"ABFGL": 'NaN'}, 'no finite number'),
    ("-0", {"ABFGHL": '-0', "CDEI": 0}, 'zero with a sign'),
    ([], {"IJL": []}, 'the first list that an empty one strictly is'),
    ([1, 2], {"IJ": [1, 2]}, 'exact for a list of ints; items of list[str] are never made from ints'),
    (["1", "2"], {"I": [1, 2], "JL": ['1', '2']}, 'exact for list[str] where declared; else repaired to ints'),
    (["a"], {"JL": ['a']}, 'exact for list[str]'),
    ([1, "a"], {}, 'two types fit neither list'),
    ([None], {}, 'no item is null'),
    ([[1]], {}, 'no item is a list'),
    ((1, 2), {"IJ": [1, 2]}, 'a tuple is repaired to the only list that takes its items'),
    ({1}, {}, 'a set is not a list unless unique items are declared'),
    ([True], {}, 'a boolean is not an int'),
    ([1.0], {"IJ": [1]}, 'a whole float is repaired to an int, never to a string'),
    ([1.5], {}, 'a fraction is not an int'),
    ({}, {"L": {}}, 'an empty map; it lacks the discriminator'),
    ({"a": 1}, {"L": {'a': 1}}, 'exact for a map of ints'),
    ({"a": "1"}, {"L": {'a': 1}}, 'repaired to a map of ints'),
    ({"a": "x"}, {}, 'no digits, so no alternative fits'),
    ({"a": None}, {}, 'no value is null'),
    ({1: 1}, {}, 'no key is an int'),
    ({"kind": "card", "number": "4"}, {"K": {'kind': 'card', 'number': '4'}}, 'told apart by its kind'),
    ({"kind": "Card", "number": "4"}, {"K": {'kind': 'card', 'number': '4'}}, 'told apart by its kind, in the spelling of the choice'),
    ({"kind": "card"}, {}, 'of its kind, without a required key: the errors concern that kind alone'),
    ({"kind": "cash"}, {"K": {'kind': 'cash'}}, 'told apart by its kind; the amount is optional'),
    ({"kind": "cash", "amount": "5"}, {"K": {'kind': 'cash', 'amount': 5}}, 'told apart by its kind, and repaired by that alternative'),
    ({"kind": "cheque"}, {}, 'of an unknown kind'),
    ({"number": "4"}, {"L": {'number': 4}}, 'it lacks the discriminator; elsewhere a map of ints'),
    ({"kind": "cash", "number": "4"}, {}, 'of a kind that has no such key, although the other one has'),
    ({"kind": None}, {}, 'the kind is missing'),
    (b"5", {}, 'bytes are no text'),
    (datetime.date(2026, 1, 2), {"GH": '2026-01-02'}, 'an instance of the exact class is read by its format'),
    (datetime.datetime(2026, 1, 2, 10), {"F": '2026-01-02T10:00:00'}, 'an instance of the exact class is read by its format'),
    (Decimal("1.50"), {"H": '1.50'}, 'an instance of the exact class is read by its format'),
    (uuid.UUID(int=7), {}, 'no alternative has this format'),
    (object(), {}, 'no code of an unknown class runs'),
)  # fmt: skip
"""Each value with its result by the unions that have it, and the reason. All other unions refuse the value."""


def spec_of(annotation: Any) -> ArgSpec:
    """Return the argument that an annotation makes."""

    def take(x: Any) -> None:
        """Take it."""

    take.__annotations__ = {"x": annotation, "return": None}
    return tool(take, group="g").spec.args[0]


def print_comparison() -> None:
    """Print the results that differ from those of pydantic, for information: none of them has to be equal."""
    from pydantic import TypeAdapter, ValidationError

    for annotation in UNIONS.values():
        rule, adapter = spec_of(annotation), TypeAdapter(annotation)
        for value, _, why in ROWS:
            results = []
            for read in (
                lambda value=value, rule=rule: coerce(value, rule),
                lambda value=value, adapter=adapter: adapter.validate_python(value),
            ):
                try:
                    results.append(repr(read()))
                except (CallError, ValidationError):
                    results.append("refused")
            if results[0] != results[1]:
                print(f"{annotation}: {value!a}: {results[0]} | pydantic: {results[1]} | {why}")


if __name__ == "__main__":
    print_comparison()
