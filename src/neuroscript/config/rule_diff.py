"""Changes in the rule for one argument, key, item or value, and whether every accepted value is still accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.types import ELEMENTS, MAPS, VALUES, ArgType, accepts_all
from neuroscript.config.change import ADDED, NEW_DESCRIPTION, Change, breaking_change, change_of, compatible
from neuroscript.errors import UNSET, CoercionError
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.nested_values import bound_order, item_of, key_of, value_of
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.fingerprints import canonical_text

REFUSED: Final = object()
"""The result of omitting a required argument."""


@attrs.frozen
class Place:
    """The position of a spec.

    Attributes:
        many: Whether it applies to each further value of a variadic tool.
        key: Whether it applies to a key of a map.
        part: Whether it applies to items, to values or to one alternative.
    """

    many: bool = False
    key: bool = False
    part: bool = False


def rule_changes(path: str, old: ArgSpec, new: ArgSpec, place: Place) -> Iterator[Change]:
    """Yield the changes between two rules for the same place."""
    yield from _absence_changes(path, old, new, place)
    if old.any_of or new.any_of:
        yield from _union_changes(path, old, new)
    elif not accepts_all(new.type, old.type):
        yield breaking_change(f"{path}.type", f"changed from {old.type} to {new.type}")
    else:
        if new.type is not old.type:
            yield compatible(f"{path}.type", f"accepts more: {new.type} instead of {old.type}")
        if old.is_refined or new.is_refined:
            yield from _refinement_changes(path, old, new)
        else:
            yield from _choice_changes(f"{path}.choices", old.choices, new.choices)
            yield from _bound_changes(path, old, new)
            yield from _key_changes(path, old, new)
    if old.secret != new.secret:
        text = "its value is now secret" if new.secret else "its value is no longer secret"
        yield change_of(new.secret, f"{path}.secret", text)
    if old.description != new.description:
        yield compatible(f"{path}.description", NEW_DESCRIPTION)


def _absence_changes(path: str, old: ArgSpec, new: ArgSpec, place: Place) -> Iterator[Change]:
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


def _omitted_value(arg: ArgSpec, place: Place) -> Any:
    """Return the value of an omitted argument, or `UNSET` for a key that stays missing."""
    if arg.required:
        return REFUSED
    return None if arg.default is UNSET and not place.key else arg.default


def _none(arg: ArgSpec, place: Place) -> Any:
    """Return the value of an argument that is passed as None."""
    if arg.nullable or (place.part and arg.type is ArgType.ANY and not arg.is_refined):
        return None
    if arg.required or place.many:
        return REFUSED
    return None if arg.default is UNSET else arg.default


def same(one: object, other: object) -> bool:
    """Return whether two exact values have the same type and value, ignoring the order of keys."""
    if UNSET in (one, other):
        return one is other
    return canonical_text(one) == canonical_text(other)


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
        if _has_ambiguous_spelling(old, new):
            yield breaking_change(path, "values that differ only by case are ambiguous now")
        if not gone and not added:
            yield compatible(path, "the order of values changed")


def _has_ambiguous_spelling(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Return whether a spelling of an old choice is equal, but for case and blanks, to several new ones."""
    folded = Counter(each.strip().casefold() for each in new if type(each) is str)
    before = Counter(each.strip().casefold() for each in old if type(each) is str)
    return any(count == 1 and folded[text] > 1 for text, count in before.items())


def _some(count: int, what: str) -> str:
    return f"{count} {what} is" if count == 1 else f"{count} {what}s are"


def _bound_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    yield from _number_changes(path, old, new)
    yield from _length_changes(path, old, new)


def _number_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    for side, is_least in (("minimum", True), ("maximum", False)):
        before, after = bound_order(old, is_least=is_least), bound_order(new, is_least=is_least)
        one = new if after is not None else old
        name = side if getattr(one, side) is not None else f"exclusive_{side}"
        yield from _limit_changes(f"{path}.{name}", f"the {side}", before, after, is_least)


