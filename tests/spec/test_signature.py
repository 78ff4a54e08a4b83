"""Specs read from annotated functions, and the errors for functions that cannot be read."""

from __future__ import annotations

import functools
import typing
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, Flag
from pathlib import Path
from typing import Annotated, Any, AnyStr, Literal, NewType, Optional

import attrs
import pytest
from docstring_parser import parse as parse_by_library
from typing_extensions import TypeAliasType

from neuroscript import Arg, ArgType, Engine, RegistryError, Runtime, SpecError, ToolPolicy, Toolset, ToolSpec, tool
from neuroscript.spec.annotations import KNOWN, UnsupportedAnnotation, hint_of
from neuroscript.spec.signature import parse_docstring


@attrs.frozen
class Point:
    """A place on a sheet."""

    x: float
    y: float = 0.0


OLD_LIST = vars(typing)["List"]
"""As it was written before Python 3.9."""


class Mixed(Enum):
    """Values of two types."""

    A = "a"
    B = 1


class Plain:
    """No class with fields."""


KEY = "is not supported; use str, int, float, bool, an Enum, a Literal or a class with a string format as key"


class Rights(Flag):
    """Values that combine."""

    READ = 1
    WRITE = 2


@pytest.mark.parametrize(
    ("annotation", "kind", "nullable", "choices"),
    [
        (str, "string", False, ()),
        (int, "int", False, ()),
        (float, "float", False, ()),
        (bool, "bool", False, ()),
        (bytes, "blob", False, ()),
        (Any, "any", False, ()),
        (None, "nil", False, ()),
        (array, "embedding", False, ()),
        (list[str], "slice_string", False, ()),
        (list[int], "slice_int", False, ()),
        (list[float], "slice_float", False, ()),
        (list[bool], "slice_bool", False, ()),
        (list[Any], "slice_any", False, ()),
        (list[dict[str, Any]], "slice_map", False, ()),
        (list[Literal["a", "b"]], "slice_string", False, ("a", "b")),
        (list[Annotated[Any, "It."]], "slice_any", False, ()),
        (list[Mapping[str, Any]], "slice_map", False, ()),
        (Mapping[str, str], "map_string_string", False, ()),
        (Sequence[Point], "slice_map", False, ()),
        (OLD_LIST[int], "slice_int", False, ()),
        (NewType("Metres", float), "float", False, ()),
        (list[NewType("Id", str)], "slice_string", False, ()),  # type: ignore[misc]
        (TypeAliasType("Ids", list[int]), "slice_int", False, ()),
        (dict[str, Any], "map", False, ()),
        (dict[str, str], "map_string_string", False, ()),
        (dict[str, int], "map_string_int", False, ()),
        (dict[str, float], "map_string_float", False, ()),
        (dict[str, bool], "map_string_bool", False, ()),
        (dict[Any, Any], "map_any_any", False, ()),
        (int | None, "int", True, ()),
        (Optional[list[str]], "slice_string", True, ()),
        (Literal["r", "w"], "string", False, ("r", "w")),
        (Literal[1, 2, None], "int", True, (1, 2)),
        (Literal[True], "bool", False, (True,)),
        (Point, "map", False, ()),
        (Point | None, "map", True, ()),
        (list[Point], "slice_map", False, ()),
        (list, "slice_any", False, ()),
        (tuple, "slice_any", False, ()),
        (set, "slice_any", False, ()),
        (dict, "map", False, ()),
        (OLD_LIST, "slice_any", False, ()),
        (tuple[int, ...], "slice_int", False, ()),
        (tuple[int, str], "slice_any", False, ()),
        (set[str], "slice_string", False, ()),
        (Iterable[str], "slice_string", False, ()),
        (Path, "string", False, ()),
        (Path | None, "string", True, ()),
        (Sequence[list[int]], "slice_any", False, ()),
        (list[int | None], "slice_any", False, ()),
        (list[Annotated[str, Arg(min_length=1)]], "slice_any", False, ()),
        (Mixed, "any", False, ()),
        (Rights, "slice_string", False, ("READ", "WRITE")),
        (dict[int, str], "map_any_any", False, ()),
        (dict[str, list[int]], "map", False, ()),
        (int | str | None, "any", True, ()),
        (Literal["a", 1], "any", False, ()),
    ],
)
def test_annotation_maps_to_an_argtype(annotation: Any, kind: str, nullable: bool, choices: tuple[Any, ...]) -> None:
    """Every annotation that the contract lists is supported."""
    hint = hint_of(annotation)

    assert (kind, nullable, choices) == (hint.type.value, hint.nullable, hint.choices)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (complex, "complex is not supported; use list[float]"),
        (memoryview, "memoryview is not supported; use bytes"),
        (list[complex | None], "complex is not supported; use list[float]"),
        (type[int], f"type[int] is not supported; use {KNOWN}"),
        (Callable[[int], str], f"Callable[[int], str] is not supported; use {KNOWN}"),
        (Plain, f"Plain is not supported; use {KNOWN}"),
        (AnyStr, "~AnyStr is not supported; use a concrete type"),
        (list[AnyStr], "~AnyStr is not supported; use a concrete type"),  # type: ignore[valid-type]
        (Literal[b"a"], "Literal[b'a'] must hold strings, ints, booleans or Enum members"),
        (Literal[Mixed.A, "x"], "Literal[<Mixed.A: 'a'>, 'x'] must hold members of one Enum"),
        (tuple[()], "tuple[()] is not supported; leave the argument out"),
        (dict[bytes, int], f"dict[bytes, int] {KEY}"),
        (dict[list[int], int], f"dict[list[int], int] {KEY}"),
        (dict[int | None, int], f"dict[int | None, int] {KEY}"),
        (dict[str | int, int], f"dict[str | int, int] {KEY}"),
        (dict[Any, int], f"dict[Any, int] {KEY}"),
    ],
)  # fmt: skip
def test_unsupported_annotation_is_refused_with_advice(annotation: Any, text: str) -> None:
    """No annotation silently becomes ``any``."""
    with pytest.raises(UnsupportedAnnotation) as caught:
        hint_of(annotation)

    assert text == str(caught.value)


