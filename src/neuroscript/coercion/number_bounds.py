"""The least and the greatest valid number under inclusive and exclusive bounds."""

from __future__ import annotations

import math
from typing import Final

Bound = float | None
"""A finite number, or None for no bound."""


def stricter_bounds(
    inclusive: Bound, exclusive: Bound, *, is_lower: bool, is_integer: bool = False
) -> tuple[Bound, Bound]:
    """Return the stricter one of two bounds on the same side, in its place, and None in the other place.

    An exclusive bound of integers becomes the inclusive one, so each range of integers has one form.

    >>> stricter_bounds(None, 0, is_lower=True, is_integer=True)
    (1, None)
    >>> stricter_bounds(0, 0.5, is_lower=True)
    (None, 0.5)
    """
    if exclusive is None:
        return inclusive, None
    if is_integer:
        nearest = math.floor(exclusive) + 1 if is_lower else math.ceil(exclusive) - 1
        if inclusive is None or (inclusive < nearest if is_lower else inclusive > nearest):
            return nearest, None
        return inclusive, None
    if inclusive is not None and (inclusive > exclusive if is_lower else inclusive < exclusive):
        return inclusive, None
    return None, exclusive or (0 if type(exclusive) is int else 0.0)  # -0.0 is 0.0


def nearest_float(bound: float, *, is_lower: bool) -> float:
    """Return the first float within an exclusive bound; infinity if there is none.

    >>> nearest_float(0, is_lower=True)
    5e-324
    """
    number = float(bound)
    if number > bound if is_lower else number < bound:  # an int between two floats
        return number
    return math.nextafter(number, _INFINITY if is_lower else -_INFINITY)


_INFINITY: Final = float("inf")
