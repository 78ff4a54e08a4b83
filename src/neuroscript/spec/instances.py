"""Conversion between exact plain values and instances of the classes that a spec names.

Instances are made after all checks, for the function alone: an Enum member is looked up by its choice, the text of a
format is parsed, and a class is called with its fields by name. The results of a function are converted back before
they are checked.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from enum import Enum, Flag
from functools import partial, reduce
from operator import or_
from typing import Any, Final, get_origin

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import BUILTINS, ELEMENTS, VALUES, ArgType
from neuroscript.errors import UNSET, ArgumentError, Problem, ReturnError
from neuroscript.spec.annotations import (
    CONTAINERS,
    MAPPINGS,
    allows_extra_keys,
    annotation_text,
    choice_of,
    is_pydantic_model,
    is_root_model,
    is_struct,
    is_typed_dict,
    root_of,
)
from neuroscript.spec.fields import LIBRARY, computed_fields_of, fields_of, library_fields, tag_of
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec, argument

Convert = Callable[[Any], Any]


def maker_of(arg: ArgSpec, tool: str) -> Convert | None:
    """Return the function that creates the instances in an argument of *tool*, or None if its spec has no class.

    Raises:
        ArgumentError: From the returned function, if a class rejects the values.
    """
    make = _maker(arg)
    if make is None:
        return None

    def made(value: Any) -> Any:
        try:
            return make(value)
        except Exception as error:
            cause = error.__cause__ if isinstance(error, _Rejected) else error
            raise ArgumentError(_problems(arg, value, error), tool) from cause

    return made


def _problems(arg: ArgSpec, value: Any, error: Exception) -> list[Problem]:
    """Return the problems that a class reports, by path and without values."""
    if not isinstance(error, _Rejected):
        error = _Rejected("", arg.cls, type_name(value), error)
    cls: Any = error.cls
    place = f"{arg.name}{error.where}"
    expected = HASHABLE if cls in SETS else f"a value that {annotation_text(cls)} accepts"
    details = getattr(error.__cause__, "errors", None)
    if callable(details) and is_pydantic_model(cls):
        return [
            Problem(
                f"{place}{_path(each['loc'])}", "coercion.class", f"{expected} ({each['type']})", "a rejected value"
            )
            for each in details(include_url=False, include_context=False, include_input=False)
        ]
    return [Problem(place, "coercion.class", expected, error.got)]


HASHABLE: Final = "an item that a set can hold, such as a string or a number"
SETS: Final = (set, frozenset)


def _path(steps: tuple[Any, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in steps)


class _Rejected(Exception):
    """A class rejected the values at a place within an argument.

    Attributes:
        where: The place, after the name of the argument.
        cls: The class.
        got: The name of the type of the value.
    """

    def __init__(self, where: str, cls: Any, got: str, cause: BaseException | None) -> None:
        super().__init__(where)
        self.where = where
        self.cls = cls
        self.got = got
        self.__cause__ = cause

    def below(self, step: str) -> _Rejected:
        """Return the same error with the path of its place, which began one step further up."""
        return _Rejected(f"{step}{self.where}", self.cls, self.got, self.__cause__)


def _maker(arg: ArgSpec) -> Convert | None:
    """Return the function that converts an exact value to instances, or None if there is nothing to convert."""
    make = _maker_of_value(arg)
    if make is None or (arg.required and not arg.nullable):
        return make
    return lambda value: None if value is None else make(value)


def _maker_of_value(arg: ArgSpec) -> Convert | None:
    cls: Any = arg.cls
    if is_root_model(cls):
        return _maker_of_root(cls)
    if isinstance(cls, type) and issubclass(cls, Flag):
        return lambda names: reduce(or_, (cls[name] for name in names), cls(0))
    if arg.any_of:
        return _maker_of_union(arg) if cls is None else _member(cls)
    if arg.type in ELEMENTS:
        return _maker_of_items(arg)
    if arg.format:
        if cls is None:
            return None
        from neuroscript.coercion.string_formats import FORMATS

        return FORMATS[arg.format].maker(cls)
    if isinstance(cls, type) and issubclass(cls, Enum):
        return _member(cls)
    if cls in MAPPINGS:
        return _maker_of_mapping(arg)
    if cls is bytearray:
        return bytearray
    return _maker_of_map(arg)


def _member(cls: Any) -> Convert:
    members = [(choice_of(member), member) for member in cls]
    table = {(type(choice), choice): member for choice, member in members}
    return lambda value: table[type(value), value]


def _maker_of_root(cls: Any) -> Convert:
    make, call = _maker(argument("root", root_of(cls))), _caller(cls)
    return call if make is None else lambda value: call(make(value))


def _maker_of_items(arg: ArgSpec) -> Convert | None:
    container: Any = _set_maker(arg.cls) if arg.cls in SETS else arg.cls if arg.cls in CONTAINERS else None
    if arg.prefix_items:
        makers = [_maker(each) for each in arg.prefix_items]
        if not any(makers) and container is None:
            return None
        return lambda values: (container or list)(_made_items(makers, values))
    inner = _maker(arg.items) if arg.items is not None else _maker_of_element(arg, None if container else arg.cls)
    if inner is None:
        make: Convert | None = container
        return make

    def made(values: list[Any]) -> Any:
        items: list[Any] = []
        for value in values:
            try:
                items.append(inner(value))
            except _Rejected as error:
                raise error.below(f"[{len(items)}]") from error.__cause__
        return items if container is None else container(items)

    return made


def _set_maker(cls: Any) -> Convert:
    """Return the function that makes a set; the error for an item that cannot be hashed names the item."""

    def made(values: list[Any]) -> Any:
        try:
            return cls(values)
        except TypeError:
            for index, value in enumerate(values):
                try:
                    hash(value)
                except TypeError as error:
                    raise _Rejected(f"[{index}]", cls, type_name(value), error) from error
            raise

    return made


def _made_items(makers: Sequence[Convert | None], values: list[Any]) -> list[Any]:
    """Return each value converted by its maker."""
    each_value = enumerate(zip(makers, values, strict=True))
    return [value if make is None else _made_at(f"[{index}]", make, value) for index, (make, value) in each_value]


def _made_at(step: str, make: Convert, value: Any) -> Any:
    """Return an instance; if a class rejects the value, the error says at which step of its path."""
    try:
        return make(value)
    except _Rejected as error:
        raise error.below(step) from error.__cause__


def _maker_of_element(arg: ArgSpec, cls: Any) -> Convert | None:
    """Return the maker for the elements of a slice whose type says everything but their class."""
    if cls is None and not arg.keys:
        return None
    if isinstance(cls, type) and issubclass(cls, Enum):
        return _member(cls)
    return _maker_of_record(cls, arg.keys)


def _maker_of_map(arg: ArgSpec) -> Convert | None:
    if arg.cls is not None or (arg.keys and arg.value_spec is None):
        return _maker_of_record(arg.cls, arg.keys)
    keys = {each.name: _maker(each) for each in arg.keys}
    make_key = _maker(arg.key_spec) if arg.key_spec is not None else None
    make_value = _maker(arg.value_spec) if arg.value_spec is not None else None
    if make_key is None and make_value is None and not any(keys.values()):
        return None

    def made(values: dict[Any, Any]) -> dict[Any, Any]:
        result = {}
        for key, value in values.items():
            make = keys.get(key, make_value)
            name = key if make_key is None or key in keys else make_key(key)
            result[name] = value if make is None else _made_at(f"[{key!r}]", make, value)
        return result

    return made


def _maker_of_mapping(arg: ArgSpec) -> Convert:
    """Return the function that makes an OrderedDict or a defaultdict."""
    inner = _maker(attrs.evolve(arg, cls=None))
    create: Any = partial(defaultdict, _factory_of(arg)) if arg.cls is defaultdict else arg.cls
    return create if inner is None else lambda values: create(inner(values))


def _factory_of(arg: ArgSpec) -> Callable[[], Any] | None:
    """Return what makes the missing values of a defaultdict, or None if their type has no empty value."""
    from neuroscript.spec.nested_values import value_of

    value = value_of(arg)
    cls: Any = value.cls
    if value.nullable or value.min_length or value.prefix_items or is_root_model(cls):
        return None
    if value.type in ELEMENTS:
        is_flag = isinstance(cls, type) and issubclass(cls, Flag)
        return cls if cls in CONTAINERS else None if is_flag else list
    if cls is defaultdict:
        return partial(defaultdict, _factory_of(value))
    if cls in MAPPINGS or cls is bytearray:
        create: Callable[[], Any] = cls
        return create
    has_rules = value.keys or value.choices or value.format or value.lowest is not None or value.highest is not None
    return None if has_rules or cls is not None else EMPTY.get(value.type)


SCALARS: Final = (ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL, ArgType.BLOB)
EMPTY: Final = {kind: BUILTINS[kind] for kind in (*SCALARS, *VALUES)}
"""What makes the empty value of a type."""


def _maker_of_record(cls: Any, keys: tuple[ArgSpec, ...]) -> Convert | None:
    """Return the function that makes an instance, and the instances in its fields, from a map of its fields."""
    inner = [(key.name, make) for key in keys if (make := _maker_of_value(key)) is not None]
    call = None if cls is None or is_typed_dict(get_origin(cls) or cls) else _caller(cls)
    if not inner:
        return call

    def made(values: dict[str, Any]) -> Any:
        fields = values.copy()
        for name, make in inner:
            value = values.get(name)
            if value is not None:
                try:
                    fields[name] = make(value)
                except _Rejected as error:
                    raise error.below(f"['{name}']") from error.__cause__
        return fields if call is None else call(fields)

    return made


def _caller(cls: Any) -> Convert:
    """Return the function that makes an instance of a class from its fields by name."""
    origin = get_origin(cls) or cls
    if is_pydantic_model(origin):
        create: Convert = cls.model_validate
    elif is_struct(origin):
        names = {field.name: field.attribute for field in fields_of(cls) if field.attribute}
        create = lambda fields: origin(**{names[name]: value for name, value in fields.items() if name in names})  # noqa: E731
    else:
        create = lambda fields: origin(**fields)  # noqa: E731

    def called(fields: dict[str, Any]) -> Any:
        try:
            return create(fields)
        except Exception as error:
            raise _Rejected("", origin, type_name(fields), error) from error

    return called


def _maker_of_union(arg: ArgSpec) -> Convert | None:
    """Return the function that makes an instance of the alternative that an exact value strictly is."""
    makers = {id(each): make for each in arg.any_of if (make := _maker(each)) is not None}
    if not makers:
        return None
    from neuroscript.coercion.unions import alternative_of

    def made(value: Any) -> Any:
        make = makers.get(id(alternative_of(arg, value)))
        return value if make is None else make(value)

    return made


def plain_of(arg: ArgSpec) -> Convert | None:
    """Return the function that converts instances in a result to plain data, or None if the spec has no class.

    It takes instances of the declared classes apart, at every depth. It returns any other value unchanged, because the
    check of the result then reports its place. It calls no code but the attributes of instances.
    """
    if is_root_model(arg.cls):
        return _plain_of_root(arg)
    if arg.any_of:
        parts = [plain for each in arg.any_of if (plain := plain_of(each)) is not None]
        if arg.cls is not None:
            parts.append(_plain_member)
        return _one_by_one(parts) if parts else None
    if arg.type in ELEMENTS:
        return _plain_of_items(arg)
    if arg.format:
        return None  # the check of a format accepts instances
    if isinstance(arg.cls, type) and issubclass(arg.cls, Enum):
        return _plain_member
    if arg.cls in MAPPINGS:
        return _plain_of_mapping(arg)
    if arg.keys or arg.value_spec is not None or arg.key_spec is not None:
        return _plain_of_map(arg)
    return None if arg.cls is not bytearray else lambda value: bytes(value) if type(value) is bytearray else value


def _plain_of_root(arg: ArgSpec) -> Convert:
    from neuroscript.spec.refinements import with_computed_fields

    cls: Any = arg.cls
    root = argument("root", root_of(cls))
    plain = plain_of(with_computed_fields(root) if arg == with_computed_fields(arg) else root)

    def of_root(value: Any) -> Any:
        root = value.root if isinstance(value, cls) else value
        return root if plain is None or root is None else plain(root)

    return of_root


def _one_by_one(parts: list[Convert]) -> Convert:
    """Return the function that applies conversions in order; each leaves instances of other classes as they are."""

    def converted(value: Any) -> Any:
        for plain in parts:
            value = plain(value)
        return value

    return converted


def _plain_member(value: Any) -> Any:
    return choice_of(value) if isinstance(value, Enum) and value is not UNSET else value


def _plain_of_items(arg: ArgSpec) -> Convert | None:
    cls: Any = arg.cls
    if isinstance(cls, type) and issubclass(cls, Flag):
        flags: Any = cls
        return lambda value: [each.name for each in flags if each in value] if isinstance(value, flags) else value
    if arg.prefix_items:
        parts = [plain_of(each) for each in arg.prefix_items]

        def of_tuple(value: Any) -> Any:
            if not isinstance(value, (list, tuple)):
                return value
            plains = (*parts, *[None] * (len(value) - len(parts)))
            return [each if plain is None else plain(each) for plain, each in zip(plains, value, strict=False)]

        return of_tuple
    element = None if cls in CONTAINERS else cls
    inner = plain_of(arg.items) if arg.items is not None else None
    if arg.items is None and isinstance(element, type) and issubclass(element, Enum):
        inner = _plain_member
    elif arg.items is None and (arg.keys or element is not None):
        inner = _plain_of_record(element, arg.keys)
    if inner is None and cls not in CONTAINERS and not arg.unique_items:
        return None

    def of_items(value: Any) -> Any:
        if not isinstance(value, (list, tuple, set, frozenset, deque)):
            return value
        return [*value] if inner is None else [inner(each) for each in value]

    return of_items


def _plain_of_map(arg: ArgSpec) -> Convert | None:
    if arg.cls is not None or (arg.keys and arg.value_spec is None):
        return _plain_of_record(arg.cls, arg.keys)
    keys = {each.name: plain_of(each) for each in arg.keys}
    plain_key = plain_of(arg.key_spec) if arg.key_spec is not None else None
    plain_value = plain_of(arg.value_spec) if arg.value_spec is not None else None
    if plain_key is None and plain_value is None and not any(keys.values()):
        return None

    def converted(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        result = {}
        for key, each in value.items():
            plain = keys.get(key, plain_value) if type(key) is str else plain_value
            result[key if plain_key is None else plain_key(key)] = each if plain is None else plain(each)
        return result

    return converted


def _plain_of_mapping(arg: ArgSpec) -> Convert:
    inner = plain_of(attrs.evolve(arg, cls=None))
    cls: Any = arg.cls

    def converted(value: Any) -> Any:
        plain = dict(cls.items(value)) if isinstance(value, cls) else value  # the order of an OrderedDict is its own
        return plain if inner is None else inner(plain)

    return converted


def _plain_of_record(cls: Any, keys: tuple[ArgSpec, ...]) -> Convert | None:
    inner = {key.name: plain for key in keys if (plain := plain_of(key)) is not None}
    origin = get_origin(cls) or cls
    has_instances = cls is not None and not is_typed_dict(origin)
    if not inner and not has_instances:
        return None
    attributes = {field.name: field.attribute for field in fields_of(cls)} if has_instances else {}
    names = {key.name for key in keys}
    computed = [field for field in computed_fields_of(cls) if field.name in names] if has_instances else []
    has_extra = has_instances and allows_extra_keys(cls)
    has_library_types = has_instances and is_pydantic_model(origin) and bool(library_fields(origin) or computed)
    tag = tag_of(origin) if has_instances else {}

    def converted(value: Any) -> Any:
        if has_instances and isinstance(value, origin):
            instance = value
            value = {name: getattr(value, at) for name, at in attributes.items() if at and hasattr(value, at)} | tag
            if has_extra:
                value |= instance.__pydantic_extra__ or {}
            value |= {field.name: _computed(instance, field.attribute) for field in computed}
            if has_library_types:
                value = {name: _plain_of_library(each) for name, each in value.items()}
        elif not isinstance(value, dict):
            return value
        return {name: inner[name](each) if name in inner else each for name, each in value.items()}

    return converted


class _NotComputed(Exception):
    """A computed field of a result failed. The arguments are its name and the name of the type of its exception."""


def _computed(instance: Any, name: str) -> Any:
    try:
        return getattr(instance, name)
    except Exception as error:
        raise _NotComputed(name, type_name(error)) from error


def _plain_of_library(value: Any) -> Any:
    """Return the JSON form of an instance of a class of pydantic, such as a URL; any other value unchanged."""
    if type(value) in (list, tuple, set, frozenset):
        return [_plain_of_library(each) for each in value]
    if type(value) is dict:
        return {key: _plain_of_library(each) for key, each in value.items()}
    if type(value).__module__.partition(".")[0] not in LIBRARY or is_pydantic_model(type(value)):
        return value
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def plain_default(arg: ArgSpec, default: Any) -> Any:
    """Return a default as a caller would pass it: Enum members and instances become plain values."""
    plain = plain_of(arg)
    return default if plain is None or default is None else plain(default)


PLAIN_RESULT: Final = "plain result"
"""The key of the function for results in `ToolSpec.exports`."""


def plain_result(spec: ToolSpec, result: Any) -> Any:
    """Return the result of a function, as *spec.returns* describes it, with its instances as plain data."""
    plain = spec.exports.get(PLAIN_RESULT, UNSET)
    if plain is UNSET:
        assert spec.returns is not None
        plain = spec.exports[PLAIN_RESULT] = plain_of(spec.returns)
    try:
        return result if plain is None or result is None else plain(result)
    except _NotComputed as error:
        name, kind = error.args
        raise ReturnError(
            f"result: the computed field {name} failed ({kind})", tool=spec.full_name
        ) from error.__cause__


def share_plain_result(spec: ToolSpec, plain: Convert) -> None:
    """Let a spec without classes, such as one from an index, take the instances of another spec apart."""
    spec.exports[PLAIN_RESULT] = plain