def _length_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    for name, what, is_least in _LENGTHS:
        yield from _limit_changes(f"{path}.{name}", what, getattr(old, name), getattr(new, name), is_least)


_LENGTHS: Final = (
    ("min_length", "the minimum length", True),
    ("max_length", "the maximum length", False),
)


def _limit_changes(path: str, what: str, old: Any, new: Any, is_least: bool) -> Iterator[Change]:
    """Yield the change between two limits of one side; None is no limit."""
    if old != new:
        looser = new is None or (old is not None and (new < old if is_least else new > old))
        yield change_of(looser, path, f"{what} is {'looser' if looser else 'tighter'}")


def _key_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    before, after = ({key.name: key for key in arg.keys} for arg in (old, new))
    if not before and not after:
        return
    for name, key in before.items():
        here = f"{path}.keys.{quote_untrusted(name)}"
        if name in after:
            yield from rule_changes(here, key, after[name], Place(key=True))
        else:
            yield _gone_key(here, key, new)
    for name, key in after.items():
        if name not in before:
            yield _new_key(f"{path}.keys.{quote_untrusted(name)}", key, old, new)
    if [*before] != [*after] and before.keys() == after.keys():
        yield compatible(f"{path}.keys", "the order of keys changed")
    if _is_open(old) != _is_open(new):
        text = "now accepts unknown keys" if _is_open(new) else "no longer accepts unknown keys"
        yield change_of(_is_open(new), f"{path}.extra_keys", text)
    elif old.extra_keys != new.extra_keys:
        yield compatible(f"{path}.extra_keys", "accepts unknown keys as before")


def _is_open(arg: ArgSpec) -> bool:
    """Return whether a map accepts keys without a spec of their own."""
    return arg.extra_keys or not arg.keys or arg.value_spec is not None


def _gone_key(path: str, key: ArgSpec, new: ArgSpec) -> Change:
    """Return the change for a key that no longer has a spec; an open map accepts its other values under it."""
    if not _is_open(new):
        return breaking_change(path, "the key was removed")
    others = value_of(new)
    may_be_none = key.nullable or not key.required
    is_plain = key.default is UNSET and not key.holds_secret
    goes_on = is_plain and _accepts_rule(key, others) and (not may_be_none or _accepts_none(others))
    return change_of(goes_on, path, "the key no longer has a spec")


def _new_key(path: str, key: ArgSpec, old: ArgSpec, new: ArgSpec) -> Change:
    """Return the change for a key that has a new spec. A default adds a key to a map that may already be full."""
    if _is_open(old):
        goes_on = not key.required and key.default is UNSET and _accepts_rule(value_of(old), key)
        what = "any value" if value_of(old) == ArgSpec("value", ArgType.ANY) else "other values"
        return change_of(goes_on, path, f"the key accepted {what} and now has a spec")
    fills = key.default is not UNSET and new.max_length is not None
    return change_of(not key.required and not fills, path, ADDED[bool(key.required)].format("key"))


def _accepts_none(rule: ArgSpec) -> bool:
    return rule.nullable or (rule.type is ArgType.ANY and not rule.is_refined)


def _accepts_rule(old: ArgSpec, new: ArgSpec) -> bool:
    """Return whether a rule accepts every value except None that another one accepts."""
    changes = rule_changes("", _bare(old), _bare(new), Place(part=True))
    return all(each.kind == "compatible" for each in changes)


def _bare(rule: ArgSpec) -> ArgSpec:
    """Return a rule without what is said about missing values, None and secrets."""
    return attrs.evolve(rule, name="item", required=True, default=UNSET, nullable=False, secret=False)


# Refinements


