"""Arguments of dataclasses, TypedDicts, attrs classes and Enums: their specs, accepted input and delivered instances."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import attrs
import pytest
from typing_extensions import TypedDict as OtherTypedDict

from neuroscript import (
    UNSET,
    Approval,
    ApprovalRequest,
    Arg,
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    ReturnError,
    SpecError,
    ToolPolicy,
    Toolset,
    spec_from_data,
    spec_to_data,
    tool,
)
from neuroscript.spec.annotations import KNOWN

Mode = Literal["lax", "strict"]


class Colour(enum.Enum):
    """Strings, one with an alias."""

    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # noqa: PIE796


class Word(enum.StrEnum):
    """Strings that are their members."""

    YES = "yes"


class Level(enum.IntEnum):
    """Integers that are their members."""

    LOW = 0
    HIGH = 1


class Ratio(enum.Enum):
    """Numbers."""

    HALF = 0.5


class Right(enum.Flag):
    """Names in a list."""

    READ = 1
    WRITE = 2


class Kind(TypedDict, total=False):
    """Optional keys, except one."""

    word: Required[Word]
    level: Level
    both: Annotated[NotRequired[int], Arg("Of both.", minimum=1)]


class More(Kind):
    """Required keys, in addition to the inherited ones."""

    colours: Sequence[Colour]
    count: NotRequired[Annotated[int, "How many."]]


class Other(OtherTypedDict):
    """The same with typing_extensions, which supports it on every Python."""

    a: int


@dataclass
class Size:
    """How large."""

    width: int
    height: int = 1
    area: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError
        self.area = self.width * self.height


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A dataclass with nested classes."""

    size: Size
    colour: Colour = Colour.BLUE
    sizes: list[Size] = field(default_factory=list)
    kind: Kind | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@attrs.frozen
class Shelf:
    """An attrs class that contains a dataclass, with field aliases."""

    _box: Box
    extra: Box | None = None
    level: Level = attrs.field(default=Level.HIGH, alias="grade")
    tags: list[Word] = attrs.Factory(lambda: [Word.YES])


SHELF = {"box": {"size": {"width": 2}, "colour": "red"}, "grade": 0, "tags": []}

DELIVERED: dict[str, tuple[Any, Any, Any]] = {
    "enum": (Colour, "red", Colour.RED),
    "enum of int": (Level, 1, Level.HIGH),
    "str enum": (Word, "yes", Word.YES),
    "enum of float": (Ratio, 0.5, Ratio.HALF),
    "list of enum": (list[Level], [0, 1], [Level.LOW, Level.HIGH]),
    "enum or none": (Colour | None, None, None),
    "dataclass": (Size, {"width": 3}, Size(3)),
    "list of dataclass": (Sequence[Size], [{"width": 3, "height": 2}], [Size(3, 2)]),
    "nested": (Box, {"size": {"width": 3}, "sizes": [{"width": 1}], "kind": {"word": "yes", "level": 0}},
               Box(size=Size(3), sizes=[Size(1)], kind={"word": Word.YES, "level": Level.LOW})),
    "attrs": (Shelf, SHELF, Shelf(Box(size=Size(2), colour=Colour.RED), None, Level.LOW, [])),
    "attrs and its defaults": (Shelf, {"box": {"size": {"width": 2}}}, Shelf(Box(size=Size(2)))),
    "typed dict": (Kind, {"word": "yes", "both": 1}, {"word": Word.YES, "both": 1}),
    "typed dict of another": (More, {"word": "yes", "colours": ["blue"]}, {"word": Word.YES, "colours": [Colour.BLUE]}),
    "list of typed dict": (list[Kind], [{"word": "yes"}, {"word": "yes", "level": 1}],
                           [{"word": Word.YES}, {"word": Word.YES, "level": Level.HIGH}]),
    "set of tuples": (set[tuple[int, str]], [[1, "a"]], {(1, "a")}),
    "frozenset of enum": (frozenset[Level], [0, 1], frozenset({Level.LOW, Level.HIGH})),
    "typed dict elsewhere": (Other, {"a": 1}, {"a": 1}),
}  # fmt: skip


