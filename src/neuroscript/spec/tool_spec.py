"""The spec of a tool: its name, arguments, result and examples. An invalid spec cannot be created."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from neuroscript.coercion import values
from neuroscript.coercion.constraints import coerce_present, named_type, nearest_float, stricter_bounds
from neuroscript.coercion.context import LAX, RESULT, ROOT, CoercionPass
from neuroscript.coercion.parameters import (
    BY_NAME,
    FLAG,
    STRING,
    WHOLE,
    Form,
    field_problems,
    instance,
    optional,
    problems,
    require,
    require_fields,
    sequence,
)
from neuroscript.coercion.scalars import INT_MAX, INT_MIN, is_unicode
from neuroscript.coercion.types import CHOICE_TYPES, ELEMENTS, LENGTH_TYPES, NUMBER_TYPES, TEXT_HOLDERS, ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.io.text import NotJSON, parse_json, quote_untrusted
from neuroscript.names import MAX_NAME_CHARS, canonical, is_group_name, is_word, upstream_name, wire_name

RUNTIME: Final = "rt"
"""The name of a tool function's first parameter if it receives the Runtime."""

Class = type
"""An alias of `type` that a field called ``type`` does not hide."""

ARGUMENT_NAME: Final = re.compile(r"""[^\s{}\[\]()'"`]{1,128}""")
"""Imported tools use names such as ``user-id`` and ``from``. Whitespace, braces, brackets and quotes are excluded
because they would break paths and templates.
"""

MAYBE: Final = "maybe"
"""The value of `ToolSpec.stream` for a tool that may return a stream."""

SHORT_CHARS: Final = 1_000
"""The maximum length of a choice that is checked together with others."""

if TYPE_CHECKING:  # what type checkers accept for a field; `_settled` converts it, so a process needs no converter
    from neuroscript.spec.served import Prompt, Resource

    def _as_type(given: ArgType | str) -> ArgType: ...
    def _as_values(given: list[Any] | tuple[Any, ...]) -> tuple[Any, ...]: ...
    def _as_spec(given: ArgSpec | ArgType | str | None) -> ArgSpec | None: ...
    def _as_specs(given: Sequence[ArgSpec | ArgType | str]) -> tuple[ArgSpec, ...]: ...
    def _as_args(given: list[ArgSpec] | tuple[ArgSpec, ...]) -> tuple[ArgSpec, ...]: ...
    def _as_examples(given: list[Example] | tuple[Example, ...]) -> tuple[Example, ...]: ...

else:
    _as_type = _as_values = _as_spec = _as_specs = _as_args = _as_examples = None
    Prompt = Resource = Any  # loaded with the first tool that is served as one

NOTHING: Final[tuple[Any, ...]] = ()
DECLARED: Final = frozenset({ArgType.MAP, ArgType.MAP_STRING_ANY, ArgType.SLICE_MAP})

# What a field has to be

ARGUMENT: Final = Form(
    "1 to 128 printable characters without whitespace, braces, brackets and quotes",
    STRING.accepts,
    lambda name: name.isprintable() and ARGUMENT_NAME.fullmatch(name) is not None,
)
ARGUMENTS: Final = Form(
    "a list or tuple, or a mapping with string keys",
    lambda args: isinstance(args, (list, tuple)) or BY_NAME.accepts(args),
)
CLASS: Final = Form("a class", lambda cls: isinstance(cls, (type, GenericAlias)) or hasattr(cls, "__origin__"))
FINITE: Final = Form(
    "a finite number",
    lambda number: type(number) in (int, float),
    lambda number: _exactly(ArgType.FLOAT, number) is not None,
)
BOUNDS: Final = {NUMBER_TYPES: FINITE, LENGTH_TYPES: WHOLE}
ITEMS: Final = Form("a list or tuple", lambda items: isinstance(items, (list, tuple)))
STREAM: Final = Form(
    f"True, False or {MAYBE!r}",
    lambda stream: isinstance(stream, (bool, str)),
    lambda stream: stream in (True, False, MAYBE),
)
TEXT: Final = Form("a valid Unicode string, without lone surrogates", STRING.accepts, is_unicode)
TEXTS: Final = dict.fromkeys(
    ("description", "when_to_use", "return_help", "category", "error_conditions", "deprecated", "schema", "definition"),
    TEXT,
)
TYPE: Final = Form("an ArgType or its name", STRING.accepts)

