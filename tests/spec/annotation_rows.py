"""Annotations that authors write: what a model sends for each, and what records, the function and the caller see.

`ROWS` is used by the tests of annotations and by the comparison with other frameworks in ``tests/benchmarks``.
"""

from __future__ import annotations

import datetime
import enum
import ipaddress
import typing
from collections import OrderedDict, defaultdict, deque
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import annotated_types as bounds
import attrs
import msgspec
import pydantic
import typing_extensions

from neuroscript import Arg, tool
from neuroscript.spec.annotations import KNOWN

T = TypeVar("T")

SAME: Final = object()
"""The exact value of a row whose function receives exactly that."""


@attrs.frozen(eq=False)
class Row:
    """An annotation and the forms that a value takes on its way.

    Attributes:
        name: The name of the row.
        annotation: The annotation of the parameter and of the result.
        sent: The JSON value that a model sends.
        exact: The plain value that policies, records and callers see.
        received: What the function receives; `SAME` if that is the exact value.
        result: The result if the function returns what it received; `SAME` if that is the exact value.
    """

    name: str
    annotation: Any
    sent: Any
    exact: Any
    received: Any = SAME
    result: Any = SAME


@attrs.frozen(eq=False)
class Refused:
    """An annotation that is refused.

    Attributes:
        name: The name of the row.
        annotation: The annotation.
        problem: What the error says about it.
        reason: Why authors can accept that.
    """

    name: str
    annotation: Any
    problem: str
    reason: str


class Colour(enum.Enum):
    """Strings."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """Integers that are members."""

    LOW = 0
    HIGH = 1


class Word(enum.StrEnum):
    """Strings that are members."""

    YES = "yes"
    NO = "no"


class Shape(enum.Enum):
    """Members whose values are not scalars; they are passed by name."""

    POINT = ()
    LINE = (0, 1)


class Mixed(enum.Enum):
    """Values of several types."""

    ONE = 1
    AUTO = "auto"


class Permission(enum.Flag):
    """Flags, passed by their names."""

    READ = enum.auto()
    WRITE = enum.auto()


class Style(enum.IntFlag):
    """Flags that are integers."""

    BOLD = 1
    ITALIC = 2


class Point(NamedTuple):
    """A tuple with named fields."""

    x: int
    y: float = 0.5


@dataclass
class Item:
    """A dataclass with a default, a choice and a list."""

    name: str
    count: int = 1
    colour: Colour = Colour.RED
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Order:
    """A dataclass with nested classes."""

    items: list[Item]
    due: datetime.date | None = None
    total: Decimal = Decimal("0")


@dataclass
class Page(Generic[T]):
    """A generic dataclass."""

    items: list[T]
    next: T | None = None


@attrs.frozen
class Place:
    """An attrs class with an alias."""

    _street: str
    number: int = 1
    extra: Item | None = None


class Movie(TypedDict):
    """Required keys."""

    title: str
    year: int


class Patch(TypedDict, total=False):
    """Optional keys, except one."""

    id: Required[UUID]
    title: str
    year: int


class Review(Movie):
    """An inherited TypedDict with an optional key."""

    stars: NotRequired[Annotated[int, bounds.Ge(1), bounds.Le(5)]]


class Pair(TypedDict, Generic[T]):
    """A generic TypedDict."""

    left: T
    right: T


@dataclass
class Card:
    """A kind of payment."""

    number: str
    kind: Literal["card"] = "card"


@dataclass
class Cash:
    """Another kind of payment."""

    amount: Decimal
    kind: Literal["cash"] = "cash"


class User(pydantic.BaseModel):
    """A model with an alias and defaults."""

    name: str
    age: int = pydantic.Field(default=18, ge=0, le=150)
    mail: str | None = pydantic.Field(default=None, alias="eMail")
    friends: list[str] = pydantic.Field(default_factory=list)


class Team(pydantic.BaseModel):
    """A model with nested models and a date."""

    lead: User
    members: dict[str, User] = {}
    since: datetime.date


class Even(pydantic.BaseModel):
    """A model whose validator changes a value."""

    number: int

    @pydantic.field_validator("number")
    @classmethod
    def _round(cls, number: int) -> int:
        return number - number % 2


class Numbers(pydantic.RootModel[list[int]]):
    """A model of a list."""


class Cat(pydantic.BaseModel):
    """One pet."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    """Another pet."""

    kind: Literal["dog"]
    good: bool


class Owner(pydantic.BaseModel):
    """A model with a discriminated union."""

    pet: Cat | Dog = pydantic.Field(discriminator="kind")


class Exactly(pydantic.BaseModel):
    """A model that accepts no conversions and no further keys of its own."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    size: int
    when: datetime.datetime