def test_function_gives_its_whole_spec() -> None:
    """Names, types, defaults, descriptions, the result and errors are read."""

    def send(rt: Runtime, to: str, copies: int = 1, *notes: str) -> bool | None:
        """Send a letter
        to a friend.

        More is said here, which is not part of it.

        Args:
            to: Where it goes,
                with the country.
            copies (int): How many: one each.
            *notes: What is written on them.

        Returns:
            Whether it was sent,
            None if unknown.

        Raises:
            ToolFailed: post.closed.
        """
        return len(notes) > copies

    made = tool(send, group="post", category="mail", when_to_use="Always.")

    assert made.spec.full_name == "post.send"
    assert made.spec.description == "Send a letter to a friend."
    assert [(arg.name, arg.type, arg.required, arg.description) for arg in made.spec.args] == [
        ("to", ArgType.STRING, True, "Where it goes, with the country."),
        ("copies", ArgType.INT, False, "How many: one each."),
        ("notes", ArgType.STRING, False, "What is written on them."),
    ]
    assert made.spec.args[1].default == 1
    assert (made.spec.return_type, made.spec.return_nullable, made.spec.variadic) == (ArgType.BOOL, True, True)
    assert made.spec.return_help == "Whether it was sent, None if unknown."
    assert made.spec.error_conditions == "ToolFailed: post.closed."
    assert (made.spec.category, made.spec.when_to_use) == ("mail", "Always.")
    assert made.func is send


def test_function_without_rt_is_called_without_it() -> None:
    """This covers plain and coroutine functions."""
    tools = Toolset("g")

    @tools.tool()
    def twice(n: int) -> int:
        return 2 * n

    @tools.tool()
    async def thrice(n: int) -> int:
        return 3 * n

    with Engine(toolsets=[tools], plugins="none") as engine:
        assert [engine.call("g.twice", ["4"]), engine.call("g.thrice", ["4"])] == [8, 12]
    assert twice(1) == 2, "the decorator leaves the function as it is"


def test_class_annotation_is_delivered_as_an_instance() -> None:
    """The spec lists its fields as keys."""

    def far(p: Point, others: list[Point]) -> float:
        return p.x + sum(other.y for other in others)

    made = tool(far, group="g")
    tools = Toolset("g", (made,))

    assert [key.name for key in made.spec.args[0].keys] == ["x", "y"]
    with Engine(toolsets=[tools], plugins="none") as engine:
        assert engine.call("g.far", ({"x": 1}, '[{"x": 0, "y": "2"}]')) == 3.0


def unannotated(a, b: int = 1):  # type: ignore[no-untyped-def]
    """Lack annotations."""


def keyword(a: int, *, b: int, **c: int) -> int:
    """Ask for names."""
    return a


def misdescribed(a: int) -> int:
    """Describe another.

    Args:
        b: Not there.
    """
    return a


def bad_default(a: int = "x") -> int:  # type: ignore[assignment]
    """Have a default of another type."""
    return a


def unknown_name(a: Nowhere) -> int:  # type: ignore[name-defined]
    """Name what is not there."""
    return 1


def unknown_result(a: int) -> complex:
    """Return anything."""
    return a