def taking(annotation: Any, received: list[Any], default: Any = UNSET) -> Toolset:
    """Return a toolset with one tool that records its argument."""

    def take(value: Any = default) -> None:
        received.append(value)

    if default is UNSET:
        take.__defaults__ = ()
    take.__annotations__ = {"value": annotation, "return": None}
    return Toolset("g", (tool(take, group="g"),))


@pytest.mark.parametrize("mode", ["lax", "strict"])
@pytest.mark.parametrize("name", DELIVERED)
def test_instance_is_delivered(name: str, mode: Mode) -> None:
    """It is of the exact class at every level, for positional and named arguments."""
    annotation, given, expected = DELIVERED[name]
    received: list[Any] = []

    with Engine(toolsets=[taking(annotation, received)], plugins="none", mode=mode) as engine:
        engine.call("g.take", [given])
        engine.call_named("g.take", {"value": given})

    assert received == [expected, expected]
    assert [types_in(each) for each in received] == [types_in(expected)] * 2


def types_in(value: Any) -> Any:
    """Return the types of a value and of everything nested in it."""
    if isinstance(value, dict):
        return {name: types_in(each) for name, each in value.items()}
    if isinstance(value, list):
        return [types_in(each) for each in value]
    if attrs.has(type(value)):
        return type(value), types_in(attrs.asdict(value, recurse=False))
    return (type(value), types_in(vars(value))) if type(value) is Size else type(value)


@pytest.mark.parametrize("name", [name for name in DELIVERED if name not in ("enum of float", "enum or none")])
def test_json_text_gives_the_same_instance(name: str) -> None:
    """Models write arguments this way."""
    annotation, given, expected = DELIVERED[name]
    received: list[Any] = []

    with Engine(toolsets=[taking(annotation, received)], plugins="none") as engine:
        engine.call("g.take", [given if isinstance(given, str) else json.dumps(given)])

    assert received == [expected]


@pytest.mark.parametrize(
    ("annotation", "default", "stands"),
    [
        (Colour, Colour.BLUE, "blue"),
        (Colour | None, None, None),
        (list[Level], [Level.LOW], [0]),
        (Size, Size(4), {"width": 4, "height": 1}),
        (list[Size], [Size(4)], [{"width": 4, "height": 1}]),
        (Kind, {"word": Word.YES}, {"word": "yes"}),
        (Shelf, Shelf(Box(size=Size(2))), {"box": {"size": {"width": 2, "height": 1}, "colour": "blue", "sizes": [], "kind": None,
         "labels": {}}, "extra": None, "grade": 1, "tags": ["yes"]}),
    ],
    ids=["enum", "none", "list of enum", "dataclass", "list of dataclass", "typed dict", "attrs"],
)  # fmt: skip
def test_default_may_be_an_instance(annotation: Any, default: Any, stands: Any) -> None:
    """The spec shows it as a caller would write it, and each call receives a new instance."""
    received: list[Any] = []
    tools = taking(annotation, received, default)

    with Engine(toolsets=[tools], plugins="none") as engine:
        engine.call("g.take")
        engine.call("g.take")

    assert tools.tools[0].spec.args[0].default == stands
    assert received == [default, default]
    assert default is None or isinstance(default, enum.Enum) or received[0] is not received[1] is not default


