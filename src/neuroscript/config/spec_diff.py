"""What changed in the arguments of a tool, and whether those who call it can go on as they did.

A change is compatible when every call that was taken is taken still and leaves out the same things; it is breaking when
one is refused now, or means something else. So another default is breaking: a call that does not give the argument was
written for the old one. Where it is not certain that a change is compatible, it is breaking.

Source: contract section 3; issue "Plugins", lock file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.types import ArgType, takes_all
from neuroscript.errors import UNSET, CoercionError
from neuroscript.io.text import shown
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.fingerprints import canonical_text

Kind = Literal["compatible", "breaking"]

REFUSED: Final = object()
"""What comes of an argument that must be given."""


@attrs.frozen
class Change:
    """One thing that is not what it was.

    Attributes:
        kind: ``"compatible"`` or ``"breaking"``.
        path: What it is about, for example ``args.options.keys.depth.required``; ``""`` is all of it.
        text: What happened, in a sentence that holds no value.
    """

    kind: Kind
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def compatible(path: str, text: str) -> Change:
    """Return a change with which those who call, and the host, can go on as they did."""
    return Change("compatible", path, text)


def breaking(path: str, text: str) -> Change:
    """Return a change that somebody has to look at before anything goes on."""
    return Change("breaking", path, text)


def judged(is_compatible: bool, path: str, text: str) -> Change:
    """Return a change of one kind or the other."""
    return Change("compatible" if is_compatible else "breaking", path, text)


def same(one: object, other: object) -> bool:
    """Tell whether two exact values are one value of one type, whatever the order of keys."""
    if UNSET in (one, other):
        return one is other
    return canonical_text(one) == canonical_text(other)


def argument_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Yield what changed between the arguments of two specs of one tool."""
    yield from _order_changes(old, new)
    yield from _variadic_changes(old, new)
    before, after = ({arg.name: arg for arg in spec.args} for spec in (old, new))
    for name, arg in before.items():
        path = f"args.{shown(name)}"
        if name not in after:
            yield breaking(path, "the argument is gone")
        else:
            many = old.variadic and arg is old.args[-1]
            yield from _rule_changes(path, arg, after[name], _Place(many=many))
    for name, arg in after.items():
        if name not in before:
            yield judged(not arg.required, f"args.{shown(name)}", _ADDED[bool(arg.required)].format("argument"))


_ADDED: Final = {True: "a new {}, which must be given", False: "a new {}, which may be left out"}