def _refinement_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    """Yield the changes between two specs of compatible types of which at least one is refined."""
    if old.format != new.format:
        yield breaking_change(f"{path}.format", _FORMAT[bool(old.format), bool(new.format)])
    if old.unique_items != new.unique_items:
        text = "repeated items are now dropped or refused" if new.unique_items else "repeated items now stay"
        yield breaking_change(f"{path}.unique_items", text)
    yield from _length_changes(path, old, new)
    if old.type in ELEMENTS:
        yield from _item_changes(path, old, new)
    elif old.type in VALUES:
        yield from _entry_changes(path, old, new)
    else:
        yield from _choice_changes(f"{path}.choices", old.choices, new.choices)
        yield from _number_changes(path, old, new)


_FORMAT: Final = {
    (False, True): "now has to be in a format",
    (True, False): "is no longer read by its format",
    (True, True): "has to be in another format",
}


def _item_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    if old.prefix_items or new.prefix_items:
        yield from _tuple_changes(f"{path}.prefix_items", old, new)
    else:
        yield from rule_changes(f"{path}.items", item_of(old), item_of(new), Place(part=True))


def _tuple_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    if new.type is ArgType.ANY:
        for index, each in enumerate(old.prefix_items):
            yield from rule_changes(f"{path}[{index}]", each, item_of(new), Place(part=True))
    elif len(old.prefix_items) != len(new.prefix_items):
        yield breaking_change(path, "the number of items changed")
    else:
        for index, (before, after) in enumerate(zip(old.prefix_items, new.prefix_items, strict=True)):
            yield from rule_changes(f"{path}[{index}]", before, after, Place(part=True))


def _entry_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    yield from _key_changes(path, old, new)
    if _is_open(old) and _is_open(new):
        yield from rule_changes(f"{path}.value_spec", value_of(old), value_of(new), Place(part=True))
    before, after = key_of(old), key_of(new)
    if before != after:
        yield from rule_changes(f"{path}.key_spec", before, after, Place(part=True))


# Unions


def _union_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    """Yield the changes between two specs of which at least one is a union.

    Strings are converted if no alternative can hold them, so a new alternative for strings changes their meaning.
    """
    path = f"{path}.any_of"
    if old.any_of and new.any_of:
        yield from _alternative_changes(path, old, new)
    elif new.any_of:
        goes_on = any(_accepts_rule(old, each) for each in new.any_of) and old.holds_text >= new.holds_text
        yield change_of(goes_on, path, "now accepts several alternatives")
    elif all(_accepts_rule(each, new) for each in old.any_of) and old.holds_text >= new.holds_text:
        yield compatible(path, "accepts more than its alternatives")
    else:
        yield breaking_change(path, "no longer accepts every alternative")


def _alternative_changes(path: str, old: ArgSpec, new: ArgSpec) -> Iterator[Change]:
    """Yield the changes between the alternatives of two unions, which are compared in order."""
    count = len(old.any_of)
    before, after = ([*map(_without_description, arg.any_of)] for arg in (old, new))
    if len(after) < count:
        yield breaking_change(path, "alternatives were removed")
        return
    for index in range(count):
        here = f"{path}[{index}]"
        if before[index] == after[index] or _is_told_apart(old, new, index):
            yield from rule_changes(here, old.any_of[index], new.any_of[index], Place(part=True))
        else:
            yield breaking_change(here, "the alternative changed")
    if len(after) > count:
        is_clear = old.holds_text >= new.holds_text
        text = "accepts further alternatives" if is_clear else "accepts strings that used to be converted"
        yield change_of(is_clear, path, text)


def _is_told_apart(old: ArgSpec, new: ArgSpec, index: int) -> bool:
    """Return whether values of one alternative cannot become values of another if its keys or items change."""
    shapes = [{each.any_of[index].type} for each in (old, new)]
    for shape in (MAPS, frozenset(ELEMENTS)):
        if all(each <= shape for each in shapes):
            is_only = all(sum(one.type in shape for one in arg.any_of) == 1 for arg in (old, new))
            return is_only or (shape is MAPS and bool(old.discriminator) and old.discriminator == new.discriminator)
    return False


def _without_description(arg: ArgSpec) -> ArgSpec:
    return attrs.evolve(arg, description="")