def test_class_fields_become_keys() -> None:
    """Names, types, defaults, descriptions, bounds and which keys are optional are read."""
    (made,) = taking(More, []).tools

    assert [(key.name, key.type, key.required, key.choices, key.description, key.minimum) for key in made.spec.args[0].keys] == [
        ("word", "string", True, ("yes",), "", None),
        ("level", "int", False, (0, 1), "", None),
        ("both", "int", False, (), "Of both.", 1),
        ("colours", "slice_string", True, ("red", "blue"), "", None),
        ("count", "int", False, (), "How many.", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("annotation", "given", "text"),
    [
        (Colour, "RIDE", "g.take: value: expected string, one of 'red', 'blue', got another str"),
        (Colour, "reed", "g.take: value: expected string, one of 'red', 'blue', got another str (did you mean 'red'?)"),
        (Colour, Colour.RED, "g.take: value: expected string, one of 'red', 'blue', got Colour"),
        (Level, True, "g.take: value: expected int, one of 0, 1, got bool (a boolean is not a number)"),
        (list[Colour], ["red", "green"], "g.take: value[1]: expected string, one of 'red', 'blue', got another str"),
        (Box, {"size": {"height": 1}, "colour": "x"}, "g.take: value['size']['width']: expected int, got nothing; "
         "value['colour']: expected string, one of 'red', 'blue', got another str"),
        (Box, {"size": {"width": 1, "area": 2}}, "g.take: value['size']['area']: expected only width, height, got an unknown name of type"
         " int"),
        (Kind, {"both": 0, "word": "yes"}, "g.take: value['both']: expected int of at least 1, got int out of bounds"),
        (More, {"word": "yes"}, "g.take: value['colours']: expected list of string, each one of 'red', 'blue', got nothing"),
        (Size, {"width": -1}, "g.take: value: expected a value that Size accepts, got dict"),
    ],
)  # fmt: skip
def test_invalid_field_is_reported_with_its_path(annotation: Any, given: Any, text: str) -> None:
    """The errors equal those of explicit maps and choices."""
    received: list[Any] = []

    with Engine(toolsets=[taking(annotation, received)], plugins="none") as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call("g.take", [given])

    assert (str(caught.value), received) == (text, [])


def test_variadic_enum_members() -> None:
    """A variadic tool receives any number of members."""

    def mix(first: Colour, *others: Colour) -> list[str]:
        return [each.name for each in (first, *others)]

    with Engine(toolsets=[Toolset("g", (tool(mix, group="g"),))], plugins="none") as engine:
        assert engine.call("g.mix", ["red", "blue", "red"]) == ["RED", "BLUE", "RED"]
        assert engine.call_named("g.mix", {"first": "red", "others": ["blue"]}) == ["RED", "BLUE"]


def test_guards_see_plain_values() -> None:
    """Instances are created after all guards, so approvers see maps and plain values."""
    seen: list[Any] = []

    def look(request: ApprovalRequest) -> Approval:
        seen.append(request.arguments)
        return Approval.approve()

    def put(size: Size, colour: Colour) -> str:
        return f"{size.area} {colour.name}"

    made = tool(put, group="g", policy=ToolPolicy(requires_approval=True))
    with Engine(toolsets=[Toolset("g", (made,))], plugins="none", policy=ExecutionPolicy(approver=look)) as engine:
        assert engine.call("g.put", [{"width": "3"}, "red"]) == "3 RED"

    assert seen == [{"size": {"width": 3, "height": 1}, "colour": "red"}]


@dataclass
class Own:
    """Hold itself."""

    inner: Own | None = None


@dataclass
class Loop:
    """Hold itself by way of another class."""

    inner: Through


@dataclass
class Through:
    """Hold what holds it, in a list of maps."""

    loops: list[dict[str, Loop | None]]


@dataclass
class Init:
    """Have what no field keeps."""

    width: InitVar[int]


@dataclass
class Loose:
    """Say nothing of a part."""

    size: Size
    parts: dict[str, complex]


@attrs.define
class Bare:
    """Say nothing of all parts."""

    width = attrs.field()


class Empty(enum.Enum):
    """Have no member."""


class Huge(enum.Enum):
    """Be larger than 64 bits."""

    ALL = 2**64


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Own, "take: value: field inner: Own contains itself (Own -> Own); use dict[str, Any] there"),
        (Loop, "take: value: field inner: field loops: Loop contains itself (Loop -> Through -> Loop); use dict[str, Any] there"),
        (Init, "take: value: field width: InitVar is not supported; use a field"),
        (Loose, "take: value: field parts: complex is not supported; use list[float]"),
        (Bare, f"take: value: field width: has no annotation; use {KNOWN}"),
        (Empty, "take: value: Empty has no members"),
        (set[list[int]], "take: value: the items of a set must be hashable; use list"),
        (frozenset[dict[str, int]], "take: value: the items of a frozenset must be hashable; use list"),
        (set[dict[str, Any]], "take: value: the items of a set must be hashable; use list"),
        (set[Size], "take: value: the items of a set must be hashable; use list"),
        (set[tuple[int, list[int]]], "take: value: the items of a set must be hashable; use list"),
        (set[int | Kind], "take: value: the items of a set must be hashable; use list"),
        (Huge, "take: value: each choice must be of type int"),
        (dict[Size, int], f"take: value: dict[{__name__}.Size, int] is not supported; use str, int, float, bool, an Enum, a Literal "
         "or a class with a string format as key"),
    ],
)  # fmt: skip
def test_unsupported_class_is_refused(annotation: Any, text: str) -> None:
    """The error gives the field and advice."""
    with pytest.raises(SpecError) as caught:
        taking(annotation, [])

    assert text == str(caught.value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ArgSpec("a", "int", cls=Colour), "argument a: the values of Colour are of type string, which does not fit int"),
        (lambda: ArgSpec("a", "map", cls=Size, default=Own()), "argument a: the default does not fit: expected map with keys "
         "width, height (optional), got Own"),
        (lambda: ArgSpec("a", "map", cls=Colour), "argument a: the values of Colour are of type string, which does not fit map"),
        (lambda: ArgSpec("a", "any", cls=Colour), "argument a: the values of Colour are of type string, which does not fit any"),
        (lambda: ArgSpec("a", "string", cls=Colour, choices=("green",)), "argument a: choices are derived from cls; pass only members of it"),
        (lambda: ArgSpec("a", "string", cls=Colour, choices=5), "argument a: choices must be a list or tuple, not int"),
        (lambda: ArgSpec("a", "string", cls=Colour, keys=(ArgSpec("k", "int"),)), "argument a: keys and extra_keys are not valid for an Enum"
         ""),
    ],
)  # fmt: skip
def test_enum_in_a_spec_must_fit_its_type(make: Any, text: str) -> None:
    """The rule is the same as for choices."""
    with pytest.raises(SpecError) as caught:
        make()

    assert text == str(caught.value)