ELEMENT_FIELDS: Final = (
    *("choices", "keys", "extra_keys"),
    *("minimum", "maximum", "exclusive_minimum", "exclusive_maximum"),
)
"""The fields of a slice that apply to each of its elements."""


@attrs.frozen
class ArgSpec:
    """One argument of a tool, or one key of a map.

    Attributes:
        name: 1 to 128 printable characters without whitespace, braces, brackets and quotes.
        type: An `ArgType`, or its name.
        required: Whether it must be passed; None means "unless it has a default".
        default: The value if the argument is missing. It is coerced once and copied for each call.
        description: What it is, with its unit.
        nullable: Whether None is a valid value.
        choices: The only valid values, for the argument or for each element of a slice. The type must match too.
        keys: The keys of a map, or of each map of a slice, as nested specs.
        extra_keys: Whether keys that are not in *keys* are accepted, with type `any`.
        secret: Whether the value must never be displayed or logged.
        minimum: The minimum of a number, or of each element of a slice of numbers.
        maximum: The maximum of a number, or of each element of a slice of numbers.
        min_length: The minimum number of characters, bytes, items or keys.
        max_length: The maximum number of characters, bytes, items or keys.
        exclusive_minimum: A number that a value must exceed. Of integers it becomes the *minimum*; of a
            *minimum* and an *exclusive_minimum*, only the stricter one remains.
        exclusive_maximum: A number that a value must be less than, likewise.
        cls: The class whose instances the tool's function receives, created after all checks; everything else sees
            exact plain values. A class with fields (attrs, dataclass, TypedDict, NamedTuple, pydantic, msgspec) for a
            map, or for each map of a slice; its fields are the keys. An Enum, whose values are the choices, or a Flag,
            whose names are. A class of a *format*, such as `datetime.datetime`, for a string. ``tuple``, ``set``,
            ``frozenset`` or `collections.deque` for a slice. `collections.OrderedDict` or `collections.defaultdict`
            for a map, and ``bytearray`` for a blob.
        items: The spec of each item of a `slice`: an `ArgSpec`, an `ArgType` or its name.
        prefix_items: The specs of the items of a `slice` of fixed length, in order.
        unique_items: Whether the items of a slice must differ. Repeated items are dropped, or refused in strict mode.
        value_spec: The spec of each value of a `map`, or of each value without a spec in *keys*.
        key_spec: The spec of each key of a ``map_any_any``.
        any_of: Alternative specs for `any`. See docs/reference/types.md, "Unions", for how one is chosen.
        format: The format of a string, such as ``date-time``; see docs/reference/types.md, "Formats".

    Raises:
        SpecError: With every problem.
    """

    name: str
    type: ArgType = attrs.field(converter=_as_type)
    required: bool | None = attrs.field(default=None, kw_only=True)
    default: Any = attrs.field(default=UNSET, kw_only=True)
    description: str = attrs.field(default="", kw_only=True)
    nullable: bool = attrs.field(default=False, kw_only=True)
    choices: tuple[Any, ...] = attrs.field(default=(), kw_only=True, converter=_as_values)
    keys: tuple[ArgSpec, ...] = attrs.field(default=(), kw_only=True, converter=_as_args)
    extra_keys: bool = attrs.field(default=False, kw_only=True)
    secret: bool = attrs.field(default=False, kw_only=True)
    minimum: float | None = attrs.field(default=None, kw_only=True)
    maximum: float | None = attrs.field(default=None, kw_only=True)
    min_length: int | None = attrs.field(default=None, kw_only=True)
    max_length: int | None = attrs.field(default=None, kw_only=True)
    exclusive_minimum: float | None = attrs.field(default=None, kw_only=True)
    exclusive_maximum: float | None = attrs.field(default=None, kw_only=True)
    cls: Class | None = attrs.field(default=None, kw_only=True)
    items: ArgSpec | None = attrs.field(default=None, kw_only=True, converter=_as_spec)
    prefix_items: tuple[ArgSpec, ...] = attrs.field(default=(), kw_only=True, converter=_as_specs)
    unique_items: bool = attrs.field(default=False, kw_only=True)
    value_spec: ArgSpec | None = attrs.field(default=None, kw_only=True, converter=_as_spec)
    key_spec: ArgSpec | None = attrs.field(default=None, kw_only=True, converter=_as_spec)
    any_of: tuple[ArgSpec, ...] = attrs.field(default=(), kw_only=True, converter=_as_specs)
    format: str = attrs.field(default="", kw_only=True)
    is_refined: bool = attrs.field(init=False, eq=False, repr=False, default=False)
    """Whether the type alone does not say how a value is read: one of the last seven fields is set."""
    has_parts: bool = attrs.field(init=False, eq=False, repr=False, default=False)
    """Whether it is refined or has keys."""
    lowest: float | None = attrs.field(init=False, eq=False, repr=False, default=None)
    highest: float | None = attrs.field(init=False, eq=False, repr=False, default=None)
    """The least and the greatest valid number, or None; checks need not know which bounds are exclusive."""
    has_bounds: bool = attrs.field(init=False, eq=False, repr=False, default=False)
    """Whether it has choices, bounds or lengths."""
    holds_text: bool = attrs.field(init=False, eq=False, repr=False, default=False)
    """Whether ``""`` and ``"null"`` are values for it rather than a missing value."""
    discriminator: str = attrs.field(init=False, eq=False, repr=False, default="")
    """The key that tells the maps among the alternatives apart, or ``""``."""

    def __attrs_post_init__(self) -> None:
        faults = list(_settled(self))
        if faults:
            raise SpecError(f"argument {_label(self.name)}", faults)

    @property
    def nested(self) -> tuple[ArgSpec, ...]:
        """The specs directly within this one: keys, items, values and alternatives."""
        if not self.is_refined:
            return self.keys
        parts = (self.items, *self.prefix_items, self.key_spec, self.value_spec, *self.any_of)
        return (*self.keys, *(each for each in parts if each is not None))

    @property
    def holds_secret(self) -> bool:
        """Whether it or a spec within it is secret."""
        return self.secret or any(each.holds_secret for each in self.nested)

    @property
    def element(self) -> ArgType:
        """The type of each element of a slice; for other types, the type itself."""
        return ELEMENTS.get(self.type, self.type)