class Area(pydantic.BaseModel):
    """A model with a computed field, which is not an argument but part of a result."""

    height: int
    width: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def size(self) -> int:
        return self.width * self.height


class Plot(pydantic.RootModel[Area]):
    """A model of one model."""


class Town(pydantic.BaseModel):
    """A model with a nested computed field, and one that is another model."""

    areas: list[Area]
    park: Area = Area(width=1, height=1)

    @pydantic.computed_field(alias="firstArea", description="The first.")  # type: ignore[prop-decorator]
    @property
    def first(self) -> Area | None:
        return self.areas[0] if self.areas else None


class Open(pydantic.BaseModel):
    """A model that stores other keys."""

    model_config = pydantic.ConfigDict(extra="allow")

    name: str
    count: int = 1


class Opened(pydantic.RootModel[Open]):
    """A model of a model that stores other keys."""


class Typed(pydantic.RootModel[Item]):
    """A model of a dataclass."""


class Box(pydantic.BaseModel, Generic[T]):
    """A generic model."""

    content: T
    more: list[T] = []


class Link(pydantic.BaseModel):
    """A model with types of pydantic."""

    url: pydantic.AnyUrl
    others: list[pydantic.HttpUrl] = []
    seen: pydantic.PastDate | None = None
    size: pydantic.PositiveInt = 1


class Stock(msgspec.Struct):
    """A Struct with a default."""

    name: str
    count: int = 0
    prices: list[Decimal] = []


