"""The ``math`` tools: arithmetic on floats and integers.

A result that a float cannot represent is an error, never infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec

PURE: Final = ToolPolicy(effects=("pure",))

toolset = Toolset("math")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a sum of two numbers; to subtract, use math.subtract.",
    examples=(
        Example((2, 3), 5.0),
        Example({"num1": "2", "num2": " 0.5 "}, 2.5, note="numbers can be passed as strings"),
        Example((2, "three"), error="coercion.format"),
    ),
)
def add(num1: float, num2: float) -> float:
    """Add two numbers and return the sum.

    Args:
        num1: The first number.
        num2: The second number.

    Returns:
        The sum of the two numbers.
    """
    return _finite(num1 + num2)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a difference; for its magnitude without the sign, pass the result to math.abs.",
    examples=(
        Example((5, 3), 2.0),
        Example((0.5, 2), -1.5),
        Example((5,), error="arg.missing"),
    ),
)
def subtract(num1: float, num2: float) -> float:
    """Subtract the second of two numbers from the first and return the difference.

    Args:
        num1: The number to subtract from.
        num2: The number to subtract.

    Returns:
        num1 minus num2.
    """
    return _finite(num1 - num2)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for a product of two numbers; to multiply a number by itself repeatedly, use math.power.",
    examples=(
        Example((4, 2.5), 10.0),
        Example((-3, 3), -9.0),
        Example((1e308, 10), error="math.overflow"),
    ),
)
def multiply(num1: float, num2: float) -> float:
    """Multiply two numbers and return the product.

    Args:
        num1: The first factor.
        num2: The second factor.

    Returns:
        The product.

    Raises:
        ToolFailed: math.overflow, if the result is too large for a float.
    """
    return _finite(num1 * num2)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for an exact quotient with a fraction; for the remainder of integer division, use math.modulo.",
    examples=(
        Example((10, 4), 2.5),
        Example((-1, 8), -0.125),
        Example((10, 0), error="math.division_by_zero"),
    ),
)
def divide(num1: float, num2: float) -> float:
    """Divide the first of two numbers by the second and return the quotient.

    Args:
        num1: The dividend.
        num2: The divisor; must not be 0.

    Returns:
        num1 divided by num2.

    Raises:
        ToolFailed: math.division_by_zero.
    """
    _refuse_zero(num2)
    return _finite(num1 / num2)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for the remainder, for example to test divisibility; for the quotient, use math.divide.",
    examples=(
        Example((10, 3), 1),
        Example((-10, 3), -1, note="the result has the sign of the dividend"),
        Example((10.5, 3), error="coercion.fraction"),
    ),
)
def modulo(num1: int, num2: int) -> int:
    """Return the remainder of integer division (modulo); its sign is that of the dividend.

    Args:
        num1: The dividend, an integer.
        num2: The divisor, an integer; must not be 0.

    Returns:
        The remainder; its absolute value is less than that of the divisor.

    Raises:
        ToolFailed: math.division_by_zero.
    """
    _refuse_zero(num2)
    remainder = abs(num1) % abs(num2)
    return -remainder if num1 < 0 else remainder


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for powers and for roots of any degree; for a square root, use math.sqrt.",
    examples=(
        Example((2, 10), 1024.0),
        Example((27, 0.5), 5.196152422706632),
        Example((-8, 0.5), error="math.domain"),
    ),
)
def power(base: float, exponent: float) -> float:
    """Raise a number to a power: the base to the exponent (exponentiation).

    Args:
        base: The base; must not be negative if the exponent is fractional, and not 0 if it is negative.
        exponent: The exponent; 0.5 gives a square root.

    Returns:
        The base raised to the exponent.

    Raises:
        ToolFailed: math.domain, math.overflow.
    """
    try:
        return _finite(math.pow(base, exponent))
    except ValueError:
        raise ToolFailed("the result is not a real number", code="math.domain", retry="model") from None
    except OverflowError:
        raise _too_large() from None


@toolset.tool(
    policy=PURE,
    when_to_use="Use it for square roots; for other roots, use math.power with a fractional exponent.",
    examples=(
        Example((9,), 3.0),
        Example(("2",), 1.4142135623730951),
        Example((-1,), error="math.domain"),
    ),
)
def sqrt(number: float) -> float:
    """Calculate the square root of a number.

    Args:
        number: The number; must not be negative.

    Returns:
        The non-negative square root.

    Raises:
        ToolFailed: math.domain.
    """
    if number < 0:
        raise ToolFailed("a negative number has no real square root", code="math.domain", retry="model")
    return math.sqrt(number)


@toolset.tool(
    name="abs",
    policy=PURE,
    when_to_use="Use it for a magnitude or a distance; for the largest of several numbers, use math.max.",
    examples=(
        Example((-2.5,), 2.5),
        Example((3,), 3.0),
        Example((True,), error="coercion.bool_as_number"),
    ),
)
def absolute(number: float) -> float:
    """Return the absolute value of a number.

    Args:
        number: The number.

    Returns:
        The number without its sign.
    """
    return abs(number)


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to always round down; to round to the nearest number, use math.round, to round up, math.ceil.",
    examples=(
        Example((2.9,), 2),
        Example((-2.1,), -3),
        Example((1e300,), error="math.overflow"),
    ),
)
def floor(number: float) -> int:
    """Round a number down to an integer (floor).

    Args:
        number: The number, between -2**63 and 2**63.

    Returns:
        The largest integer less than or equal to the number.

    Raises:
        ToolFailed: math.overflow.
    """
    return _check_int_range(math.floor(number))


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to always round up; to round to the nearest number, use math.round, to round down, math.floor.",
    examples=(
        Example((2.1,), 3),
        Example((-2.9,), -2),
        Example(("",), error="coercion.format"),
    ),
)
def ceil(number: float) -> int:
    """Round a number up to the next integer (ceiling).

    Args:
        number: The number, between -2**63 and 2**63.

    Returns:
        The smallest integer greater than or equal to the number.

    Raises:
        ToolFailed: math.overflow.
    """
    return _check_int_range(math.ceil(number))


def _rounded(rt: Runtime, number: float, digits: int) -> float:
    from decimal import ROUND_HALF_UP, Context, Decimal  # slow to import and rarely needed

    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, Context(prec=400))
    return _finite(float(exact))


toolset.add(
    ToolSpec(
        "round",
        "math",
        (
            ArgSpec("number", ArgType.FLOAT, description="The number to round, taken as its decimal representation."),
            ArgSpec(
                "digits",
                ArgType.INT,
                default=0,
                minimum=-15,
                maximum=15,
                description="Number of decimal places; negative rounds to tens, hundreds and so on.",
            ),
        ),
        return_type=ArgType.FLOAT,
        description="Round a number to the given number of decimal places (digits after the point).",
        when_to_use="Use it to round to the nearest value; to always round down or up, use math.floor or math.ceil.",
        return_help="The nearest value with that many decimal places; ties round away from 0, so 2.5 becomes 3.",
        examples=(
            Example((2.675, 2), 2.68),
            Example((-2.5,), -3.0, note="ties round away from 0"),
            Example((1, 16), error="coercion.bounds"),
        ),
    ),
    _rounded,
    PURE,
)


def _add_variadic(name: str, pick: Callable[..., float], what: str, other: str, first: float) -> None:
    def picked(rt: Runtime, *numbers: float) -> float:
        return pick(numbers)

    toolset.add(
        ToolSpec(
            name,
            "math",
            (ArgSpec("numbers", ArgType.FLOAT, description="One or more numbers to compare."),),
            variadic=True,
            return_type=ArgType.FLOAT,
            description=f"Return the {what} of several numbers.",
            when_to_use=f"Use it to compare numbers; for the opposite, use math.{other}, to order them all, list.sort.",
            return_help=f"The {what} of the numbers.",
            examples=(
                Example((3, 1, 2), first),
                Example({"numbers": ["0.5"]}, 0.5, note="passed by name, they are a list"),
                Example((), error="arg.missing"),
            ),
        ),
        picked,
        PURE,
    )


_add_variadic("min", min, "smallest (minimum)", "max", 1.0)
_add_variadic("max", max, "largest (maximum)", "min", 3.0)


def _finite(number: float) -> float:
    if math.isinf(number):
        raise _too_large()
    return number


def _too_large() -> ToolFailed:
    return ToolFailed("the result is too large for a float", code="math.overflow", retry="model")


def _check_int_range(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ToolFailed("the result is too large for an int", code="math.overflow", retry="model")
    return number


def _refuse_zero(divisor: float) -> None:
    if divisor == 0:
        raise ToolFailed("division by zero", code="math.division_by_zero", retry="model")
