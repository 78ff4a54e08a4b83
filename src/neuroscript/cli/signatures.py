"""What a spec asks, in the words of a person."""

from __future__ import annotations

from neuroscript.coercion import described
from neuroscript.errors import UNSET
from neuroscript.spec import ArgSpec
from neuroscript.synopsis import written


def asked(arg: ArgSpec, further: bool = False) -> str:
    """Return all that is asked of an argument: its type and bounds, and whether it may be left out.

    Args:
        further: Whether it stands for each further value of a variadic tool.
    """
    parts = [described(arg)]
    if further:
        parts.append("any number of them" if not arg.required else "at least one of them")
    elif arg.default is not UNSET:
        parts.append(f"default {written(arg.default)}")
    else:
        parts.append("required" if arg.required else "may be left out")
    if arg.nullable:
        parts.append("may be null")
    if arg.secret:
        parts.append("secret")
    return ", ".join(parts)
