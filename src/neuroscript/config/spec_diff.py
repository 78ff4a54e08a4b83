"""Changes in the arguments of a tool, and whether existing calls continue to work.

A change is compatible if every call that was accepted is still accepted and means the same. It is breaking if a call is
now refused or means something else. A different default is therefore breaking: calls without the argument were written
for the old one. When in doubt, a change is breaking.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroscript.config.change import ADDED, Change, breaking_change, change_of
from neuroscript.config.rule_diff import Place, rule_changes
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.tool_spec import ToolSpec


def argument_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Yield the changes between the arguments of two specs of one tool."""
    yield from _order_changes(old, new)
    yield from _variadic_changes(old, new)
    before, after = ({arg.name: arg for arg in spec.args} for spec in (old, new))
    for name, arg in before.items():
        path = f"args.{quote_untrusted(name)}"
        if name not in after:
            yield breaking_change(path, "the argument was removed")
        else:
            many = old.variadic and arg is old.args[-1]
            yield from rule_changes(path, arg, after[name], Place(many=many))
    for name, arg in after.items():
        if name not in before:
            yield change_of(
                not arg.required, f"args.{quote_untrusted(name)}", ADDED[bool(arg.required)].format("argument")
            )


def _order_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Yield a change if a remaining argument is at a position where positional calls would not expect it."""
    there = {arg.name for arg in new.args}
    kept = [arg.name for arg in old.args if arg.name in there]
    if [arg.name for arg in new.args[: len(kept)]] != kept:
        yield breaking_change("args", "the order of arguments changed, which affects positional calls")


def _variadic_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Yield a change if the meaning of further values after the last argument changed."""
    if old.variadic and not new.variadic:
        yield breaking_change("variadic", "no longer accepts further values")
    elif old.variadic and old.args[-1].name != new.args[-1].name:
        yield breaking_change("variadic", "further values now belong to another argument")
    elif new.variadic and not old.variadic:
        is_new = new.args[-1].name not in {arg.name for arg in old.args}
        text = "accepts further values"
        yield change_of(is_new, "variadic", text if is_new else f"{text} in an argument that was a single value")
