"""Answers of a requested class: read from what models write, repaired by its fields, and returned as instances."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntFlag
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import attrs
import pytest
from tests.llm.scripted_models import Script, made, says

from neuroscript import Arg, ArgSpec, ArgType, Engine, SpecError
from neuroscript.llm import ConversationError, converse
from neuroscript.llm.transcripts import conversation_to_data

pydantic = pytest.importorskip("pydantic")


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Access(IntFlag):
    READ = 1
    WRITE = 2


@dataclass
class Item:
    name: str
    price: Decimal
    color: Color = Color.RED


@attrs.frozen
class Order:
    items: list[Item]
    day: date
    note: str | None = None


class Address(TypedDict):
    town: str
    zip: NotRequired[int]


class Point(NamedTuple):
    x: float
    y: float = 0.0


@dataclass
class Card:
    kind: Literal["card"]
    number: str


@dataclass
class Cash:
    kind: Literal["cash"]
    amount: Decimal


class Person(pydantic.BaseModel):  # type: ignore[name-defined, misc]
    name: str
    born: date
    tags: frozenset[str] = frozenset()

    @pydantic.field_validator("name")  # type: ignore[untyped-decorator]
    @classmethod
    def _capitalized(cls, name: str) -> str:
        if not name[:1].isupper():
            raise ValueError("hunter2 must begin with a capital letter")
        return name


APPLE, PEAR = Item("apple", Decimal("1.50")), Item("pear", Decimal("2"), Color.BLUE)

ANSWERS: list[tuple[Any, str, Any]] = [
    (Item, '{"name": "apple", "price": "1.50"}', APPLE),
    (Item, '```json\n{"name": "pear", "price": 2, "color": "BLUE "}\n```', PEAR),
    (list[Item], '[{"name": "apple", "price": "1.50"}]', [APPLE]),
    (dict[str, list[Item]], '{"a": "[{\\"name\\": \\"apple\\", \\"price\\": \\"1.50\\"}]"}', {"a": [APPLE]}),
    (Item | None, "null", None),
    (Order, '{"items": [{"name": "apple", "price": "1.50"}], "day": "2020-01-31"}', Order([APPLE], date(2020, 1, 31))),
    (Address, '{"town": "Ulm", "zip": "89073"}', {"town": "Ulm", "zip": 89073}),
    (Point, '{"x": "1"}', Point(1.0)),
    (Card | Cash, '{"kind": "Cash", "amount": 2.5}', Cash("cash", Decimal("2.5"))),
    (Card | Cash | None, '{"kind": "card", "number": "4"}', Card("card", "4")),
    (Person, '{"name": "Ada", "born": "1815-12-10", "tags": ["a", "a"]}', Person(name="Ada", born=date(1815, 12, 10), tags=frozenset({"a"}))),
    (Color, "Red", Color.RED),
    (Color, '"red"', Color.RED),
    (Access, '["READ", "WRITE"]', Access.READ | Access.WRITE),
    (set[int], '["1", 1, 2]', {1, 2}),
    (frozenset[str], '["a"]', frozenset({"a"})),
    (deque[int], "[1]", deque([1])),
    (tuple[int, str], '["1", "a"]', (1, "a")),
    (tuple[int, ...], "[1, 2]", (1, 2)),
    (Sequence[int], "[1]", [1]),
    (Mapping[str, int], '{"a": "1"}', {"a": 1}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (date, "2020-01-31", date(2020, 1, 31)),
    (date, "```\n2020-01-31\n```", date(2020, 1, 31)),
    (datetime, '"2020-01-31T10:00:00Z"', datetime(2020, 1, 31, 10, tzinfo=UTC)),
    (timedelta, "PT90S", timedelta(seconds=90)),
    (Decimal, "12.50", Decimal("12.50")),
    (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
    (PurePosixPath, "a/b", PurePosixPath("a/b")),
    (int | Literal["auto"], '"5"', 5),
    (int | str, "hello", "hello"),
    (str, '"5"', '"5"'),
    (int, "5", 5),
    (Annotated[int, Arg(minimum=1)], "5", 5),
    (Any, "[1]", [1]),
    (ArgType.INT, "5", 5),
    (ArgSpec("day", "string", cls=date), "2020-01-31", date(2020, 1, 31)),
    (ArgSpec("day", "string", format="date"), "2020-01-31", "2020-01-31"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "text", "expected"), ANSWERS, ids=[str(row[0]) for row in ANSWERS])
def test_answer_is_an_instance_of_the_requested_type(answer: Any, text: str, expected: Any) -> None:
    """Every supported annotation is accepted, and the model's text is repaired by it."""
    conversation = converse(made(), "Go.", model=Script([says(text)]), answer=answer)

    assert (type(expected), expected) == (type(conversation.answer), conversation.answer)
    json.dumps(conversation_to_data(conversation))