def _order_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Yield a change where an argument that is still there does not stand where a call by position gives it."""
    there = {arg.name for arg in new.args}
    kept = [arg.name for arg in old.args if arg.name in there]
    if [arg.name for arg in new.args[: len(kept)]] != kept:
        yield breaking("args", "the arguments stand in another order, and calls may give them by position")


def _variadic_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    """Yield a change where the values behind the last argument are not what they were."""
    if old.variadic and not new.variadic:
        yield breaking("variadic", "further values are not taken any more")
    elif old.variadic and old.args[-1].name != new.args[-1].name:
        yield breaking("variadic", "the further values are those of another argument")
    elif new.variadic and not old.variadic:
        is_new = new.args[-1].name not in {arg.name for arg in old.args}
        text = "further values are taken"
        yield judged(is_new, "variadic", text if is_new else f"{text} by an argument that was a single value")


@attrs.frozen
class _Place:
    """Where a rule stands.

    Attributes:
        many: Whether it is that of each further value of a variadic tool.
        key: Whether it is that of a key of a map.
    """

    many: bool = False
    key: bool = False


def _rule_changes(path: str, old: ArgSpec, new: ArgSpec, place: _Place) -> Iterator[Change]:
    yield from _absence_changes(path, old, new, place)
    if takes_all(new.type, old.type):
        if new.type is not old.type:
            yield compatible(f"{path}.type", f"takes more: {new.type} in place of {old.type}")
        yield from _choice_changes(f"{path}.choices", old.choices, new.choices)
        yield from _bound_changes(path, old, new)
        yield from _key_changes(path, old, new)
    else:
        yield breaking(f"{path}.type", f"is {new.type}, and was {old.type}")
    if old.secret != new.secret:
        text = "its value is kept secret" if new.secret else "its value is not kept secret any more"
        yield judged(new.secret, f"{path}.secret", text)
    if old.description != new.description:
        yield compatible(f"{path}.description", TOLD)


TOLD: Final = "models read another text; read it before you trust it"


def _absence_changes(path: str, old: ArgSpec, new: ArgSpec, place: _Place) -> Iterator[Change]:
    """Yield what changed in what may be left out, may be None, and what that means.

    Source: contract section 3, the table of None and absence.
    """
    if old.required != new.required:
        text = "must be given now" if new.required else "may be left out now"
        yield judged(not new.required, f"{path}.required", text)
    if old.nullable != new.nullable:
        text = "None is a value of it now" if new.nullable else "None is no value of it any more"
        goes_on = _goes_on(_none(old, place), _none(new, place), new)
        yield judged(goes_on, f"{path}.nullable", text)
    if not same(old.default, new.default) and not (old.required or new.required):
        text = "has another default" if UNSET not in (old.default, new.default) else _DEFAULT[new.default is UNSET]
        goes_on = _goes_on(_nothing(old, place), _nothing(new, place), new)
        yield judged(goes_on, f"{path}.default", text)


_DEFAULT: Final = {True: "has no default any more", False: "has a default now"}


def _nothing(arg: ArgSpec, place: _Place) -> Any:
    """Return what an argument is that is not given; `UNSET` for a key that stays away."""
    if arg.required:
        return REFUSED
    return None if arg.default is UNSET and not place.key else arg.default


def _none(arg: ArgSpec, place: _Place) -> Any:
    """Return what an argument is that is given as None."""
    if arg.nullable:
        return None
    if arg.required or place.many:
        return REFUSED
    return None if arg.default is UNSET else arg.default


def _goes_on(old: Any, new: Any, rule: ArgSpec) -> bool:
    """Tell whether nobody meets another value than before; one that *rule* has the type of now may be of another."""
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
        yield breaking(path, "takes only some values now")
    elif not after:
        yield compatible(path, "takes all values of its type now")
    else:
        if gone := {*before} - {*after}:
            yield breaking(path, f"{_some(len(gone), 'value')} no longer taken")
        if added := {*after} - {*before}:
            yield compatible(path, f"{_some(len(added), 'further value')} taken")
        if not gone and not added:
            yield compatible(path, "the values stand in another order")


def _some(count: int, what: str) -> str:
    return f"{count} {what} is" if count == 1 else f"{count} {what}s are"


def _bound_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    for name, what, is_least in _BOUNDS:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        looser = after is None or (before is not None and (after < before if is_least else after > before))
        yield judged(looser, f"{path}.{name}", f"{what} is {'looser' if looser else 'tighter'}")


_BOUNDS: Final = (
    ("minimum", "the least number", True),
    ("maximum", "the greatest number", False),
    ("min_length", "the least length", True),
    ("max_length", "the greatest length", False),
)


def _key_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    before, after = ({key.name: key for key in arg.keys} for arg in (old, new))
    if not before and not after:
        return
    for name, key in before.items():
        here = f"{path}.keys.{shown(name)}"
        if name in after:
            yield from _rule_changes(here, key, after[name], _Place(key=True))
        else:
            yield _gone_key(here, key, is_kept=_is_open(new))
    for name, key in after.items():
        if name not in before:
            yield _new_key(f"{path}.keys.{shown(name)}", key, new, was_kept=_is_open(old))
    if [*before] != [*after] and before.keys() == after.keys():
        yield compatible(f"{path}.keys", "the keys stand in another order")
    if _is_open(old) != _is_open(new):
        text = "keys without a name here are taken now" if _is_open(new) else "keys without a name here are refused"
        yield judged(_is_open(new), f"{path}.extra_keys", text)
    elif old.extra_keys != new.extra_keys:
        yield compatible(f"{path}.extra_keys", "keys without a name here are taken as they were")


def _is_open(arg: ArgSpec) -> bool:
    """Tell whether a map takes keys that its spec does not name."""
    return arg.extra_keys or not arg.keys


def _gone_key(path: str, key: ArgSpec, *, is_kept: bool) -> Change:
    """Return what became of a key that has no spec any more; an open map takes what `any` takes under it."""
    if not is_kept:
        return breaking(path, "the key is gone")
    is_plain = key.default is UNSET and not key.keys and not key.secret
    return judged(is_plain and takes_all(ArgType.ANY, key.type), path, "the key has no spec any more")


def _new_key(path: str, key: ArgSpec, map: ArgSpec, *, was_kept: bool) -> Change:
    """Return what a key means that had no spec before; a default fills the map, which may be full."""
    if was_kept:
        goes_on = key.type is ArgType.ANY and not key.required and key.default is UNSET
        return judged(goes_on, path, "the key could hold anything, and has a spec now")
    fills = key.default is not UNSET and map.max_length is not None
    return judged(not key.required and not fills, path, _ADDED[bool(key.required)].format("key"))
