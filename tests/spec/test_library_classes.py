"""Arguments and results of pydantic models and msgspec Structs: bounds, tags, secrets and errors."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Annotated, Any

import attrs
import msgspec
import pydantic
import pytest
from tests.spec.annotation_rows import Area, Cat, Colour, Dog, Get, Put, Renamed, User, take_of

from neuroscript import ArgSpec, ArgumentError, Engine, ReturnError, SpecError, Toolset, bind, tool
from neuroscript.formats.json_schema import result_schema, spec_to_schema


class Price(pydantic.BaseModel):
    """A model whose validators see more than a spec can say."""

    amount: float = pydantic.Field(gt=0, alias="Amount")
    code: Annotated[str, pydantic.StringConstraints(pattern="[A-Z]{3}")] = "EUR"

    @pydantic.model_validator(mode="after")
    def _limit(self) -> Price:
        if self.amount > 5:
            raise ValueError(f"{self.amount} is too much")
        return self


class Offer(pydantic.BaseModel):
    """A model with nested models."""

    prices: list[Price]
    by_name: dict[str, Price] = {}


class Days(pydantic.RootModel[list[datetime.date]]):
    """A list of dates."""


class Colours(pydantic.RootModel[dict[str, list[Colour]]]):
    """A map."""


class Login(pydantic.BaseModel):
    """A model with a secret and other types of the library."""

    name: str
    password: pydantic.SecretStr
    picture: pydantic.Base64Bytes | None = None


class Node(pydantic.BaseModel):
    """A model that contains itself."""

    children: list[Node] = []


class Link(msgspec.Struct):
    """A Struct that contains itself."""

    next: Link | None = None


class Fives(msgspec.Struct):
    """A bound that a Struct does not check and a spec cannot express."""

    number: Annotated[int, msgspec.Meta(multiple_of=5)]


def problems(annotation: Any, value: Any) -> list[str]:
    """Return the problems of a call with this argument."""
    with Engine(toolsets=[Toolset("table", (take_of(annotation, []),))], plugins="none") as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call("table.take", [value])
    return [f"{each.where}: {each.code}: expected {each.expected}, got {each.got}" for each in caught.value.problems]


def called(annotation: Any, value: Any) -> tuple[Any, Any]:
    """Return what the function receives and the result of returning it."""
    seen: list[Any] = []
    with Engine(toolsets=[Toolset("table", (take_of(annotation, seen),))], plugins="none") as engine:
        result = engine.call("table.take", [value])
    return seen[0], result


@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        (Price, {"Amount": 6}, "value: coercion.class: expected a value that Price accepts (value_error)"),
        (
            Price,
            {"Amount": 1, "code": "eur"},
            "value['code']: coercion.class: expected a value that Price accepts (string_pattern_mismatch)",
        ),
        (
            Offer,
            {"prices": [{"Amount": 1}, {"Amount": 7}]},
            "value['prices'][1]: coercion.class: expected a value that Price accepts (value_error)",
        ),
        (
            list[Offer],
            [{"prices": [], "by_name": {"a": {"Amount": 7}}}],
            "value[0]['by_name']['a']: coercion.class: expected a value that Price accepts (value_error)",
        ),
    ],
    ids=["model", "pattern", "in a list", "in a map"],
)
def test_rejected_values_are_named_by_path(annotation: Any, value: Any, where: str) -> None:
    """The message of the validator could contain the value, so it is left out."""
    assert [f"{where}, got a rejected value"] == problems(annotation, value)


def test_an_exclusive_bound_of_a_field_is_checked_before_the_class() -> None:
    """The spec can express it, so the error names the bound."""
    expected = "value['Amount']: coercion.bounds: expected float more than 0, got float out of bounds"

    assert [expected] == problems(Price, {"Amount": "0"})


@pytest.mark.parametrize(
    ("annotation", "sent", "received", "result"),
    [
        (Days, '["2026-11-23"]', Days([datetime.date(2026, 11, 23)]), ["2026-11-23"]),
        (Colours, {"a": ["Red"]}, Colours({"a": [Colour.RED]}), {"a": ["red"]}),
        (list[Days], [["2026-11-23"]], [Days([datetime.date(2026, 11, 23)])], [["2026-11-23"]]),
        (dict[str, Days] | None, {"a": []}, {"a": Days([])}, {"a": []}),
    ],
    ids=["list", "map", "list of lists", "map of lists"],
)
def test_root_models(annotation: Any, sent: Any, received: Any, result: Any) -> None:
    """The value of a RootModel is passed as it is, without a key."""
    assert (received, result) == called(annotation, sent)


class Loop(pydantic.BaseModel):
    """A model that contains itself by a RootModel."""

    child: LoopRoot | None = None


class LoopRoot(pydantic.RootModel[Loop]):
    """Another name for a model."""


Loop.model_rebuild()


class Endless(pydantic.BaseModel):
    """A model whose computed field is of the same class."""

    number: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def next(self) -> Endless:
        return Endless(number=self.number + 1)


class Parent(pydantic.BaseModel):
    """A model whose computed field is of a class that computes a parent."""

    number: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def child(self) -> Child | None:
        return None


class Child(pydantic.BaseModel):
    """A model whose computed field is a list of parents."""

    name: str

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def parents(self) -> list[Parent]:
        return []


Parent.model_rebuild()


class Average(pydantic.BaseModel):
    """A model whose computed field may fail."""

    model_config = pydantic.ConfigDict(extra="allow")

    numbers: list[int]

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def average(self) -> float:
        """The average."""
        return sum(self.numbers) / len(self.numbers)


def test_cycle_by_root_model_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        tool_of(Loop)

    assert "Loop contains itself (Loop -> Loop)" in str(caught.value)


@pytest.mark.parametrize(
    ("cls", "field", "text"),
    [
        (Endless, "number", "field next: Endless contains itself (Endless -> Endless); use dict[str, Any] there"),
        (Parent, "number", "Parent contains itself by a computed field; remove its annotation"),
        (Child, "name", "Child contains itself by a computed field; remove its annotation"),
    ],
)
def test_cycle_by_computed_field_is_refused(cls: Any, field: str, text: str) -> None:
    """As an argument, the class has only its other fields."""

    def take(value: Any) -> None:
        """Do nothing."""

    def find() -> Any:
        """Return nothing."""

    take.__annotations__ = {"value": cls, "return": None}
    find.__annotations__ = {"return": cls}

    assert [field] == [key.name for key in tool(take, group="g").spec.args[0].keys]
    with pytest.raises(SpecError) as caught:
        tool(find, group="g")
    assert f"g.find: {text}" == str(caught.value)


def test_computed_field_belongs_to_the_result() -> None:
    """It cannot be passed unless the model stores other keys; the schema of the result has it."""
    spec = take_of(Area, []).spec

    with pytest.raises(ArgumentError):
        bind(spec, [{"width": 1, "height": 2, "size": 2}])
    schema = result_schema(spec)
    assert ["height", "width", "size"] == [*schema["properties"]]
    assert ["height", "width"] == schema["required"]
    assert ["height", "width"] == [*spec_to_schema(spec)["properties"]["value"]["properties"]]
    assert spec == attrs.evolve(spec)
    assert spec.returns == attrs.evolve(spec.returns)


def test_computed_field_fails() -> None:
    """The caller receives a typed error without the message of the exception."""
    with Engine(toolsets=[Toolset("table", (take_of(Average, []),))], plugins="none") as engine:
        result = engine.call("table.take", [{"numbers": [1, 2], "unit": "m"}])
        with pytest.raises(ReturnError) as caught:
            engine.call("table.take", [{"numbers": []}])

    assert {"numbers": [1, 2], "unit": "m", "average": 1.5} == result
    assert "table.take: result: the computed field average failed (ZeroDivisionError)" == str(caught.value)


def tool_of(annotation: Any) -> Any:
    return take_of(annotation, [])


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Node, "field children: Node contains itself (Node -> Node); use dict[str, Any] there"),
        (Link, "field next: Link contains itself (Link -> Link); use dict[str, Any] there"),
        (Fives, "field number: Meta is not supported; remove it and check the value in the function"),
    ],
    ids=["model", "Struct", "bound"],
)
def test_refused_classes(annotation: Any, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        tool_of(annotation)

    assert f"value: {text}" == caught.value.problems[0]


def test_secrets_of_a_model_are_secret() -> None:
    """A SecretStr is a secret key."""
    spec = tool_of(Login).spec

    assert [False, True, False] == [key.secret for key in spec.args[0].keys]
    assert frozenset({"value"}) == spec.secret_names


def test_bounds_and_names_of_a_struct() -> None:
    """A constructor of a Struct checks nothing, so the spec does."""
    keys = tool_of(Renamed).spec.args[0].keys

    assert (ArgSpec("firstName", "string"), ArgSpec("shoeSize", "int", default=40, minimum=1, maximum=60)) == keys  # type: ignore[arg-type]
    assert ["value['shoeSize']: coercion.bounds: expected int from 1 to 60, got int out of bounds"] == problems(
        Renamed, {"firstName": "Ada", "shoeSize": 99}
    )


@pytest.mark.parametrize(
    ("annotation", "sent", "received", "result"),
    [
        (Get | Put, {"type": "get", "key": "a"}, Get(key="a"), {"type": "get", "key": "a"}),
        (Get, {"key": "a"}, Get(key="a"), {"type": "get", "key": "a"}),
        (
            list[Cat | Dog],
            [{"kind": "dog", "good": "true"}, {"kind": "cat"}],
            [Dog(kind="dog", good=True), Cat(kind="cat")],
            [{"kind": "dog", "good": True}, {"kind": "cat", "lives": 9}],
        ),
    ],
    ids=["tagged Structs", "tag left out", "models"],
)
def test_tags(annotation: Any, sent: Any, received: Any, result: Any) -> None:
    """The tag of a Struct is a key with one choice."""
    assert (received, result) == called(annotation, sent)


def test_libraries_are_loaded_only_for_their_classes() -> None:
    """A tool with other annotations imports neither."""
    code = (
        "import sys, datetime; from dataclasses import dataclass; from neuroscript import tool\n"
        "@dataclass\nclass A:\n    day: datetime.date\n"
        "def take(a: list[A]) -> A: ...\n"
        "tool(take, group='g'); print(sorted({'pydantic', 'pydantic_core', 'msgspec'} & {*sys.modules}))"
    )

    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_a_model_as_default() -> None:
    """A default may be an instance; callers and records see its fields."""

    def take(value: User = User(name="Ada")) -> str:  # noqa: B008
        return value.name

    spec = tool(take, group="table").spec

    assert {"name": "Ada", "age": 18, "eMail": None, "friends": []} == spec.args[0].default