def _settled(arg: ArgSpec) -> Iterator[str]:
    """Convert the fields to their exact form, and yield a sentence for each that is invalid."""
    yield from field_problems(arg, name=ARGUMENT)
    type_faults = list(_settled_type(arg, "type"))
    if type_faults:
        yield from type_faults
        return
    if arg.type is ArgType.VOID:
        yield "void is valid for results only"
    if arg.type is ArgType.NIL:
        _set(arg, "nullable", True)
    yield from field_problems(arg, nullable=FLAG, extra_keys=FLAG, secret=FLAG, cls=optional(CLASS), description=TEXT)
    if arg.cls is not None or (
        arg.items is not None
        or arg.value_spec is not None
        or arg.key_spec is not None
        or arg.prefix_items is not NOTHING
        or arg.unique_items is not False
        or arg.any_of is not NOTHING
        or arg.format != ""
    ):
        from neuroscript.spec.refinements import settle_refinements

        faults = list(settle_refinements(arg))
        if faults:
            yield from faults
            return
    yield from _settled_keys(arg)
    if arg.is_refined or arg.keys:
        _set(arg, "has_parts", True)
    if arg.type in TEXT_HOLDERS and (not arg.is_refined or _refined_holds_text(arg)):
        _set(arg, "holds_text", True)
    yield from _settled_choices(arg)
    yield from _bound_faults(arg)
    yield from _settled_default(arg)


def _refined_holds_text(arg: ArgSpec) -> bool:
    """Return whether ``""`` or ``null`` can be a string of a union or a format, instead of a missing value."""
    if arg.any_of:
        return any(each.holds_text for each in arg.any_of)
    from neuroscript.coercion.string_formats import FORMATS

    return FORMATS[arg.format].takes_blank


def _settled_type(thing: Any, name: str) -> Iterator[str]:
    """Convert a field with an `ArgType` to its exact form, and yield a sentence if it is invalid."""
    word = getattr(thing, name)
    if not isinstance(word, str):
        yield from TYPE.problems(name, word)
        return
    try:
        _set(thing, name, named_type(word))
    except SpecError as error:
        yield from error.problems


def _tuple_of(kind: type, values: object) -> tuple[Any, ...] | None:
    if isinstance(values, (list, tuple)) and (kind is object or all(isinstance(value, kind) for value in values)):
        return tuple(values)
    return None