class Renamed(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A Struct with names of its own in maps."""

    first_name: str
    shoe_size: Annotated[int, msgspec.Meta(ge=1, le=60)] = 40


class Get(msgspec.Struct, tag="get", kw_only=True):
    """A tagged Struct."""

    key: str


class Put(msgspec.Struct, tag="put", kw_only=True):
    """Another one."""

    key: str
    value: int


@pydantic.dataclasses.dataclass
class Checked:
    """A dataclass of pydantic."""

    size: int
    name: str = "a"


UserId = NewType("UserId", int)
Metres = typing_extensions.TypeAliasType("Metres", Annotated[float, "Metres."])
Listing = typing_extensions.TypeAliasType("Listing", list[T], type_params=(T,))

NOON: Final = datetime.datetime(2026, 11, 23, 12, 30, tzinfo=datetime.UTC)
ID: Final = "12345678-1234-5678-1234-567812345678"

ROWS: Final = (
    # scalars
    Row("str", str, "5", "5"),
    Row("int", int, "5", 5),
    Row("float", float, "5.5", 5.5),
    Row("bool", bool, "true", True),
    Row("bytes", bytes, {"$base64": "aGk="}, b"hi"),
    Row("any", Any, [1, {"a": None}], [1, {"a": None}]),
    Row("object", object, [1, {"a": None}], [1, {"a": None}]),
    Row("bytearray", bytearray, {"$base64": "aGk="}, b"hi", bytearray(b"hi")),
    Row("none", None, None, None),
    # standard classes with a canonical text
    Row("datetime", datetime.datetime, "2026-11-23 12:30:00Z", "2026-11-23T12:30:00+00:00", NOON),
    Row("date", datetime.date, "2026-11-23", "2026-11-23", datetime.date(2026, 11, 23)),
    Row("time", datetime.time, "12:30", "12:30:00", datetime.time(12, 30)),
    Row("timedelta", datetime.timedelta, "PT90M", "PT1H30M", datetime.timedelta(minutes=90)),
    Row("uuid", UUID, ID.replace("-", "").upper(), ID, UUID(ID)),
    Row("decimal", Decimal, 19.9, "19.9", Decimal("19.9")),
    Row("decimal of text", Decimal, " 19.90 ", "19.90", Decimal("19.90")),
    Row("path", Path, "inbox/a.txt", "inbox/a.txt", Path("inbox/a.txt")),
    Row("pure path", PurePosixPath, "/srv/a", "/srv/a", PurePosixPath("/srv/a")),
    Row("ipv4", ipaddress.IPv4Address, " 192.0.2.1", "192.0.2.1", ipaddress.IPv4Address("192.0.2.1")),
    Row("ipv6", ipaddress.IPv6Address, "2001:DB8::1", "2001:db8::1", ipaddress.IPv6Address("2001:db8::1")),
    Row("ip network", ipaddress.IPv4Network, "192.0.2.0/24", "192.0.2.0/24", ipaddress.IPv4Network("192.0.2.0/24")),
    # choices
    Row("literal", Literal["r", "w"], " W", "w"),
    Row("literal ints", Literal[1, 2], "2", 2),
    Row("mixed literal", Literal[1, "auto", True], "1", 1),
    Row("literal or none", Literal["r", None], None, None),
    Row("literal of members", Literal[Colour.RED], "Red", "red", Colour.RED),
    Row("enum", Colour, "BLUE", "blue", Colour.BLUE),
    Row("int enum", Level, "1", 1, Level.HIGH),
    Row("str enum", Word, "Yes", "yes", Word.YES),
    Row("enum by name", Shape, "line", "LINE", Shape.LINE),
    Row("mixed enum", Mixed, "AUTO", "auto", Mixed.AUTO),
    Row("flag", Permission, '["write", "read"]', ["WRITE", "READ"], Permission.READ | Permission.WRITE, ["READ", "WRITE"]),
    Row("int flag", Style, ["BOLD", "BOLD"], ["BOLD"], Style.BOLD),
    # unions
    Row("optional", int | None, "5", 5),
    Row("optional null", Optional[int], "null", None),
    Row("optional date", datetime.date | None, "2026-11-23", "2026-11-23", datetime.date(2026, 11, 23)),
    Row("int or str", int | str, "5", "5"),
    Row("int or float", int | float, "5.5", 5.5),
    Row("bool or int", bool | int, "1", 1),
    Row("int or auto", int | Literal["auto"], "5", 5),
    Row("auto or int", int | Literal["auto"], "Auto", "auto"),
    Row("datetime or str", datetime.datetime | str, "2026-11-23T12:30:00Z", "2026-11-23T12:30:00+00:00", NOON),
    Row("str or date", datetime.date | str, "soon", "soon"),
    Row("one or many", str | list[str], ["a", "b"], ["a", "b"]),
    Row("int or ints", int | list[int], '["1", 2.0]', [1, 2]),
    Row("union of classes", Item | Movie, {"title": "M", "year": "1931"}, {"title": "M", "year": 1931}),
    Row("tagged union", Card | Cash, {"kind": "Cash", "amount": 5}, {"kind": "cash", "amount": "5"}, Cash(Decimal(5))),
    Row(
        "tagged unions",
        list[Card | Cash],
        [{"kind": "card", "number": "1"}, {"kind": "cash", "amount": "2.50"}],
        [{"kind": "card", "number": "1"}, {"kind": "cash", "amount": "2.50"}],
        [Card("1"), Cash(Decimal("2.50"))],
    ),
    # lists
    Row("bare list", list, '[1, "a"]', [1, "a"]),
    Row("list", list[int], '["1", 2.0]', [1, 2]),
    Row("list of str", list[str], ["a"], ["a"]),
    Row("list of any", list[Any], [1, None], [1, None]),
    Row("list of object", list[object], [1, None], [1, None]),
    Row("list of bytearrays", list[bytearray], ["hi"], [b"hi"], [bytearray(b"hi")]),
    Row("list of lists", list[list[int]], [["1"], "[2]", []], [[1], [2], []]),
    Row("list of optional", list[int | None], ["1", None, "null"], [1, None, None]),
    Row("list of unions", list[int | str], [1, "2"], [1, "2"]),
    Row("list of dates", list[datetime.date], ["2026-11-23"], ["2026-11-23"], [datetime.date(2026, 11, 23)]),
    Row("list of enums", list[Colour], ["Red", "blue"], ["red", "blue"], [Colour.RED, Colour.BLUE]),
    Row("list of dicts", list[dict[str, int]], [{"a": "1"}], [{"a": 1}]),
    Row("list of dataclasses", list[Point], [{"x": "1"}], [{"x": 1, "y": 0.5}], [Point(1)]),
    Row("bare Sequence", Sequence, '[1, "a"]', [1, "a"]),
    Row("bare Sequence of typing", typing.Sequence, [1], [1]),
    Row("bare Iterable", Iterable, [1], [1]),
    Row("bare Collection", Collection, [1], [1]),
    Row("bare MutableSequence", MutableSequence, [1], [1]),
    Row("Sequence", Sequence[float], ["1.5", 2], [1.5, 2.0]),
    Row("Iterable of dates", Iterable[datetime.date], ["2026-11-23"], ["2026-11-23"], [datetime.date(2026, 11, 23)]),
    Row("Collection", Collection[UUID], [ID], [ID], [UUID(ID)]),
    Row("MutableSequence", MutableSequence[bool], ["true"], [True]),
    # tuples, sets and queues
    Row("bare tuple", tuple, [1, "a"], [1, "a"], (1, "a")),
    Row("bare Tuple of typing", tuple, [1, "a"], [1, "a"], (1, "a")),
    Row("pair", tuple[int, str], ["1", "a"], [1, "a"], (1, "a")),
    Row("tuple", tuple[int, ...], '["1", 2]', [1, 2], (1, 2)),
    Row("tuple of classes", tuple[datetime.date, Decimal], ["2026-11-23", 1], ["2026-11-23", "1"], (datetime.date(2026, 11, 23), Decimal(1))),
    Row("tuples", list[tuple[str, float]], [["a", "1.5"]], [["a", 1.5]], [("a", 1.5)]),
    Row("bare set", set, [1, 1], [1], {1}),
    Row("bare Set", AbstractSet, [1, 1], [1], {1}),
    Row("bare MutableSet", MutableSet, ["a"], ["a"], {"a"}),
    Row("set of any", set[Any], [1, 2, 1], [1, 2], {1, 2}),
    Row("set", set[int], ["1", 1], [1], {1}),
    Row("frozenset", frozenset[Colour], ["red", "Red"], ["red"], frozenset({Colour.RED})),
    Row("Set", AbstractSet[str], ["a"], ["a"], {"a"}),
    Row("bare deque", deque, [1], [1], deque([1])),
    Row("deque", deque[int], ["1", "2"], [1, 2], deque([1, 2])),
    # dicts
    Row("bare dict", dict, '{"a": 1}', {"a": 1}),
    Row("dict", dict[str, int], {"a": "1"}, {"a": 1}),
    Row("dict of any", dict[str, Any], {"a": [1]}, {"a": [1]}),
    Row("dict of optional", dict[str, int | None], {"a": "1", "b": None}, {"a": 1, "b": None}),
    Row("dict of lists", dict[str, list[float]], {"a": ["1.5"]}, {"a": [1.5]}),
    Row("dict of dicts", dict[str, dict[str, int]], {"food": {"pizza": "2"}}, {"food": {"pizza": 2}}),
    Row("dict of items", dict[str, list[Point]], {"a": [{"x": "1"}]}, {"a": [{"x": 1, "y": 0.5}]}, {"a": [Point(1)]}),
    Row("dict by int", dict[int, str], {"1": "a"}, {1: "a"}),
    Row("dict by enum", dict[Colour, int], {"Red": "1"}, {"red": 1}, {Colour.RED: 1}),
    Row("dict by uuid", dict[UUID, int], {ID: "1"}, {ID: 1}, {UUID(ID): 1}),
    Row("dict by date", dict[datetime.date, float], {"2026-11-23": 1}, {"2026-11-23": 1.0}, {datetime.date(2026, 11, 23): 1.0}),
    Row("dict by literal", dict[Literal["a", "b"], int], {"a": "1"}, {"a": 1}),
    Row("Mapping", Mapping[str, Decimal], {"a": 1.5}, {"a": "1.5"}, {"a": Decimal("1.5")}),
    Row("MutableMapping", MutableMapping[int, list[int]], {"1": ["2"]}, {1: [2]}),
    Row("bare Mapping", Mapping, '{"a": 1}', {"a": 1}),
    Row("bare Mapping of typing", typing.Mapping, {"a": [1]}, {"a": [1]}),
    Row("bare MutableMapping", MutableMapping, {"a": 1}, {"a": 1}),
    Row("dict of object", dict[str, object], {"a": [1]}, {"a": [1]}),
    Row("bare OrderedDict", OrderedDict, '{"a": 1}', {"a": 1}, OrderedDict(a=1)),
    Row("OrderedDict", OrderedDict[str, int], {"a": "1"}, {"a": 1}, OrderedDict(a=1)),
    Row("OrderedDict of dates", OrderedDict[str, datetime.date], {"a": "2026-11-23"}, {"a": "2026-11-23"},
        OrderedDict(a=datetime.date(2026, 11, 23))),
    Row("list of OrderedDicts", list[OrderedDict[str, int]], [{"a": "1"}], [{"a": 1}], [OrderedDict(a=1)]),
    Row("list of bare OrderedDicts", list[OrderedDict], [{"a": 1}], [{"a": 1}], [OrderedDict(a=1)]),
    Row("bare defaultdict", defaultdict, {"a": 1}, {"a": 1}, defaultdict(None, a=1)),
    Row("defaultdict", defaultdict[str, int], {"a": "1"}, {"a": 1}, defaultdict(int, a=1)),
    Row("defaultdict by int", defaultdict[int, list[UUID]], {"1": [ID]}, {1: [ID]}, defaultdict(list, {1: [UUID(ID)]})),
    # classes
    Row("NamedTuple", Point, {"x": "1"}, {"x": 1, "y": 0.5}, Point(1)),
    Row(
        "dataclass",
        Item,
        {"name": "pen", "count": "2", "colour": "BLUE", "tags": "[]"},
        {"name": "pen", "count": 2, "colour": "blue", "tags": []},
        Item("pen", 2, Colour.BLUE),
    ),
    Row(
        "nested dataclasses",
        Order,
        {"items": [{"name": "pen", "tags": []}], "due": "2026-11-23", "total": 1.5},
        {"items": [{"name": "pen", "tags": [], "count": 1, "colour": "red"}], "due": "2026-11-23", "total": "1.5"},
        Order(items=[Item("pen")], due=datetime.date(2026, 11, 23), total=Decimal("1.5")),
    ),
    Row("generic dataclass", Page[Point], {"items": [{"x": "1"}]}, {"items": [{"x": 1, "y": 0.5}], "next": None}, Page([Point(1)])),
    Row("attrs", Place, {"street": "Hill", "number": "7"}, {"street": "Hill", "number": 7, "extra": None}, Place("Hill", 7)),
    Row("TypedDict", Movie, '{"title": "M", "year": "1931"}', {"title": "M", "year": 1931}),
    Row("TypedDict not total", Patch, {"id": ID, "year": "1931"}, {"id": ID, "year": 1931}, {"id": UUID(ID), "year": 1931}),
    Row("inherited TypedDict", Review, {"title": "M", "year": 1931, "stars": "5"}, {"title": "M", "year": 1931, "stars": 5}),
    Row("generic TypedDict", Pair[int], {"left": "1", "right": 2}, {"left": 1, "right": 2}),
    # aliases and bounds
    Row("NewType", UserId, "7", 7),
    Row("TypeAliasType", Metres, "2.5", 2.5),
    Row("generic alias", Listing[int], ["1"], [1]),
    Row("bounds", Annotated[int, bounds.Ge(1), bounds.Lt(10)], "9", 9),
    Row("interval", Annotated[float, bounds.Interval(ge=0, le=1)], "0.5", 0.5),
    Row("length", Annotated[list[int], bounds.Len(1, 2)], ["1"], [1]),
    Row("Arg", Annotated[Decimal, Arg("The price.", minimum=0)], "1.50", "1.50", Decimal("1.50")),
    Row("bounded items", list[Annotated[str, bounds.MinLen(2)]], ["ab"], ["ab"]),
    # pydantic
    Row(
        "model",
        User,
        {"name": "Ada", "age": "36", "eMail": "a@example.org", "friends": '["Eve"]'},
        {"name": "Ada", "age": 36, "eMail": "a@example.org", "friends": ["Eve"]},
        User(name="Ada", age=36, eMail="a@example.org", friends=["Eve"]),
    ),
    Row(
        "nested models",
        Team,
        {"lead": {"name": "Ada", "friends": []}, "members": {}, "since": "2026-11-23"},
        {"lead": {"name": "Ada", "friends": [], "age": 18, "eMail": None}, "members": {}, "since": "2026-11-23"},
        Team(lead=User(name="Ada"), since=datetime.date(2026, 11, 23)),
    ),
    Row("model with validator", Even, {"number": "5"}, {"number": 5}, Even(number=4), {"number": 4}),
    Row("RootModel", Numbers, ["1", 2], [1, 2], Numbers([1, 2])),
    Row(
        "discriminated union",
        Owner,
        {"pet": {"kind": "Dog", "good": "true"}},
        {"pet": {"kind": "dog", "good": True}},
        Owner(pet=Dog(kind="dog", good=True)),
    ),
    Row(
        "strict model",
        Exactly,
        {"size": "5", "when": "2026-11-23T12:30:00Z"},
        {"size": 5, "when": "2026-11-23T12:30:00+00:00"},
        Exactly(size=5, when=NOON),
    ),
    Row(
        "computed field",
        Area,
        {"width": "2", "height": 3},
        {"width": 2, "height": 3},
        Area(width=2, height=3),
        {"width": 2, "height": 3, "size": 6},
    ),
    Row(
        "nested computed fields",
        dict[str, Town],
        {"a": {"areas": [{"width": "2", "height": 3}]}},
        {"a": {"areas": [{"width": 2, "height": 3}], "park": {"width": 1, "height": 1}}},
        {"a": Town(areas=[Area(width=2, height=3)], park=Area(width=1, height=1))},
        {
            "a": {
                "areas": [{"width": 2, "height": 3, "size": 6}],
                "park": {"width": 1, "height": 1, "size": 1},
                "firstArea": {"width": 2, "height": 3, "size": 6},
            }
        },
    ),
    Row(
        "RootModel of a model",
        Plot,
        {"width": "2", "height": 3},
        {"width": 2, "height": 3},
        Plot(Area(width=2, height=3)),
        {"width": 2, "height": 3, "size": 6},
    ),
    Row(
        "RootModels of a dataclass",
        list[Typed],
        [{"name": "pen", "tags": []}],
        [{"name": "pen", "tags": [], "count": 1, "colour": "red"}],
        [Typed(Item("pen"))],
    ),
    Row(
        "extra keys",
        Open,
        {"name": "a", "size": [1], "count": "2"},
        {"name": "a", "size": [1], "count": 2},
        Open(name="a", count=2, size=[1]),  # type: ignore[call-arg]
    ),
    Row(
        "RootModel with extra keys",
        list[Opened],
        [{"name": "a", "size": None}],
        [{"name": "a", "size": None, "count": 1}],
        [Opened(Open(name="a", size=None))],  # type: ignore[call-arg]
    ),
    Row("generic model", Box[int], {"content": "1", "more": ["2"]}, {"content": 1, "more": [2]}, Box[int](content=1, more=[2])),
    Row("list of models", list[Cat], [{"kind": "cat"}], [{"kind": "cat", "lives": 9}], [Cat(kind="cat")]),
    Row(
        "types of pydantic",
        Link,
        {"url": "https://example.org/", "others": ["https://example.org/a"], "seen": "2020-01-01", "size": "2"},
        {"url": "https://example.org/", "others": ["https://example.org/a"], "seen": "2020-01-01", "size": 2},
        Link(
            url=pydantic.AnyUrl("https://example.org/"),
            others=[pydantic.HttpUrl("https://example.org/a")],
            seen=datetime.date(2020, 1, 1),
            size=2,
        ),
    ),
    Row("pydantic dataclass", Checked, {"size": "2"}, {"size": 2, "name": "a"}, Checked(2)),
    # msgspec
    Row(
        "Struct",
        Stock,
        {"name": "pen", "count": "2", "prices": ["1.5"]},
        {"name": "pen", "count": 2, "prices": ["1.5"]},
        Stock("pen", 2, [Decimal("1.5")]),
    ),
    Row("renamed Struct", Renamed, {"firstName": "Ada"}, {"firstName": "Ada", "shoeSize": 40}, Renamed("Ada")),
    Row("tagged Structs", Get | Put, {"type": "put", "key": "a", "value": "1"}, {"type": "put", "key": "a", "value": 1}, Put(key="a", value=1)),
)  # fmt: skip


class Plain:
    """A class without annotated fields."""


REFUSED: Final = (
    Refused("class without fields", Plain, f"Plain is not supported; use {KNOWN}", "nothing says what to send"),
    Refused(
        "function", Callable[[int], int], f"Callable[[int], int] is not supported; use {KNOWN}", "JSON has no functions"
    ),
    Refused("memoryview", memoryview, "memoryview is not supported; use bytes", "bytes hold the same data"),
)
"""Annotations that are refused."""


def take_of(annotation: Any, seen: list[Any]) -> Any:
    """Return a tool that stores its argument and returns it."""

    def take(value: Any) -> Any:
        seen.append(value)
        return value

    take.__annotations__ = {"value": annotation, "return": annotation}
    return tool(take, group="table")