def test_transcript_has_the_exact_value_of_an_instance() -> None:
    text = '[{"name": "pear", "price": 2, "color": "BLUE"}]'

    conversation = converse(made(), "Go.", model=Script([says(text)]), answer=list[Item])

    assert [PEAR] == conversation.answer
    assert [{"name": "pear", "price": "2", "color": "blue"}] == conversation.exact_answer
    assert conversation.exact_answer == conversation_to_data(conversation)["answer"]


def test_each_problem_goes_back_with_its_path() -> None:
    """All at once; the second answer is used."""
    wrong = '{"items": [{"name": 1, "price": "much"}], "day": "tomorrow"}'
    model = Script([says(wrong), says('{"items": [], "day": "2020-01-31"}')])

    conversation = converse(made(), "Go.", model=model, answer=Order)

    assert Order([], date(2020, 1, 31)) == conversation.answer
    told = conversation.turns[-2].content
    assert told.startswith("That answer is invalid: ")
    for path in ("answer['items'][0]['price']", "answer['day']"):
        assert path in told
    assert "much" not in told and "tomorrow" not in told


def test_answer_that_a_class_rejects_goes_back() -> None:
    """Its validators run after the checks; what they say may contain values, so only the kind of error is reported."""
    model = Script([says('{"name": "ada", "born": "1815-12-10"}')] * 2)

    with pytest.raises(ConversationError) as caught:
        converse(made(), "Go.", model=model, answer=Person, turns=2)

    assert ("llm.answer", "never") == (caught.value.code, caught.value.retry)
    assert caught.value.text == (
        "none of 2 turns gave a valid answer: answer['name']: expected a value that Person accepts (value_error), "
        "got a rejected value"
    )


def test_instruction_contains_the_schema_of_the_class() -> None:
    model = Script([says('{"x": 1}')])

    converse(made(), "Go.", model=model, answer=Point)

    text = model.received[0][0].content
    schema = json.loads(text[text.index("{") :])
    assert {"x": {"type": "number"}} == {name: schema["properties"][name] for name in ("x",)}
    assert ["x"] == schema["required"]


def test_secret_field_of_an_answer_is_hidden_elsewhere() -> None:
    @dataclass
    class Login:
        user: str
        token: Annotated[str, Arg(secret=True)]

    Login.__annotations__["token"] = Annotated[str, Arg(secret=True)]
    said = '[{"user": "ada", "token": "hunter2-hunter2"}]'
    answer = ArgSpec("logins", "slice_map", cls=Login)

    conversation = converse(made(), "Go.", model=Script([says(said)]), answer=answer)

    assert "hunter2-hunter2" == conversation.answer[0].token
    assert "hunter2" not in repr((conversation.turns, conversation.replies))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (list[complex], "answer: complex is not supported; use list[float]"),
        ("number", None),
        (5, "converse: answer must be an ArgType, its name, an ArgSpec or an annotation, such as a class, or None, not int"),
        (Item("a", Decimal(1)), None),
    ],
)  # fmt: skip
def test_unsupported_answer_is_a_spec_error(answer: Any, text: str | None) -> None:
    """Before the model is asked; the message says what to use."""
    with Engine(plugins="none") as engine, pytest.raises(SpecError) as caught:
        converse(engine, "Go.", model=Script([]), answer=answer)

    assert text in (None, str(caught.value))