def _settled_keys(arg: ArgSpec) -> Iterator[str]:
    keys = _tuple_of(ArgSpec, arg.keys)
    if keys is None:
        yield from _SPECS.problems("keys", arg.keys)
        return
    if (keys or arg.extra_keys) and arg.type not in DECLARED:
        yield f"keys and extra_keys are valid for map and slice_map, not for {arg.type}"
        return
    if arg.cls is not None and arg.type in DECLARED and has_fields(arg.cls):
        from neuroscript.spec.annotations import UnsupportedAnnotation

        try:
            derived = keys_of(arg.cls)
        except UnsupportedAnnotation as error:
            yield str(error)
            return
        if keys and keys != derived and keys != _result_keys(arg.cls, derived):
            yield "keys are derived from cls; pass only one of them"
        keys = keys or derived
    is_open = arg.cls is not None and _is_open(arg.cls)
    if arg.extra_keys and (not keys or (arg.cls is not None and not is_open)):
        yield "extra_keys requires explicit keys"
    if is_open and keys:
        _set(arg, "extra_keys", True)
    yield from _repeated("key", [key.name for key in keys])
    _set(arg, "keys", keys)


def has_fields(cls: Any) -> bool:
    """Return whether the keys of a map are derived from a class; other classes replace a list or one value."""
    from neuroscript.spec.annotations import record_of

    return record_of(cls) is not None


def _is_open(cls: Any) -> bool:
    from neuroscript.spec.annotations import allows_extra_keys, record_of

    return allows_extra_keys(record_of(cls))


def _result_keys(cls: Any, keys: tuple[ArgSpec, ...]) -> tuple[ArgSpec, ...]:
    """Return the keys of a result, which include the computed fields of a pydantic model."""
    from neuroscript.spec.refinements import result_keys

    return result_keys(cls, keys)


