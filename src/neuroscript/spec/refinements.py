"""The fields of an `ArgSpec` that refine its type: items, keys and values, alternatives, formats and classes.

Each refinement has one canonical form. What a type of the contract can express is expressed by it: a `slice` whose
items are ints becomes a `slice_int`, and a `map` whose values are strings a `map_string_string`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, get_origin

import attrs

from neuroscript.coercion.parameters import FLAG, STRING, Form, field_problems
from neuroscript.coercion.string_formats import FORMATS, format_of_class
from neuroscript.coercion.types import CHOICE_TYPES, ELEMENTS, LISTS, MAPS, UNTYPED_LISTS, VALUES, ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.spec.annotations import (
    CONTAINERS,
    MAPPINGS,
    UnsupportedAnnotation,
    annotation_text,
    choice_of,
    hint_of,
    is_pydantic_model,
    is_record,
    is_root_model,
    record_of,
    replaces_item,
)
from neuroscript.spec.tool_spec import DECLARED, ELEMENT_FIELDS, ITEMS, ArgSpec, ToolSpec, _set, argument

FORMAT: Final = Form(f"one of {', '.join(FORMATS)}", STRING.accepts, lambda name: not name or name in FORMATS)
NESTED: Final = Form("an ArgSpec, an ArgType or its name", lambda spec: isinstance(spec, (ArgSpec, str)))
SPECS: Final = Form(
    "a list or tuple of ArgSpecs, ArgTypes or their names", lambda specs: isinstance(specs, (list, tuple))
)
ROLES: Final = {
    "items": "item",
    "value_spec": "value",
    "key_spec": "key",
    "prefix_items": "item",
    "any_of": "alternative",
}
"""The name of a nested spec, by the field that holds it."""

MAP_VALUES: Final = {value: kind for kind, value in VALUES.items() if value is not ArgType.ANY}
ANY_MAPS: Final = MAPS | {ArgType.MAP_ANY_ANY}


def settle_refinements(arg: ArgSpec) -> Iterator[str]:
    """Convert the refining fields to their canonical form, and yield a sentence for each that is invalid."""
    faults = [*field_problems(arg, unique_items=FLAG, format=FORMAT), *_settle_nested(arg)]
    if not faults:
        faults = [*_settle_class(arg), *_settle_alternatives(arg)] or [*_misplaced(arg)]
    if faults:
        yield from faults
        return
    _lift_items(arg)
    _lift_values(arg)
    refined = (arg.items, arg.value_spec, arg.key_spec) != (None, None, None)
    _set(arg, "is_refined", bool(refined or arg.prefix_items or arg.unique_items or arg.any_of or arg.format))
    if arg.any_of:
        _set(arg, "discriminator", _discriminator(arg.any_of))


def settle_returns(spec: ToolSpec) -> Iterator[str]:
    """Convert the spec of a result, and derive the type of the result from it."""
    faults: list[str] = []
    returns = _nested_spec(spec.returns, "result", "returns", faults)
    if faults:
        yield from faults
        return
    try:
        returns = with_computed_fields(returns)
    except (UnsupportedAnnotation, SpecError) as error:
        yield str(error)
        return
    is_bare = returns == ArgSpec("result", returns.type, nullable=returns.nullable)
    _set(spec, "returns", None if is_bare else returns)
    _set(spec, "return_type", returns.type)
    _set(spec, "return_nullable", spec.return_nullable or (returns.nullable and returns.type is not ArgType.NIL))


def with_computed_fields(arg: ArgSpec, above: tuple[Any, ...] = ()) -> ArgSpec:
    """Return the spec of a result with keys for the computed fields of pydantic models, at every depth."""
    if not _has_computed_fields(arg):
        return arg
    record = record_of(arg.cls)
    changes: dict[str, Any] = {"keys": result_keys(record, arg.keys, above)}
    if record is not None:
        above = (*above, record)
    for name in ("items", "value_spec"):
        if getattr(arg, name) is not None:
            changes[name] = with_computed_fields(getattr(arg, name), above)
    for name in ("prefix_items", "any_of"):
        changes[name] = tuple(with_computed_fields(each, above) for each in getattr(arg, name))
    return attrs.evolve(arg, **changes)


def result_keys(cls: Any, keys: tuple[ArgSpec, ...], above: tuple[Any, ...] = ()) -> tuple[ArgSpec, ...]:
    """Return the keys of a result with those of the computed fields of a class.

    Raises:
        UnsupportedAnnotation: A computed field has no ArgType, or the class contains itself by one.
    """
    from neuroscript.spec.fields import computed_fields_of

    record = record_of(cls)
    if record is not None and record in above:
        raise UnsupportedAnnotation(
            f"{annotation_text(record)} contains itself by a computed field; remove its annotation"
        )
    inside = above if record is None else (*above, record)
    names = {key.name for key in keys}
    computed = () if record is None else computed_fields_of(record)
    added = (argument(each.name, each.hint, required=False) for each in computed if each.name not in names)
    return tuple(with_computed_fields(each, inside) for each in (*keys, *added))


def _has_computed_fields(arg: ArgSpec) -> bool:
    model = record_of(arg.cls)
    model = get_origin(model) or model
    has_own = model is not None and is_pydantic_model(model) and bool(model.model_computed_fields)
    return has_own or any(map(_has_computed_fields, arg.nested))


def _settle_nested(arg: ArgSpec) -> Iterator[str]:
    faults: list[str] = []
    for name in ("items", "value_spec", "key_spec"):
        if getattr(arg, name) is not None:
            _set(arg, name, _nested_spec(getattr(arg, name), ROLES[name], name, faults))
    for name in ("prefix_items", "any_of"):
        specs = getattr(arg, name)
        if SPECS.accepts(specs):
            _set(arg, name, tuple(_nested_spec(each, ROLES[name], name, faults) for each in specs))
        else:
            faults.extend(SPECS.problems(name, specs))
    yield from faults


def _nested_spec(spec: Any, role: str, field: str, faults: list[str]) -> Any:
    """Return a nested spec under the name of its role, or None after recording why it is invalid."""
    if not NESTED.accepts(spec):
        faults.extend(NESTED.problems(field, spec))
        return None
    if not isinstance(spec, ArgSpec):
        try:
            return ArgSpec(role, spec)
        except SpecError as error:
            faults.extend(f"{field}: {problem}" for problem in error.problems)
            return None
    if not spec.required or spec.default is not UNSET:
        faults.append(f"{field}: required and default are valid for arguments and keys only")
    if spec.secret:
        faults.append(f"{field}: secret is valid for arguments and keys only")
    return spec if spec.name == role or not spec.required else attrs.evolve(spec, name=role)


def _settle_class(arg: ArgSpec) -> Iterator[str]:
    cls = arg.cls
    if cls is None:
        return
    if isinstance(cls, type) and issubclass(cls, Enum):
        yield from _settle_members(arg, cls)
    elif is_root_model(cls):
        try:
            hint = attrs.evolve(hint_of(cls), cls=None)
            expected = (hint.type, argument(arg.name, hint).type)
        except (UnsupportedAnnotation, SpecError) as error:
            yield str(error)
            return
        if arg.type not in expected:
            yield f"cls {annotation_text(cls)} is valid for {expected[0]}, not for {arg.type}"
    elif cls in CONTAINERS:
        if arg.type not in ELEMENTS:
            yield f"cls {annotation_text(cls)} is valid for a slice, not for {arg.type}"
        elif cls in (set, frozenset):
            _set(arg, "unique_items", True)
    elif cls in MAPPINGS:
        if arg.type not in VALUES:
            yield f"cls {annotation_text(cls)} is valid for a map, not for {arg.type}"
    elif cls is bytearray:
        if arg.type is not ArgType.BLOB:
            yield f"cls bytearray is valid for blob, not for {arg.type}"
    elif is_record(cls):
        if arg.type not in DECLARED:
            yield f"cls {annotation_text(cls)} is valid for map and slice_map, not for {arg.type}"
    else:
        name = format_of_class(cls) if isinstance(cls, type) else None
        if name is None:
            yield (
                "cls must be an Enum, a class with fields or of a format, tuple, set, frozenset, deque, OrderedDict, "
                "defaultdict or bytearray"
            )
        elif arg.type is not ArgType.STRING or arg.format not in ("", name):
            yield f"cls {annotation_text(cls)} is valid for a string of the format {name}"
        else:
            _set(arg, "format", name)


def _settle_members(arg: ArgSpec, cls: type[Enum]) -> Iterator[str]:
    """Derive the choices of an Enum; some of its members may be selected."""
    try:
        hint = hint_of(cls)
    except UnsupportedAnnotation as error:
        yield str(error)
        return
    if arg.keys or arg.extra_keys:
        yield "keys and extra_keys are not valid for an Enum"
    elif not ITEMS.accepts(arg.choices):
        yield from ITEMS.problems("choices", arg.choices)
    elif hint.any_of:
        if arg.type is not hint.type:
            yield f"the values of {annotation_text(cls)} have several types; use any"
        elif not arg.any_of:
            _set(arg, "any_of", tuple(argument("alternative", each) for each in hint.any_of))
    elif arg.type not in (hint.type, LISTS.get(hint.type)):
        yield f"the values of {annotation_text(cls)} are of type {hint.type}, which does not fit {arg.type}"
    else:
        chosen = tuple(choice_of(each) if isinstance(each, Enum) else each for each in arg.choices or hint.choices)
        if not {*map(repr, chosen)} <= {*map(repr, hint.choices)}:
            yield "choices are derived from cls; pass only members of it"
        _set(arg, "choices", chosen)
        _set(arg, "unique_items", arg.unique_items or hint.unique_items)


def _settle_alternatives(arg: ArgSpec) -> Iterator[str]:
    """Flatten unions of unions, and make None a property of the union itself."""
    if not arg.any_of:
        return
    alternatives: list[ArgSpec] = []
    for each in arg.any_of:
        if each.nullable:
            _set(arg, "nullable", True)
        if each.type is ArgType.NIL:
            continue
        plain = attrs.evolve(each, nullable=False) if each.nullable else each
        is_union = bool(plain.any_of) and plain.cls is None and not plain.description
        alternatives.extend(one for one in (plain.any_of if is_union else [plain]) if one not in alternatives)
    _set(arg, "any_of", tuple(alternatives))
    if len(alternatives) < 2:
        yield "any_of requires two different alternatives besides null; use the only one"


def _misplaced(arg: ArgSpec) -> Iterator[str]:
    """Yield a sentence for each refinement that does not belong to the type."""
    kind = arg.type
    if (arg.items or arg.prefix_items) and kind not in UNTYPED_LISTS:
        yield f"items and prefix_items refine slice, not {kind}"
    if arg.items and arg.prefix_items:
        yield "pass either items or prefix_items"
    if (arg.items or arg.prefix_items or arg.any_of) and _has_constraints(arg):
        yield "choices, keys, minimum and maximum belong to the nested specs"
    if arg.prefix_items and (arg.min_length is not None or arg.max_length is not None):
        yield "the length follows from prefix_items"
    if arg.prefix_items and arg.unique_items:
        yield "pass either prefix_items or unique_items"
    if arg.cls in (set, frozenset) and (kind is ArgType.SLICE_MAP or (arg.items and not _is_hashable(arg.items))):
        yield f"the items of a {annotation_text(arg.cls)} must be hashable; use list"
    if arg.unique_items and kind not in ELEMENTS:
        yield f"unique_items refines slices, not {kind}"
    if arg.value_spec and kind not in ANY_MAPS:
        yield f"value_spec refines map and map_any_any, not {kind}"
    if arg.value_spec and arg.extra_keys:
        yield "value_spec describes the values of further keys; leave extra_keys out"
    if arg.key_spec and kind not in ANY_MAPS:
        yield f"key_spec refines map and map_any_any, not {kind}"
    elif arg.key_spec and not _fits_key(arg.key_spec, kind):
        allowed = "string" if kind in MAPS else "string, int, float or bool"
        yield f"key_spec of {kind} must be a {allowed} that is not nullable"
    if arg.any_of and kind is not ArgType.ANY:
        yield f"any_of refines any, not {kind}"
    if arg.format and kind is not ArgType.STRING:
        yield f"format refines string, not {kind}"
    if arg.format and arg.choices:
        yield "pass either format or choices"


def _is_hashable(arg: ArgSpec) -> bool:
    """Return whether the instances of a spec can be items of a set."""
    if arg.any_of:
        return all(map(_is_hashable, arg.any_of))
    if arg.type in ELEMENTS:
        is_items = arg.cls in (tuple, frozenset) and all(map(_is_hashable, arg.nested))
        return is_items or (isinstance(arg.cls, type) and issubclass(arg.cls, Enum))
    if arg.type in VALUES:
        return getattr(get_origin(arg.cls) or arg.cls or dict, "__hash__", None) is not None
    return arg.type is not ArgType.EMBEDDING and arg.cls is not bytearray


def _has_constraints(arg: ArgSpec) -> bool:
    bounds = (arg.minimum, arg.maximum, arg.exclusive_minimum, arg.exclusive_maximum)
    return bool(arg.choices or arg.keys or arg.extra_keys) or bounds != (None, None, None, None)


def _fits_key(key: ArgSpec, kind: ArgType) -> bool:
    allowed = {ArgType.STRING} if kind in MAPS else CHOICE_TYPES
    return key.type in allowed and not key.nullable


def _lift_items(arg: ArgSpec) -> None:
    """Express the items by the type of the slice if it can."""
    items = arg.items
    if items is None or items.type not in LISTS or items.is_refined or items.nullable or items.description:
        return
    if (items.min_length, items.max_length) != (None, None) or (items.cls is not None and arg.cls is not None):
        return
    if replaces_item(items.cls):
        return
    _set(arg, "items", None)
    if items.type is ArgType.ANY:
        return
    _set(arg, "type", LISTS[items.type])
    for name in ELEMENT_FIELDS:
        _set(arg, name, getattr(items, name))
    if items.cls is not None:
        _set(arg, "cls", items.cls)


def _lift_values(arg: ArgSpec) -> None:
    """Express keys and values by the type of the map if it can."""
    key, value = arg.key_spec, arg.value_spec
    if key is not None and key == ArgSpec("key", ArgType.STRING):
        _set(arg, "key_spec", None)
        if arg.type is ArgType.MAP_ANY_ANY:
            _set(arg, "type", ArgType.MAP)
    is_any = value == ArgSpec("value", ArgType.ANY)
    if value is None or (arg.keys and not is_any):
        return
    if is_any:
        _set(arg, "value_spec", None)
        _set(arg, "extra_keys", bool(arg.keys))
    elif (
        arg.key_spec is None and arg.type in MAPS and value.type in MAP_VALUES and value == ArgSpec("value", value.type)
    ):
        _set(arg, "value_spec", None)
        _set(arg, "type", MAP_VALUES[value.type])


def _discriminator(alternatives: Sequence[ArgSpec]) -> str:
    """Return the key whose choices tell the maps among the alternatives apart, or ``""``."""
    maps = [each for each in alternatives if each.type in VALUES]
    if len(maps) < 2:
        return ""
    for key in maps[0].keys:
        tags = [next((other for other in each.keys if other.name == key.name), None) for each in maps]
        choices = [choice for tag in tags if tag is not None for choice in tag.choices]
        if all(tag is not None and tag.choices for tag in tags) and len({*map(repr, choices)}) == len(choices):
            return key.name
    return ""
