"""What ``Annotated`` says beside a type: in words of our own, and in those of well-kept packages."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MinLen, MultipleOf, Predicate
from typing_extensions import Doc

from neuroscript import Arg, ArgSpec, ArgumentError, Engine, SpecError, ToolCall, Toolset, tool


def said(annotation: Any) -> ArgSpec:
    """Return the argument that an annotation makes."""

    def take(value: Any) -> None:
        """Take it.

        Args:
            value: By the docstring.
        """

    take.__annotations__ = {"value": annotation, "return": None}
    return tool(take, group="g").spec.args[0]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, {"description": "By the docstring."}),
        (Annotated[int, "Nearer."], {"description": "Nearer."}),
        (Annotated[int, Arg(minimum=1)], {"description": "By the docstring.", "minimum": 1}),
        (Annotated[int | None, Arg("It.", minimum=1, maximum=2)], {"description": "It.", "minimum": 1, "maximum": 2, "nullable": True}),
        (Annotated[int, Arg(minimum=1)] | None, {"description": "By the docstring.", "minimum": 1, "nullable": True}),
        (Annotated[str, Arg("It.", min_length=1, max_length=9, secret=True)], {"description": "It.", "min_length": 1, "max_length": 9, "secret": True}),
        (Annotated[Annotated[int, "Inner.", Arg(minimum=1)], Arg(maximum=5), "Outer."], {"description": "Outer.", "minimum": 1, "maximum": 5}),
        (Annotated[list[Annotated[float, Arg(minimum=0)]], Arg(max_length=3)], {"description": "By the docstring.", "minimum": 0, "max_length": 3}),
        (Annotated[int, Ge(1), Le(9)], {"description": "By the docstring.", "minimum": 1, "maximum": 9}),
        (Annotated[int, Gt(1), Lt(9)], {"description": "By the docstring.", "minimum": 2, "maximum": 8}),
        (Annotated[float, Interval(ge=0.5, le=1.5)], {"description": "By the docstring.", "minimum": 0.5, "maximum": 1.5}),
        (Annotated[float, Gt(0)], {"description": "By the docstring.", "exclusive_minimum": 0}),
        (Annotated[float, Interval(gt=0, le=1)], {"description": "By the docstring.", "exclusive_minimum": 0, "maximum": 1}),
        (Annotated[float, Ge(1), Gt(0)], {"description": "By the docstring.", "minimum": 1}),
        (list[Annotated[float, Lt(1.5)]], {"description": "By the docstring.", "exclusive_maximum": 1.5}),
        (list[Annotated[int, Gt(0)]], {"description": "By the docstring.", "minimum": 1}),
        (Annotated[bytes, Len(2, 4)], {"description": "By the docstring.", "min_length": 2, "max_length": 4}),
        (Annotated[list[str], MinLen(1)], {"description": "By the docstring.", "min_length": 1}),
        (Annotated[int, Doc("By Doc.")], {"description": "By Doc."}),
        (Annotated[int, ..., 5, int], {"description": "By the docstring."}),
    ],
    ids=str,
)  # fmt: skip
def test_a_mark_says_something_of_the_argument(annotation: Any, expected: dict[str, Any]) -> None:
    """Everything else is unchanged; unknown metadata may belong to other libraries."""
    arg = said(annotation)

    assert arg == ArgSpec("value", arg.type, **expected)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("0.1", "0.1"),
        ("-5.00", "-5"),
        ("1E+18", "1000000000000000000"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1E+19", "1e+19"),
        ("1E+300", "1e+300"),
    ],
)
def test_decimal_bound_becomes_a_number(bound: str, expected: str) -> None:
    """It is an int if an argument can be that int, and otherwise a float, which is never written in a hundred digits."""
    assert expected == repr(said(Annotated[float, Ge(Decimal(bound))]).minimum)


@pytest.mark.parametrize("bound", ["NaN", "1E+400", "0.12345678901234567890123", "12345678901234567890"])
def test_decimal_bound_without_an_exact_number_is_refused(bound: str) -> None:
    """A rounded bound would accept or refuse other values than the author wrote."""
    with pytest.raises(SpecError) as caught:
        said(Annotated[float, Ge(Decimal(bound))])

    assert "take: value: minimum must be a number, or None, not Decimal" == str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Annotated[float, Gt(0), Lt(0)], "no float is within the bounds"),
        (Annotated[int, MultipleOf(3)], "MultipleOf is not supported; remove it and check the value in the function"),
        (Annotated[str, Predicate(str.islower)], "Predicate is not supported; remove it and check the value in the function"),
        (Annotated[str, Arg(minimum=1)], "minimum and maximum are not valid for string"),
        (list[Annotated[str, Arg(secret=True)]], "items: secret is valid for arguments and keys only"),
    ],
    ids=str,
)  # fmt: skip
def test_a_bound_that_nobody_would_keep_is_refused(annotation: Any, text: str) -> None:
    """It is worse than none."""
    with pytest.raises(SpecError) as caught:
        said(annotation)

    assert f"take: value: {text}" == str(caught.value)


def test_the_marks_of_pydantic_are_read_too() -> None:
    """Where it is installed; a pattern is rejected."""
    pydantic = pytest.importorskip("pydantic")
    field = pydantic.Field(description="By Field.", ge=1, lt=5)

    assert said(Annotated[int, field]) == ArgSpec("value", "int", description="By Field.", minimum=1, maximum=4)  # type: ignore[arg-type]
    for mark in (pydantic.Field(pattern="a+"), pydantic.StringConstraints(pattern="a+")):
        with pytest.raises(SpecError, match="is not supported; remove it and check the value in the function"):
            said(Annotated[str, mark])


def test_bounds_and_secrets_hold_in_a_call() -> None:
    """As those of a spec that is written out."""
    tools = Toolset("g")

    @tools.tool()
    def enter(
        key: Annotated[str, Arg("The key.", secret=True, min_length=6)], tries: Annotated[int, Ge(1)] = 1
    ) -> Annotated[str, "What was said."]:
        return f"{key} {tries}"

    with Engine(toolsets=[tools], plugins="none") as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call("g.enter", ["short", "0"])
        assert engine.execute(ToolCall("g.enter", ("long enough", "2"))).value == "[secret] 2"

    assert str(caught.value) == (
        "g.enter: key: expected string of at least 6 characters, got 5 characters; "
        "tries: expected int of at least 1, got int out of bounds"
    )
    assert tools.tools[0].spec.return_help == "What was said."