def test_choices_may_select_members_of_an_enum() -> None:
    """As an annotation ``Literal[Colour.RED]`` does, in their plain form or as members."""
    arg = ArgSpec("a", ArgType.STRING, cls=Colour, choices=(Colour.RED,))

    assert arg == ArgSpec("a", ArgType.STRING, cls=Colour, choices=("red",))
    assert arg.choices == ("red",)


def test_explicit_spec_may_use_an_enum() -> None:
    """The values of its members are the choices, and plain data lists them."""
    tools = Toolset("g")
    received: list[Any] = []
    arg = ArgSpec("a", "slice_string", cls=Colour, default=[Colour.RED])  # type: ignore[arg-type]
    made = taking(Colour, received).tools[0]
    spec = attrs.evolve(made.spec, args=(arg,))
    tools.add(spec, lambda rt, a: received.append(a))

    with Engine(toolsets=[tools], plugins="none") as engine:
        engine.call("g.take")
        engine.call("g.take", [["blue"]])

    assert received == [[Colour.RED], [Colour.BLUE]]
    assert spec_from_data(spec_to_data(spec)).args[0] == attrs.evolve(arg, cls=None)


def returning(annotation: Any, value: Any) -> Any:
    """Return the result of a call whose function has this result annotation and returns this value."""

    def find() -> Any:
        return value

    find.__annotations__ = {"return": annotation}
    with Engine(toolsets=[Toolset("g", (tool(find, group="g"),))], plugins="none") as engine:
        return engine.call("g.find")


