"""Lists: take them apart, put them together, look into them; no list of a caller is ever changed.

Source: upstream ``pkg/tool/list``; numbers are compared by their value, and a truth value is no number.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import Example, ToolFailed, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("list")


@toolset.tool(
    policy=PURE,
    when_to_use="For one more element at the end; list.prepend puts it at the beginning.",
    examples=(
        Example((["a", "b"], "c"), ["a", "b", "c"]),
        Example(("[1]", None), [1, None], note="a list may come as JSON text, and None is an element like others"),
        Example((["a"],), error="arg.missing"),
    ),
)
def append(list: list[Any], element: Any | None) -> list[Any]:
    """Put an element behind the last one of a list.

    Args:
        list: The list.
        element: What is added, as one element, even if it is a list.

    Returns:
        A new list with the element at its end.
    """
    return [*list, element]


@toolset.tool(
    name="appendinplace",
    policy=PURE,
    when_to_use="For scripts that know this name from upstream; list.append does the same.",
    examples=(
        Example((["a", "b"], "c"), ["a", "b", "c"]),
        Example(([], [1]), [[1]]),
        Example(("a", "b"), error="coercion.type"),
    ),
)
def append_in_place(list: list[Any], element: Any | None) -> list[Any]:
    """Put an element behind the last one of a list, as list.append does.

    The engine hands each tool its own copy of a list, so the list of the caller stays as it is here too.

    Args:
        list: The list.
        element: What is added, as one element.

    Returns:
        A new list with the element at its end; the list that was given has not changed.
    """
    return [*list, element]


@toolset.tool(
    policy=PURE,
    when_to_use="For one more element at the beginning; list.append puts it at the end.",
    examples=(
        Example((["b", "c"], "a"), ["a", "b", "c"]),
        Example(([], 1), [1]),
        Example(({"a": 1}, 1), error="coercion.type"),
    ),
)
def prepend(list: list[Any], element: Any | None) -> list[Any]:
    """Put an element before the first one of a list.

    Args:
        list: The list.
        element: What is added, as one element.

    Returns:
        A new list with the element at its beginning.
    """
    return [element, *list]


@toolset.tool(
    policy=PURE,
    when_to_use="For one element by its place; list.head is plainer for the first, shape.select goes deeper.",
    examples=(
        Example((["a", "b"], 1), "b"),
        Example((["a", "b"], -1, "none"), "none", note="nothing stands below 0"),
        Example((["a"], 2), None),
        Example((["a"], "first"), error="coercion.format"),
    ),
)
def get(list: list[Any], index: int, default: Any | None = None) -> Any | None:
    """Give the element at a place of a list, or a default where there is none.

    Args:
        list: The list.
        index: The place, counted from 0; below 0 there is none.
        default: What is given where the list has no such place; None unless it is said.

    Returns:
        The element, or the default.
    """
    return list[index] if 0 <= index < len(list) else default


@toolset.tool(
    policy=PURE,
    when_to_use="For the first element; list.get gives one at any place, list.rest all the others.",
    examples=(
        Example((["a", "b"],), "a"),
        Example(([],), None),
        Example((1,), error="coercion.type"),
    ),
)
def head(list: list[Any]) -> Any | None:
    """Give the first element of a list.

    Args:
        list: The list.

    Returns:
        The first element; None where the list is empty.
    """
    return list[0] if list else None


@toolset.tool(
    policy=PURE,
    when_to_use="For all but the first element; list.slice gives any part, list.tail a number of last ones.",
    examples=(
        Example((["a", "b", "c"],), ["b", "c"]),
        Example(([],), []),
        Example(("a, b",), error="coercion.type"),
    ),
)
def rest(list: list[Any]) -> list[Any]:
    """Give all elements of a list but the first.

    Args:
        list: The list.

    Returns:
        A new list without the first element; an empty one where there was no other.
    """
    return list[1:]


@toolset.tool(
    policy=PURE,
    when_to_use="For the last elements of a list; list.slice gives a part that is counted from the beginning.",
    examples=(
        Example((["a", "b", "c"], 2), ["b", "c"]),
        Example((["a", "b"], 5), ["a", "b"]),
        Example((["a", "b"], -1), []),
        Example((["a"], 1.5), error="coercion.fraction"),
    ),
)
def tail(list: list[Any], count: int) -> list[Any]:
    """Give some of the last elements of a list.

    Args:
        list: The list.
        count: How many elements; all of them where the list has fewer, none at 0 and below.

    Returns:
        A new list of the last elements, in their order.
    """
    return list[-count:] if count > 0 else []


@toolset.tool(
    name="slice",
    policy=PURE,
    when_to_use="For a part of a list by its places; list.tail counts from the end, list.get gives one element.",
    examples=(
        Example((["a", "b", "c", "d"], 1, 3), ["b", "c"]),
        Example((["a", "b"], -5, 5), ["a", "b"], note="places outside the list mean its ends"),
        Example((["a", "b"], 1, 0), []),
        Example((["a"], 0), error="arg.missing"),
    ),
)
def part(list: list[Any], start: int, end: int) -> list[Any]:
    """Give the part of a list between two places.

    Args:
        list: The list.
        start: The place of the first element, counted from 0; below 0 means 0.
        end: The place behind the last element; beyond the list means its end.

    Returns:
        A new list of the elements from start up to but without end; an empty one where end is not above start.
    """
    return list[max(start, 0) : max(end, 0)]


@toolset.tool(
    policy=PURE,
    when_to_use="For the same elements the other way round; list.sort orders them by their value.",
    examples=(
        Example(([1, "b", None],), [None, "b", 1]),
        Example(([],), []),
        Example((), error="arg.missing"),
    ),
)
def reverse(list: list[Any]) -> list[Any]:
    """Turn a list round.

    Args:
        list: The list.

    Returns:
        A new list with the last element first.
    """
    return list[::-1]


@toolset.tool(
    policy=PURE,
    when_to_use="For all texts or all numbers in rising order; list.reverse turns it into falling order.",
    examples=(
        Example(([3, 1.5, 2],), [1.5, 2, 3]),
        Example((["b", "10", "9", "B"],), ["10", "9", "B", "b"], note="numbers that are texts are ordered as texts"),
        Example(([1, "b"],), error="list.mixed"),
    ),
)
def sort(list: list[Any]) -> list[Any]:
    """Order a list of texts or of numbers, the least first.

    Args:
        list: Texts alone, which are ordered by their code points, or numbers alone, whole or not; truth values are
            neither.

    Returns:
        A new list; elements that are equal stay in their order.

    Raises:
        ToolFailed: list.mixed.
    """
    kinds = {type(each) for each in list}
    if kinds <= {str} or kinds <= {int, float}:
        return sorted(list)
    names = " and ".join(sorted("None" if kind is type(None) else kind.__name__ for kind in kinds))
    raise ToolFailed(f"list: expected all texts or all numbers, got {names}", code="list.mixed", retry="model")


@toolset.tool(
    policy=PURE,
    when_to_use="For how many elements there are; list.isempty only asks whether there are any.",
    examples=(
        Example((["a", ["b", "c"]],), 2),
        Example(("[]",), 0),
        Example(("abc",), error="coercion.type"),
    ),
)
def length(list: list[Any]) -> int:
    """Count the elements of a list.

    Args:
        list: The list.

    Returns:
        The number of elements; a list inside counts as one.
    """
    return len(list)


@toolset.tool(
    name="isempty",
    policy=PURE,
    when_to_use="For whether there is any element; list.length counts them, list.contains looks for one.",
    examples=(
        Example(([],), True),
        Example(([None],), False),
        Example((None,), error="arg.missing"),
    ),
)
def is_empty(list: list[Any]) -> bool:
    """Tell whether a list has no elements.

    Args:
        list: The list.

    Returns:
        True where there are none.
    """
    return not list


@toolset.tool(
    policy=PURE,
    when_to_use="For whether a list has an element like this one; list.get gives the element at a place.",
    examples=(
        Example(([1, {"a": [2]}], {"a": [2.0]}), True, note="equal to any depth, numbers by their value"),
        Example(([1, 0], True), False, note="a truth value is no number"),
        Example((["1"], 1), False),
        Example(([1],), error="arg.missing"),
    ),
)
def contains(list: list[Any], element: Any | None) -> bool:
    """Tell whether a list has an element that is equal to another value.

    Args:
        list: The list.
        element: What is looked for: numbers are equal by value (1 and 1.0), lists and maps by what they hold.

    Returns:
        True where at least one element is equal.
    """
    return any(_equal(each, element) for each in list)


def _equal(one: Any, other: Any) -> bool:
    """Tell whether two values of exact built-ins are equal; Python's own ``==`` takes True for 1."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case list(), list():
            return len(one) == len(other) and all(map(_equal, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(_equal(each, other[key]) for key, each in one.items())
        case _:
            return bool(one == other)
