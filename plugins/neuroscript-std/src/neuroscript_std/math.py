"""Arithmetic on floats and whole numbers.

Source: upstream ``pkg/tool/math``, with more operations; a result that no float can hold is an error, never infinity.
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
    when_to_use="For the sum of two numbers; math.subtract takes one from the other.",
    examples=(
        Example((2, 3), 5.0),
        Example({"num1": "2", "num2": " 0.5 "}, 2.5, note="numbers may come as text"),
        Example((2, "three"), error="coercion.format"),
    ),
)
def add(num1: float, num2: float) -> float:
    """Add two numbers.

    Args:
        num1: The first number.
        num2: The second number.

    Returns:
        The sum.
    """
    return _finite(num1 + num2)


@toolset.tool(
    policy=PURE,
    when_to_use="For the difference of two numbers; math.abs gives its size without the sign.",
    examples=(
        Example((5, 3), 2.0),
        Example((0.5, 2), -1.5),
        Example((5,), error="arg.missing"),
    ),
)
def subtract(num1: float, num2: float) -> float:
    """Take the second number from the first.

    Args:
        num1: The number to take from.
        num2: The number to take away.

    Returns:
        The difference.
    """
    return _finite(num1 - num2)


@toolset.tool(
    policy=PURE,
    when_to_use="For the product of two numbers; math.power multiplies a number by itself.",
    examples=(
        Example((4, 2.5), 10.0),
        Example((-3, 3), -9.0),
        Example((1e308, 10), error="math.overflow"),
    ),
)
def multiply(num1: float, num2: float) -> float:
    """Multiply two numbers.

    Args:
        num1: The first factor.
        num2: The second factor.

    Returns:
        The product.

    Raises:
        ToolFailed: math.overflow.
    """
    return _finite(num1 * num2)


@toolset.tool(
    policy=PURE,
    when_to_use="For a quotient with its fraction; math.modulo gives what is left over between whole numbers.",
    examples=(
        Example((10, 4), 2.5),
        Example((-1, 8), -0.125),
        Example((10, 0), error="math.division_by_zero"),
    ),
)
def divide(num1: float, num2: float) -> float:
    """Divide the first number by the second.

    Args:
        num1: The dividend.
        num2: The divisor, not 0.

    Returns:
        The quotient.

    Raises:
        ToolFailed: math.division_by_zero.
    """
    _refuse_zero(num2)
    return _finite(num1 / num2)


@toolset.tool(
    policy=PURE,
    when_to_use="For what is left over between whole numbers; math.divide gives the quotient.",
    examples=(
        Example((10, 3), 1),
        Example((-10, 3), -1, note="the sign is that of the dividend"),
        Example((10.5, 3), error="coercion.fraction"),
    ),
)
def modulo(num1: int, num2: int) -> int:
    """Give the remainder of a whole division, with the sign of the dividend.

    Args:
        num1: The dividend, a whole number.
        num2: The divisor, a whole number but not 0.

    Returns:
        The remainder, smaller than the divisor.

    Raises:
        ToolFailed: math.division_by_zero.
    """
    _refuse_zero(num2)
    remainder = abs(num1) % abs(num2)
    return -remainder if num1 < 0 else remainder


@toolset.tool(
    policy=PURE,
    when_to_use="For powers and roots of any degree; math.sqrt is plainer for square roots.",
    examples=(
        Example((2, 10), 1024.0),
        Example((27, 0.5), 5.196152422706632),
        Example((-8, 0.5), error="math.domain"),
    ),
)
def power(base: float, exponent: float) -> float:
    """Raise a number to a power.

    Args:
        base: The number to raise; not below 0 where the exponent has a fraction, not 0 where it is below 0.
        exponent: The power.

    Returns:
        The base to the power of the exponent.

    Raises:
        ToolFailed: math.domain, math.overflow.
    """
    try:
        return _finite(math.pow(base, exponent))
    except ValueError:
        raise ToolFailed("no real number is that power", code="math.domain", retry="model") from None
    except OverflowError:
        raise _too_large() from None


@toolset.tool(
    policy=PURE,
    when_to_use="For square roots; math.power takes roots of other degrees.",
    examples=(
        Example((9,), 3.0),
        Example(("2",), 1.4142135623730951),
        Example((-1,), error="math.domain"),
    ),
)
def sqrt(number: float) -> float:
    """Give the square root of a number.

    Args:
        number: The number, not below 0.

    Returns:
        The root, not below 0.

    Raises:
        ToolFailed: math.domain.
    """
    if number < 0:
        raise ToolFailed("a number below 0 has no real root", code="math.domain", retry="model")
    return math.sqrt(number)


@toolset.tool(
    name="abs",
    policy=PURE,
    when_to_use="For the size of a number without its sign; math.max compares several.",
    examples=(
        Example((-2.5,), 2.5),
        Example((3,), 3.0),
        Example((True,), error="coercion.bool_as_number"),
    ),
)
def absolute(number: float) -> float:
    """Give a number without its sign.

    Args:
        number: The number.

    Returns:
        The number itself, or its opposite where it is below 0.
    """
    return abs(number)


@toolset.tool(
    policy=PURE,
    when_to_use="For the whole number below; math.round goes to the nearest one.",
    examples=(
        Example((2.9,), 2),
        Example((-2.1,), -3),
        Example((1e300,), error="math.overflow"),
    ),
)
def floor(number: float) -> int:
    """Go down to a whole number.

    Args:
        number: The number, between -2**63 and 2**63.

    Returns:
        The greatest whole number that is not above it.

    Raises:
        ToolFailed: math.overflow.
    """
    return _whole(math.floor(number))


@toolset.tool(
    policy=PURE,
    when_to_use="For the whole number above; math.round goes to the nearest one.",
    examples=(
        Example((2.1,), 3),
        Example((-2.9,), -2),
        Example(("",), error="coercion.format"),
    ),
)
def ceil(number: float) -> int:
    """Go up to a whole number.

    Args:
        number: The number, between -2**63 and 2**63.

    Returns:
        The least whole number that is not below it.

    Raises:
        ToolFailed: math.overflow.
    """
    return _whole(math.ceil(number))


def _rounded(rt: Runtime, number: float, digits: int) -> float:
    from decimal import ROUND_HALF_UP, Context, Decimal  # dear to load, and seldom wanted

    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, Context(prec=400))
    return _finite(float(exact))


toolset.add(
    ToolSpec(
        "round",
        "math",
        (
            ArgSpec("number", ArgType.FLOAT, description="The number to round, as it is written in decimals."),
            ArgSpec(
                "digits",
                ArgType.INT,
                default=0,
                minimum=-15,
                maximum=15,
                description="How many digits stay behind the point; below 0 for tens, hundreds and so on.",
            ),
        ),
        return_type=ArgType.FLOAT,
        description="Round a number to some digits behind the point.",
        when_to_use="For fewer digits; math.floor and math.ceil go down and up to a whole number.",
        return_help="The nearest number of that many digits; of two equally near, the one further from 0.",
        examples=(
            Example((2.675, 2), 2.68),
            Example((-2.5,), -3.0, note="a half goes away from 0"),
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
            (ArgSpec("numbers", ArgType.FLOAT, description="The numbers to compare, at least one."),),
            variadic=True,
            return_type=ArgType.FLOAT,
            description=f"Give the {what} of some numbers.",
            when_to_use=f"For the {what} of numbers at hand; math.{other} does the opposite, list.sort orders a list.",
            return_help=f"The {what} of them.",
            examples=(
                Example((3, 1, 2), first),
                Example({"numbers": ["0.5"]}, 0.5, note="by name they are a list"),
                Example((), error="arg.missing"),
            ),
        ),
        picked,
        PURE,
    )


_add_variadic("min", min, "least", "max", 1.0)
_add_variadic("max", max, "greatest", "min", 3.0)


def _finite(number: float) -> float:
    if math.isinf(number):
        raise _too_large()
    return number


def _too_large() -> ToolFailed:
    return ToolFailed("the result is too large for a float", code="math.overflow", retry="model")


def _whole(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ToolFailed("the result is too large for an int", code="math.overflow", retry="model")
    return number


def _refuse_zero(divisor: float) -> None:
    if divisor == 0:
        raise ToolFailed("a division by 0 has no result", code="math.division_by_zero", retry="model")