@pytest.mark.parametrize(
    ("annotation", "returned", "result"),
    [
        (Colour, "red", "red"),
        (Colour, Colour.RED, "red"),
        (list[Colour], ["red", Colour.BLUE], ["red", "blue"]),
        (Right, ["READ"], ["READ"]),
        (Right, Right.READ | Right.WRITE, ["READ", "WRITE"]),
        (Right, Right(0), []),
        (list[Right], [Right.READ, ["WRITE"]], [["READ"], ["WRITE"]]),
        (Size, {"width": 1}, {"width": 1, "height": 1}),
        (list[Size], [Size(1), {"width": 2}], [{"width": 1, "height": 1}, {"width": 2, "height": 1}]),
        (tuple[int, Colour], (1, Colour.RED), [1, "red"]),
        (tuple[int, Colour], [1, "red"], [1, "red"]),
        (set[Colour], {Colour.RED}, ["red"]),
        (OrderedDict[str, Colour], {"a": "red"}, {"a": "red"}),
        (dict[Colour, int], {"red": 1, Colour.BLUE: 2}, {"red": 1, "blue": 2}),
        (Kind, {"word": "yes"}, {"word": "yes"}),
        (int | Colour, 3, 3),
        (int | Colour, "red", "red"),
        (bytearray, b"a", b"a"),
    ],
    ids=str,
)  # fmt: skip
def test_result_may_be_plain_data(annotation: Any, returned: Any, result: Any) -> None:
    """A function may return the exact value instead of an instance, at any depth."""
    assert result == returning(annotation, returned)


@pytest.mark.parametrize(
    ("annotation", "returned", "text"),
    [
        (Colour, "green", "result: expected string, one of 'red', 'blue', got another str"),
        (Colour, 5, "result: expected string, one of 'red', 'blue', got int"),
        (Colour, None, "result: expected string, one of 'red', 'blue', got None"),
        (Colour, UNSET, "result: expected string, one of 'red', 'blue', got Unset"),
        (list[Colour], "red", "result: expected list of string, each one of 'red', 'blue', got str"),
        (Right, "READ", "result: expected list of unique string, each one of 'READ', 'WRITE', got str"),
        (Size, 5, "result: expected map with keys width, height (optional), got int"),
        (Box, Box(size=5), "result['size']: expected map with keys width, height (optional), got int"),  # type: ignore[arg-type]
        (list[Size], "wide", "result: expected list of map, each with keys width, height (optional), got str"),
        (tuple[int, Colour], [1], "result: expected list of 2 items (int, 'red' or 'blue'), got 1 item"),
        (tuple[int, Colour], (1, "red", 3), "result: expected list of 2 items (int, 'red' or 'blue'), got 3 items"),
        (tuple[int, Colour], "ab", "result: expected list of 2 items (int, 'red' or 'blue'), got str"),
        (OrderedDict[str, Colour], 5, "result: expected map of 'red' or 'blue', got int"),
        (dict[str, Colour], 5, "result: expected map of 'red' or 'blue', got int"),
        (Kind, 5, "result: expected map with keys word, level (optional), both (optional), got int"),
    ],
    ids=str,
)  # fmt: skip
def test_result_of_another_type_is_refused(annotation: Any, returned: Any, text: str) -> None:
    """Only instances of the declared classes are converted, so the check reports anything else at its place."""
    with pytest.raises(ReturnError) as caught:
        returning(annotation, returned)

    error = caught.value
    assert (f"g.find: {text}", "return.type", "never") == (str(error), error.code, error.retry)


def test_call_with_instances_loads_no_converter() -> None:
    """The values are instances already, so a fresh process needs neither cattrs nor json."""
    code = (
        "import sys, enum\nfrom dataclasses import dataclass\nfrom neuroscript import Engine, Toolset, tool\n"
        "class Colour(enum.Enum): RED = 'red'\n"
        "@dataclass\nclass Box: colour: Colour\n"
        "def show(box: Box) -> str: return box.colour.name\n"
        "engine = Engine(toolsets=[Toolset('g', (tool(show, group='g'),))], plugins='none')\n"
        "assert engine.call('g.show', [{'colour': 'red'}]) == 'RED'\n"
        "print([name for name in ('cattrs', 'docstring_parser', 'neuroscript.tools.from_code') if name in sys.modules])"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