def _repeated(what: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted(name for name, count in Counter(names).items() if count > 1):
        yield f"duplicate {what} {_label(name)}"


def _settled_choices(arg: ArgSpec) -> Iterator[str]:
    choices = _tuple_of(object, arg.choices)
    if choices is None:
        yield from ITEMS.problems("choices", arg.choices)
        return
    if choices and arg.element not in CHOICE_TYPES:
        yield f"choices are valid for strings, numbers, booleans and slices of them, not for {arg.type}"
        return
    if arg.element is ArgType.STRING and _are_short_texts(choices):
        _set(arg, "choices", choices)
        return
    exact = [_exactly(arg.element, choice) for choice in choices]
    if None in exact:
        yield f"each choice must be of type {arg.element}"
        return
    _set(arg, "choices", tuple(exact))


def _are_short_texts(choices: tuple[Any, ...]) -> bool:
    """Return whether choices are exact without checking each one; an API may list thousands."""
    if {*map(type, choices)} != {str} or max(map(len, choices)) > SHORT_CHARS:
        return False
    return is_unicode("".join(choices))


def _bound_faults(arg: ArgSpec) -> Iterator[str]:
    if arg.exclusive_minimum is not None or arg.exclusive_maximum is not None:
        faults = list(_settled_exclusive(arg))
        if faults:
            yield from faults
            return
    for low, high, fitting in (("minimum", "maximum", NUMBER_TYPES), ("min_length", "max_length", LENGTH_TYPES)):
        bounds = {name: getattr(arg, name) for name in (low, high) if getattr(arg, name) is not None}
        kind = arg.element if fitting is NUMBER_TYPES else arg.type
        if bounds and kind not in fitting and not (fitting is NUMBER_TYPES and arg.format == "decimal"):
            yield f"{low} and {high} are not valid for {arg.type}"
        elif faults := [*problems(**{name: (bound, BOUNDS[fitting]) for name, bound in bounds.items()})]:
            yield from faults
        elif len(bounds) == 2 and bounds[low] > bounds[high]:
            yield f"{low} is above {high}"
        elif bounds:
            _set(arg, "has_bounds", True)
            if fitting is NUMBER_TYPES:
                _set_limits(arg)
    if arg.choices:
        _set(arg, "has_bounds", True)


def _settled_exclusive(arg: ArgSpec) -> Iterator[str]:
    """Express the exclusive bounds in their only form, and yield a sentence for each that is invalid."""
    if arg.element not in NUMBER_TYPES and arg.format != "decimal":
        yield f"exclusive_minimum and exclusive_maximum are not valid for {arg.type}"
        return
    names = ("minimum", "exclusive_minimum", "maximum", "exclusive_maximum")
    bounds = {name: getattr(arg, name) for name in names}
    faults = [*problems(**{name: (bound, FINITE) for name, bound in bounds.items() if bound is not None})]
    if faults:
        yield from faults
        return
    is_integer = arg.element is ArgType.INT
    for index, is_lower in ((0, True), (2, False)):
        pair = names[index : index + 2]
        stricter = stricter_bounds(*(bounds[name] for name in pair), is_lower=is_lower, is_integer=is_integer)
        for name, bound in zip(pair, stricter, strict=True):
            _set(arg, name, bound)
    _set(arg, "has_bounds", True)
    _set_limits(arg)
    if _is_empty_range(arg):
        yield f"no {'decimal' if arg.format else arg.element} is within the bounds"


def _set_limits(arg: ArgSpec) -> None:
    above, below = arg.exclusive_minimum, arg.exclusive_maximum
    _set(arg, "lowest", arg.minimum if above is None else nearest_float(above, is_lower=True))
    _set(arg, "highest", arg.maximum if below is None else nearest_float(below, is_lower=False))


def _is_empty_range(arg: ArgSpec) -> bool:
    if arg.element is ArgType.INT:
        low, high = (INT_MIN if arg.lowest is None else arg.lowest), (INT_MAX if arg.highest is None else arg.highest)
        return low > high or low > INT_MAX or high < INT_MIN
    if not arg.format:
        low, high = (-inf if arg.lowest is None else arg.lowest), (inf if arg.highest is None else arg.highest)
        return low > high or low == inf or high == -inf
    low_bound = arg.minimum if arg.exclusive_minimum is None else arg.exclusive_minimum
    high_bound = arg.maximum if arg.exclusive_maximum is None else arg.exclusive_maximum
    return low_bound is not None and high_bound is not None and low_bound >= high_bound


def _settled_default(arg: ArgSpec) -> Iterator[str]:
    if arg.required is None:
        _set(arg, "required", arg.default is UNSET)
    yield from FLAG.problems("required", arg.required)
    if arg.default is UNSET:
        return
    if arg.required:
        yield "a required argument has no default"
    elif arg.default is not None:
        walk = CoercionPass(LAX)
        _set(arg, "default", walk.limited(coerce_present, arg, _plain_default(arg), ROOT))
        if walk.noted:
            from neuroscript.coercion.problems import sentences

            yield from (f"the default does not fit: {problem}" for problem in sentences(walk, arg))


def _plain_default(arg: ArgSpec) -> Any:
    """Return a default as a caller would pass it; the author may have used an instance of the class."""
    if arg.cls is None and not arg.nested:
        return arg.default
    from neuroscript.spec.instances import plain_default

    return plain_default(arg, arg.default)


def _exactly(kind: ArgType, value: object) -> Any:
    """Return the exact value of a scalar in a spec, or None if it does not fit."""
    walk = CoercionPass(RESULT)
    exact = walk.limited(values.coerce_value, kind, value, ROOT)
    return None if walk.noted else exact


def _set(thing: object, name: str, value: object) -> None:
    object.__setattr__(thing, name, value)


def _label(name: object) -> str:
    return quote_untrusted(name) if isinstance(name, str) else "?"


def keys_of(cls: type) -> tuple[ArgSpec, ...]:
    """Return the fields of a class as keys, in order.

    Raises:
        Unreadable: It is not a class with fields, contains itself, or has a field without an ArgType.
        SpecError: A default does not fit its annotation.
    """
    from neuroscript.spec.annotations import record_of
    from neuroscript.spec.fields import fields_of

    return tuple(
        argument(field.name, field.hint, default=field.default, required=False if field.optional else None)
        for field in fields_of(record_of(cls) or cls)
    )


def argument(
    name: str, hint: Any, *, default: Any = UNSET, required: bool | None = None, description: str = ""
) -> ArgSpec:
    """Return the spec of an argument with this annotation.

    Args:
        hint: The meaning of the annotation, a `Hint`.
        default: The default as the author wrote it, possibly an instance of the class.
        description: The description, unless the annotation has one.
    """
    said = attrs.asdict(hint.said)
    return ArgSpec(
        name,
        hint.type,
        required=required,
        default=default,
        nullable=hint.nullable,
        choices=hint.choices,
        cls=hint.cls,
        items=hint.items and argument("item", hint.items),
        prefix_items=tuple(argument("item", each) for each in hint.prefix_items),
        unique_items=hint.unique_items,
        value_spec=hint.value_spec and argument("value", hint.value_spec),
        key_spec=hint.key_spec and argument("key", hint.key_spec),
        any_of=tuple(argument("alternative", each) for each in hint.any_of),
        format=hint.format,
        **{**said, "description": said["description"] or description},
    )


@attrs.frozen
class Example:
    """An example call of a tool with its expected outcome.

    Attributes:
        args: The arguments, in order or by name, as a caller would pass them.
        result: The expected result; `UNSET` if it varies between calls.
        error: The code of the expected error instead, for example ``coercion.type``.
        note: What the example shows.
    """

    args: Sequence[Any] | Mapping[str, Any] = ()
    result: Any = UNSET
    error: str = attrs.field(default="", kw_only=True)
    note: str = attrs.field(default="", kw_only=True)

    def __attrs_post_init__(self) -> None:
        require_fields("example", self, args=ARGUMENTS, error=TEXT, note=TEXT)
        _set(self, "args", dict(self.args) if isinstance(self.args, Mapping) else tuple(self.args))


_SPECS: Final = sequence(instance(ArgSpec), "ArgSpecs")
_EXAMPLES: Final = sequence(instance(Example), "Examples")


DEFINITION: Final = "definition"
"""The key of the decoded definition in `ToolSpec.exports`."""


@attrs.frozen
class ToolSpec:
    """The name, arguments and result of a tool.

    Attributes:
        name: One word, ``[a-z][a-z0-9_]*`` without ``__``; upper case is converted to lower case.
        group: One or more such words separated by dots, for example ``math`` or ``system.io``.
        args: The arguments in order.
        return_type: The exact type of the result.
        description: What the tool does, in one sentence.
        when_to_use: When to use it, and which other tool to use otherwise.
        return_help: What the result means, with its unit.
        category: A heading for lists of tools.
        examples: Example calls with their outcome; they are bound when the tool is created.
        error_conditions: When it fails, and with which codes.
        variadic: Whether the last argument describes each trailing positional value. The function takes ``*values``;
            calls by name pass a list. If the argument is required, at least one value is.
        stream: Whether the function returns a sync or async iterator of items of ``return_type``. With ``"maybe"``,
            each call decides: an iterator is a stream, anything else is a single result.
        return_nullable: Whether None is a valid result or item.
        returns: The spec of the result or item, if *return_type* alone does not describe it: its name is ``result``,
            and *return_type* and *return_nullable* are derived from it. It has no default, and is not secret.
        deprecated: What to use instead, such as ``use math.sum``; empty if the tool is not deprecated.
        schema: The original JSON Schema of the arguments, as JSON text, if it has constraints that *args* cannot
            express. `spec_from_schema` sets it. Those constraints are checked against the exact values of each call.
        resource: The `Resource` as which the tool is served, or None.
        prompt: The `Prompt` as which the tool is served, or None.
        definition: The definition on the MCP server that the tool comes from, as JSON text. ``to_mcp`` passes on what
            it says beyond this spec: title, icons, output schema, annotations that the host trusts, and ``_meta``.
        full_name: The canonical name, ``group.name``.

    Raises:
        SpecError: With every problem.
    """

    name: str
    group: str
    args: tuple[ArgSpec, ...] = attrs.field(default=(), converter=_as_args)
    return_type: ArgType = attrs.field(default=ArgType.ANY, kw_only=True, converter=_as_type)
    description: str = attrs.field(default="", kw_only=True)
    when_to_use: str = attrs.field(default="", kw_only=True)
    return_help: str = attrs.field(default="", kw_only=True)
    category: str = attrs.field(default="", kw_only=True)
    examples: tuple[Example, ...] = attrs.field(default=(), kw_only=True, converter=_as_examples)
    error_conditions: str = attrs.field(default="", kw_only=True)
    variadic: bool = attrs.field(default=False, kw_only=True)
    stream: bool | Literal["maybe"] = attrs.field(default=False, kw_only=True)
    return_nullable: bool = attrs.field(default=False, kw_only=True)
    returns: ArgSpec | None = attrs.field(default=None, kw_only=True)
    deprecated: str = attrs.field(default="", kw_only=True)
    schema: str = attrs.field(default="", kw_only=True, repr=False)
    resource: Resource | None = attrs.field(default=None, kw_only=True)
    prompt: Prompt | None = attrs.field(default=None, kw_only=True)
    definition: str = attrs.field(default="", kw_only=True, repr=False)
    full_name: str = attrs.field(init=False, eq=False, repr=False)
    exports: dict[str, Any] = attrs.field(init=False, eq=False, repr=False, factory=dict)
    """A cache of converted forms of the spec, keyed by the module that creates them."""

    def __attrs_post_init__(self) -> None:
        faults = list(_settled_tool(self))
        if faults:
            raise SpecError(_label(f"{self.group}.{self.name}"), faults)

    @property
    def is_offered(self) -> bool:
        """Whether models are offered it as a tool; resources and prompts are offered only with ``as_tool``."""
        served = self.resource or self.prompt
        return served is None or served.as_tool

    @property
    def upstream_name(self) -> str:
        """The upstream spelling, ``tool.group.name``."""
        return upstream_name(self.full_name)

    @property
    def wire_name(self) -> str:
        """The spelling for model APIs that allow no dots, ``group__name``."""
        return wire_name(self.full_name)

    @property
    def secret_names(self) -> frozenset[str]:
        """The names of arguments that are secret or have a secret key."""
        return frozenset(arg.name for arg in self.args if arg.holds_secret)

    def by_name(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return exact positional values as a dict by name; the values of a variadic argument become a list.

        Raises:
            SpecError: The number of values does not match the arguments.
        """
        least = len(self.args) - self.variadic
        form = Form(
            "a list or tuple of one value for each argument",
            ITEMS.accepts,
            lambda values: len(values) >= least if self.variadic else len(values) == least,
        )
        require(self.full_name, values=(values, form))
        if not self.variadic:
            return {arg.name: value for arg, value in zip(self.args, values, strict=True)}
        count = len(self.args) - 1
        fixed = {arg.name: value for arg, value in zip(self.args[:-1], values[:count], strict=True)}
        return {**fixed, self.args[-1].name: list(values[count:])}


def _settled_tool(spec: ToolSpec) -> Iterator[str]:
    yield from _settled_name(spec)
    if spec.returns is not None:
        from neuroscript.spec.refinements import settle_returns

        yield from settle_returns(spec)
    yield from _settled_type(spec, "return_type")
    yield from field_problems(spec, **TEXTS)
    args, examples = _tuple_of(ArgSpec, spec.args), _tuple_of(Example, spec.examples)
    if args is None or examples is None:
        yield from field_problems(spec, args=_SPECS, examples=_EXAMPLES)
        return
    _set(spec, "args", args)
    _set(spec, "examples", examples)
    yield from _repeated("argument", [arg.name for arg in args])
    yield from field_problems(spec, variadic=FLAG, return_nullable=FLAG, stream=STREAM)
    if spec.variadic and (not args or args[-1].default is not UNSET):
        yield "variadic requires a last argument without a default"
    if spec.resource is not None or spec.prompt is not None:
        from neuroscript.spec.served import served_faults

        yield from served_faults(spec)
    if spec.schema and isinstance(spec.schema, str):
        from neuroscript.coercion.schema_validation import schema_faults

        yield from schema_faults(spec.schema, {arg.name for arg in args})
    if spec.definition and isinstance(spec.definition, str):
        yield from _settled_definition(spec)


def _settled_definition(spec: ToolSpec) -> Iterator[str]:
    try:
        data = parse_json(spec.definition)
    except NotJSON as error:
        yield f"definition: {error.hint}"
        return
    if not isinstance(data, dict):
        yield "definition must be the JSON text of an object"
    spec.exports[DEFINITION] = data


def _settled_name(spec: ToolSpec) -> Iterator[str]:
    faults = list(field_problems(spec, name=STRING, group=STRING))
    if faults:
        yield from faults
        return
    _set(spec, "name", spec.name.lower())
    _set(spec, "group", canonical(f"{spec.group}.").removesuffix("."))
    _set(spec, "full_name", f"{spec.group}.{spec.name}")
    if len(spec.full_name) > MAX_NAME_CHARS:
        yield f"a name, with its group, has at most {MAX_NAME_CHARS} characters"
    elif not is_group_name(spec.group) or not is_word(spec.name):
        yield "a name, and each part of a group, must consist of a-z, 0-9 and _, start with a letter and not contain __"
