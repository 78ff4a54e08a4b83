"""The ``list`` tools: build, slice, sort and search lists.

Every tool returns a new list; the caller's list never changes. Numbers are compared by value, and a boolean is not a
number.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import Example, ToolFailed, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("list")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to add one item at the end; to add it at the beginning, use list.prepend.",
    examples=(
        Example((["a", "b"], "c"), ["a", "b", "c"]),
        Example(("[1]", None), [1, None], note="a list can be passed as JSON, and None is a valid element"),
        Example((["a"],), error="arg.missing"),
    ),
)
def append(list: list[Any], element: Any | None) -> list[Any]:
    """Append (add) an element to the end of a list and return the new list.

    Args:
        list: The list.
        element: The item to add; a list is added as one nested item.

    Returns:
        A new list that ends with the element.
    """
    return [*list, element]


@toolset.tool(
    name="appendinplace",
    policy=PURE,
    when_to_use="Use list.append instead, which behaves the same; this name exists for compatibility.",
    examples=(
        Example((["a", "b"], "c"), ["a", "b", "c"]),
        Example(([], [1]), [[1]]),
        Example(("a", "b"), error="coercion.type"),
    ),
)
def append_in_place(list: list[Any], element: Any | None) -> list[Any]:
    """Append an item to a list; an alias of list.append that does not modify the original in place.

    The engine passes each tool its own copy of a list, so the caller's list does not change.

    Args:
        list: The list.
        element: The item to add; a list is added as one nested item.

    Returns:
        A new list that ends with the element; the original list is unchanged.
    """
    return [*list, element]


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to add one item at the beginning; to add it at the end, use list.append.",
    examples=(
        Example((["b", "c"], "a"), ["a", "b", "c"]),
        Example(([], 1), [1]),
        Example(({"a": 1}, 1), error="coercion.type"),
    ),
)
def prepend(list: list[Any], element: Any | None) -> list[Any]:
    """Insert an element at the beginning of a list and return the new list.

    Args:
        list: The list.
        element: The item to add; a list is added as one nested item.

    Returns:
        A new list that starts with the element.
    """
    return [element, *list]


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to access one element; for the first one, use list.head, for a nested value, shape.select.",
    examples=(
        Example((["a", "b"], 1), "b"),
        Example((["a", "b"], -1, "none"), "none", note="negative indexes are out of range"),
        Example((["a"], 2), None),
        Example((["a"], "first"), error="coercion.format"),
    ),
)
def get(list: list[Any], index: int, default: Any | None = None) -> Any | None:
    """Get the list element at an index (position), or a default value if the index is out of range.

    Args:
        list: The list.
        index: The position, starting at 0; negative indexes are out of range.
        default: The value to return if the index is out of range; None by default.

    Returns:
        The element, or the default.
    """
    return list[index] if 0 <= index < len(list) else default


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for the first element; for another position, use list.get, for all others, list.rest.",
    examples=(
        Example((["a", "b"],), "a"),
        Example(([],), None),
        Example((1,), error="coercion.type"),
    ),
)
def head(list: list[Any]) -> Any | None:
    """Return the first element of a list (array).

    Args:
        list: The list.

    Returns:
        The first element, or None if the list is empty.
    """
    return list[0] if list else None


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to skip the first element; for the last n elements, use list.tail, for any range, list.slice.",
    examples=(
        Example((["a", "b", "c"],), ["b", "c"]),
        Example(([],), []),
        Example(("a, b",), error="coercion.type"),
    ),
)
def rest(list: list[Any]) -> list[Any]:
    """Return all elements of a list (array) except the first.

    Args:
        list: The list.

    Returns:
        A new list without the first element; empty if the list has fewer than two elements.
    """
    return list[1:]


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to take elements from the end; for a range of indexes, use list.slice.",
    examples=(
        Example((["a", "b", "c"], 2), ["b", "c"]),
        Example((["a", "b"], 5), ["a", "b"]),
        Example((["a", "b"], -1), []),
        Example((["a"], 1.5), error="coercion.fraction"),
    ),
)
def tail(list: list[Any], count: int) -> list[Any]:
    """Take the last n elements of a list.

    Args:
        list: The list.
        count: Number of elements to return; all if the list is shorter, none if 0 or negative.

    Returns:
        A new list of the last elements, in the original order.
    """
    return list[-count:] if count > 0 else []


@toolset.tool(
    name="slice",
    policy=PURE,
    when_to_use="Use it for a range of elements; for the last n, use list.tail, for a single element, list.get.",
    examples=(
        Example((["a", "b", "c", "d"], 1, 3), ["b", "c"]),
        Example((["a", "b"], -5, 5), ["a", "b"], note="indexes out of range are clamped"),
        Example((["a", "b"], 1, 0), []),
        Example((["a"], 0), error="arg.missing"),
    ),
)
def part(list: list[Any], start: int, end: int) -> list[Any]:
    """Return a slice of a list (array): the portion between a start index and an end index.

    Args:
        list: The list.
        start: Index of the first element, starting at 0; a negative index means 0.
        end: Index after the last element (exclusive); clamped to the length of the list.

    Returns:
        A new list of the elements from start up to, but not including, end; empty if end <= start.
    """
    return list[max(start, 0) : max(end, 0)]


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to reverse the existing order; to order elements by value, use list.sort.",
    examples=(
        Example(([1, "b", None],), [None, "b", 1]),
        Example(([],), []),
        Example((), error="arg.missing"),
    ),
)
def reverse(list: list[Any]) -> list[Any]:
    """Return the elements of a list (array) in reverse order.

    Args:
        list: The list.

    Returns:
        A new list with the last element first.
    """
    return list[::-1]


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to sort in ascending order; for descending order, pass the result to list.reverse.",
    examples=(
        Example(([3, 1.5, 2],), [1.5, 2, 3]),
        Example((["b", "10", "9", "B"],), ["10", "9", "B", "b"], note="numeric strings are sorted as strings"),
        Example(([1, "b"],), error="list.mixed"),
    ),
)
def sort(list: list[Any]) -> list[Any]:
    """Sort the elements of a list of strings or numbers in ascending order.

    Args:
        list: Only strings, which are ordered by code point, or only numbers (int and float); booleans are not
            accepted.

    Returns:
        A new sorted list; equal elements keep their order.

    Raises:
        ToolFailed: list.mixed, if the list mixes types or holds other types.
    """
    kinds = {type(each) for each in list}
    if kinds <= {str} or kinds <= {int, float}:
        return sorted(list)
    names = " and ".join(sorted("None" if kind is type(None) else kind.__name__ for kind in kinds))
    raise ToolFailed(f"list: expected only strings or only numbers, got {names}", code="list.mixed", retry="model")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to count elements; to check only whether there are any, use list.isempty.",
    examples=(
        Example((["a", ["b", "c"]],), 2),
        Example(("[]",), 0),
        Example(("abc",), error="coercion.type"),
    ),
)
def length(list: list[Any]) -> int:
    """Return the length of a list (array): the number of its elements.

    Args:
        list: The list.

    Returns:
        The number of elements; a nested list counts as one.
    """
    return len(list)


@toolset.tool(
    name="isempty",
    policy=PURE,
    when_to_use="Use it before processing a list; to count elements, use list.length, to look for one, list.contains.",
    examples=(
        Example(([],), True),
        Example(([None],), False),
        Example((None,), error="arg.missing"),
    ),
)
def is_empty(list: list[Any]) -> bool:
    """Check whether a list is empty (has no elements).

    Args:
        list: The list.

    Returns:
        True if the list has no elements.
    """
    return not list


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to test membership; to get an element by index, use list.get.",
    examples=(
        Example(([1, {"a": [2]}], {"a": [2.0]}), True, note="nested values are compared too, numbers by value"),
        Example(([1, 0], True), False, note="a boolean does not equal a number"),
        Example((["1"], 1), False),
        Example(([1],), error="arg.missing"),
    ),
)
def contains(list: list[Any], element: Any | None) -> bool:
    """Check whether a list (array) contains a value as an element (membership test).

    Args:
        list: The list.
        element: The value to look for; numbers (1 and 1.0), lists and maps are compared by value.

    Returns:
        True if at least one element equals the value.
    """
    return any(_equal(each, element) for each in list)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two plain values are equal; Python's own ``==`` treats True as 1."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case list(), list():
            return len(one) == len(other) and all(map(_equal, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(_equal(each, other[key]) for key, each in one.items())
        case _:
            return bool(one == other)