@pytest.mark.parametrize(
    ("func", "problems"),
    [
        (unannotated, [f"a: has no annotation; use {KNOWN}",
                       "the result has no annotation; use -> None if it returns nothing"]),
        (keyword, ["c: arbitrary keyword arguments are not supported; declare each parameter, or one of type dict[str, T]"]),
        (misdescribed, ["the docstring describes b, which is not a parameter"]),
        (bad_default, ["a: the default does not fit: expected int, got str (a string must be a decimal integer, such as 42)"]),
        (unknown_name, ["its annotations cannot be evaluated (NameError: name 'Nowhere' is not defined)"]),
        (unknown_result, ["the result: complex is not supported; use list[float]"]),
        (functools.partial(keyword), None),
        (len, None),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)  # fmt: skip
def test_unreadable_function_is_a_spec_error(func: Any, problems: list[str] | None) -> None:
    """The error gives every problem at once, with advice."""
    with pytest.raises(SpecError) as caught:
        tool(func, group="g")

    if problems is not None:
        assert problems == list(caught.value.problems)


DOCSTRINGS = {
    "google": "Do it.\n\nArgs:\n    a: The first.\n    b (int): The second,\n        on two lines.\n\nReturns:\n    What came of it.",
    "empty": "",
    "one line": "Do it.",
    "no sections": "Do it.\n\nAnd more: of that\nkind.",
    "other sections": "Do it.\n\nNote:\n    a: not an argument.\n\nArgs:\n    a: The first.",
}


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_google_docstrings_match_docstring_parser(name: str) -> None:
    """docstring-parser is the oracle for the built-in reader."""
    text = DOCSTRINGS[name]
    library = parse_by_library(text)

    described = parse_docstring(text)

    assert described.summary == (library.short_description or "")
    assert described.args == {each.arg_name: " ".join(each.description.split()) for each in library.params}
    assert described.returns == ((library.returns.description if library.returns else "") or "")


def test_sentence_before_args_hides_no_argument() -> None:
    """docstring-parser finds no arguments there."""
    described = parse_docstring("Do it.\n\nArgs:\n    This is what it takes.\n    a: The first.")

    assert described.args == {"a": "The first."}


@pytest.mark.parametrize(
    "text",
    [
        "Do it.\n\n:param a: The first.\n:returns: What came of it.",
        "Do it.\n\nParameters\n----------\na : int\n    The first.\n\nReturns\n-------\nint\n    What came of it.",
    ],
    ids=["sphinx", "numpy"],
)
def test_other_docstring_styles_use_the_library(text: str) -> None:
    """The ``functions`` extra is installed in the tests."""
    described = parse_docstring(text)

    assert (described.summary, described.args, described.returns) == ("Do it.", {"a": "The first."}, "What came of it.")


def test_toolset_refuses_duplicate_names() -> None:
    """The error gives the duplicate name."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g"), lambda rt: None)

    with pytest.raises(RegistryError) as caught:
        tools.add(ToolSpec("T", "tool.g"), lambda rt: None)

    assert "toolset g has two tools called g.t" == str(caught.value)
    assert (len(tools), [each.name for each in tools], repr(tools)) == (1, ["g.t"], "Toolset('g', 1 tools)")


def test_decorator_sets_name_group_and_policy() -> None:
    tools = Toolset("g")

    @tools.tool(name="list", group="other.place", policy=ToolPolicy(effects=("clock",)))
    def listing() -> list[str]:
        return []

    (made,) = tools.tools
    assert (made.name, made.policy.effects) == ("other.place.list", ("clock",))


@pytest.mark.parametrize(
    ("text", "summary", "args", "returns", "raises"),
    [
        ("Do\nit.\n\nMore.\n\n:param int a: The\n  first.\n:param b: Two.\n:type b: str\n:rtype: int\n:return: What came.\n"
         ":raises ValueError: never.", "Do it.", {"a": "The first.", "b": "Two."}, "What came.", "never."),
        ("Do\nit.\n\nMore.\n\nParameters\n----------\na, b : int\n    Both.\n*c : str\n    The rest,\n    all.\n\n"
         "Other Parameters\n----------------\nd : int\n    Rare.\n\nYields\n------\nint\n    Each.\n\nRaises\n------\nValueError\n"
         "    never.\n\nAttributes\n----------\nx : int\n    None of them.", "Do it.",
         {"a": "Both.", "b": "Both.", "c": "The rest, all.", "d": "Rare."}, "Each.", "never."),
        ("Do it.\n\nArgs:\n    a: One.\n\nKeyword Args:\n    b: Two.\n\nSee Also:\n    c: no argument.\n\nTodo:\n    d: neither.",
         "Do it.", {"a": "One.", "b": "Two."}, "", ""),
        ("Do it.\n\nArgs:\n    a: One.\n\nWhat stands here: is not a part of it.\n\nReturns:\n    All.\n\nNor this.", "Do it.",
         {"a": "One."}, "All.", ""),
        ("Do it\nas follows:\n\nReturn:\n    One.\n\nRaise:\n    E: when.", "Do it as follows:", {}, "One.", "E: when."),
        ("Do it.\n\nArgs:\na: One.\nb: Two.", "Do it.", {"a": "One.", "b": "Two."}, "", ""),
    ],
    ids=["sphinx", "numpy", "google sections", "google dedented", "google singular", "google flat"],
)  # fmt: skip
def test_each_docstring_style_is_read_to_its_end(
    text: str, summary: str, args: dict[str, str], returns: str, raises: str
) -> None:
    """No section absorbs the next one."""
    described = parse_docstring(text)

    assert (described.summary, described.args) == (summary, args)
    assert (described.returns, described.raises) == (returns, raises)


def test_broken_docstring_is_refused() -> None:
    """The error says what is missing."""

    def do(a: int) -> None:
        """Do it.

        :param: It.
        """

    with pytest.raises(SpecError) as caught:
        tool(do, group="g")

    assert str(caught.value) == "do: its docstring is invalid; write a name in each :param name:"
