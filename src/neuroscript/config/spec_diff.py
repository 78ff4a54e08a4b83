"""Changes in the arguments of a tool, and whether existing calls continue to work.

A change is compatible if every call that was accepted is still accepted and means the same. It is breaking if a call is
now refused or means something else. A different default is therefore breaking: calls without the argument were written
for the old one. When in doubt, a change is breaking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.types import ArgType, accepts_all
from neuroscript.errors import UNSET, CoercionError
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.fingerprints import canonical_text

Kind = Literal["compatible", "breaking"]

REFUSED: Final = object()
"""The result of omitting a required argument."""


@attrs.frozen
class Change:
    """One change in a definition.

    Attributes:
        kind: ``"compatible"`` or ``"breaking"``.
        path: The part that changed, for example ``args.options.keys.depth.required``, or ``""`` for the whole.
        text: A description without values.
    """

    kind: Kind
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def compatible(path: str, text: str) -> Change:
    """Return a change that needs no action from callers and hosts."""
    return Change("compatible", path, text)


def breaking_change(path: str, text: str) -> Change:
    """Return a change that has to be reviewed."""
    return Change("breaking", path, text)


def change_of(is_compatible: bool, path: str, text: str) -> Change:
    """Return a compatible or a breaking change."""
    return Change("compatible" if is_compatible else "breaking", path, text)


def same(one: object, other: object) -> bool:
    """Return whether two exact values have the same type and value, ignoring the order of keys."""
    if UNSET in (one, other):
        return one is other
    return canonical_text(one) == canonical_text(other)


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
            yield from _rule_changes(path, arg, after[name], _Place(many=many))
    for name, arg in after.items():
        if name not in before:
            yield change_of(
                not arg.required, f"args.{quote_untrusted(name)}", _ADDED[bool(arg.required)].format("argument")
            )


_ADDED: Final = {True: "a new required {}", False: "a new optional {}"}


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


@attrs.frozen
class _Place:
    """The position of a spec.

    Attributes:
        many: Whether it applies to each further value of a variadic tool.
        key: Whether it applies to a key of a map.
    """

    many: bool = False
    key: bool = False


def _rule_changes(path: str, old: ArgSpec, new: ArgSpec, place: _Place) -> Iterator[Change]:
    yield from _absence_changes(path, old, new, place)
    if accepts_all(new.type, old.type):
        if new.type is not old.type:
            yield compatible(f"{path}.type", f"accepts more: {new.type} instead of {old.type}")
        yield from _choice_changes(f"{path}.choices", old.choices, new.choices)
        yield from _bound_changes(path, old, new)
        yield from _key_changes(path, old, new)
    else:
        yield breaking_change(f"{path}.type", f"changed from {old.type} to {new.type}")
    if old.secret != new.secret:
        text = "its value is now secret" if new.secret else "its value is no longer secret"
        yield change_of(new.secret, f"{path}.secret", text)
    if old.description != new.description:
        yield compatible(f"{path}.description", NEW_DESCRIPTION)


NEW_DESCRIPTION: Final = "the text for models changed; review it before use"


def _absence_changes(path: str, old: ArgSpec, new: ArgSpec, place: _Place) -> Iterator[Change]:
    """Yield the changes in whether a value may be omitted or None, and in what that means.

    See docs/reference/contract.md, "None and missing values".
    """
    if old.required != new.required:
        text = "is now required" if new.required else "is now optional"
        yield change_of(not new.required, f"{path}.required", text)
    if old.nullable != new.nullable:
        text = "now accepts None" if new.nullable else "no longer accepts None"
        goes_on = _goes_on(_none(old, place), _none(new, place), new)
        yield change_of(goes_on, f"{path}.nullable", text)
    if not same(old.default, new.default) and not (old.required or new.required):
        text = "has a different default" if UNSET not in (old.default, new.default) else _DEFAULT[new.default is UNSET]
        goes_on = _goes_on(_omitted_value(old, place), _omitted_value(new, place), new)
        yield change_of(goes_on, f"{path}.default", text)


_DEFAULT: Final = {True: "no longer has a default", False: "now has a default"}


def _omitted_value(arg: ArgSpec, place: _Place) -> Any:
    """Return the value of an omitted argument, or `UNSET` for a key that stays missing."""
    if arg.required:
        return REFUSED
    return None if arg.default is UNSET and not place.key else arg.default


def _none(arg: ArgSpec, place: _Place) -> Any:
    """Return the value of an argument that is passed as None."""
    if arg.nullable:
        return None
    if arg.required or place.many:
        return REFUSED
    return None if arg.default is UNSET else arg.default


def _goes_on(old: Any, new: Any, rule: ArgSpec) -> bool:
    """Return whether the value is unchanged, apart from being coerced to the type of *rule*."""
    if old is REFUSED or new is REFUSED:
        return old is REFUSED
    if same(old, new):
        return True
    try:
        return old is not UNSET and same(coerce(old, rule.type), new)
    except CoercionError:
        return False


def _choice_changes(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Change]:
    before, after = ([*map(canonical_text, choices)] for choices in (old, new))
    if before == after:
        return
    if not before:
        yield breaking_change(path, "now accepts only certain values")
    elif not after:
        yield compatible(path, "now accepts all values of its type")
    else:
        if gone := {*before} - {*after}:
            yield breaking_change(path, f"{_some(len(gone), 'value')} no longer accepted")
        if added := {*after} - {*before}:
            yield compatible(path, f"{_some(len(added), 'further value')} accepted")
        if not gone and not added:
            yield compatible(path, "the order of values changed")


def _some(count: int, what: str) -> str:
    return f"{count} {what} is" if count == 1 else f"{count} {what}s are"


def _bound_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    for name, what, is_least in _BOUNDS:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        looser = after is None or (before is not None and (after < before if is_least else after > before))
        yield change_of(looser, f"{path}.{name}", f"{what} is {'looser' if looser else 'tighter'}")


_BOUNDS: Final = (
    ("minimum", "the minimum", True),
    ("maximum", "the maximum", False),
    ("min_length", "the minimum length", True),
    ("max_length", "the maximum length", False),
)


def _key_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    before, after = ({key.name: key for key in arg.keys} for arg in (old, new))
    if not before and not after:
        return
    for name, key in before.items():
        here = f"{path}.keys.{quote_untrusted(name)}"
        if name in after:
            yield from _rule_changes(here, key, after[name], _Place(key=True))
        else:
            yield _gone_key(here, key, is_kept=_is_open(new))
    for name, key in after.items():
        if name not in before:
            yield _new_key(f"{path}.keys.{quote_untrusted(name)}", key, new, was_kept=_is_open(old))
    if [*before] != [*after] and before.keys() == after.keys():
        yield compatible(f"{path}.keys", "the order of keys changed")
    if _is_open(old) != _is_open(new):
        text = "now accepts unknown keys" if _is_open(new) else "no longer accepts unknown keys"
        yield change_of(_is_open(new), f"{path}.extra_keys", text)
    elif old.extra_keys != new.extra_keys:
        yield compatible(f"{path}.extra_keys", "accepts unknown keys as before")


def _is_open(arg: ArgSpec) -> bool:
    """Return whether a map accepts keys without a spec."""
    return arg.extra_keys or not arg.keys


def _gone_key(path: str, key: ArgSpec, *, is_kept: bool) -> Change:
    """Return the change for a key that no longer has a spec; an open map accepts what `any` accepts under it."""
    if not is_kept:
        return breaking_change(path, "the key was removed")
    is_plain = key.default is UNSET and not key.keys and not key.secret
    return change_of(is_plain and accepts_all(ArgType.ANY, key.type), path, "the key no longer has a spec")


def _new_key(path: str, key: ArgSpec, map: ArgSpec, *, was_kept: bool) -> Change:
    """Return the change for a key that has a new spec. A default adds a key to a map that may already be full."""
    if was_kept:
        goes_on = key.type is ArgType.ANY and not key.required and key.default is UNSET
        return change_of(goes_on, path, "the key accepted any value and now has a spec")
    fills = key.default is not UNSET and map.max_length is not None
    return change_of(not key.required and not fills, path, _ADDED[bool(key.required)].format("key"))
