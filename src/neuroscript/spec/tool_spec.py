"""What a tool promises: its name, its arguments, its result, its examples. A bad spec can not exist.

Source: contract section 1; upstream ``tools_types.go``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion import values
from neuroscript.coercion.constraints import fit, named_type
from neuroscript.coercion.context import LAX, RESULT, ROOT, Walk
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
from neuroscript.coercion.scalars import is_unicode
from neuroscript.coercion.types import ELEMENTS, VALUES, ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.io.text import shown
from neuroscript.names import MAX_NAME_CHARS, canonical, is_group_name, is_word, upstream_name, wire_name

RUNTIME: Final = "rt"
"""What the first parameter of a tool's function is called, if it wants the Runtime."""

Class = type
"""`type` under a name that a field called ``type`` does not hide."""

ARGUMENT_NAME: Final = re.compile(r"""[^\s{}\[\]()'"`]{1,128}""")
"""Importers bring ``user-id`` and ``from``; blanks, braces, brackets and quotes would break paths and templates."""

MAYBE: Final = "maybe"
"""What a spec says of a tool that may give a stream."""

SHORT_CHARS: Final = 1_000
"""How many characters a choice may have that is checked together with others."""

CHOSEN: Final = frozenset({ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL})
NUMBERS: Final = frozenset({ArgType.INT, ArgType.FLOAT})
DECLARED: Final = frozenset({ArgType.MAP, ArgType.MAP_STRING_ANY, ArgType.SLICE_MAP})
LONG: Final = frozenset({ArgType.STRING, ArgType.BLOB, ArgType.EMBEDDING, *ELEMENTS, *VALUES})

# What a field has to be

ARGUMENT: Final = Form(
    "1 to 128 printable characters without blanks, braces, brackets and quotes",
    STRING.accepts,
    lambda name: name.isprintable() and ARGUMENT_NAME.fullmatch(name) is not None,
)
ARGUMENTS: Final = Form(
    "a list or tuple, or a mapping with strings as keys",
    lambda args: isinstance(args, (list, tuple)) or BY_NAME.accepts(args),
)
CLASS: Final = optional(instance(type))
FINITE: Final = Form(
    "a finite number",
    lambda number: type(number) in (int, float),
    lambda number: _exactly(ArgType.FLOAT, number) is not None,
)
BOUNDS: Final = {NUMBERS: FINITE, LONG: WHOLE}
ITEMS: Final = Form("a list or tuple", lambda items: isinstance(items, (list, tuple)))
STREAM: Final = Form(
    f"True, False or {MAYBE!r}",
    lambda stream: isinstance(stream, (bool, str)),
    lambda stream: stream in (True, False, MAYBE),
)
TEXT: Final = Form("a string of valid Unicode, without lone surrogates", STRING.accepts, is_unicode)
TEXTS: Final = dict.fromkeys(
    ("description", "when_to_use", "return_help", "category", "error_conditions", "deprecated", "schema"), TEXT
)
TYPE: Final = Form("an ArgType or its word", STRING.accepts)


@attrs.frozen
class ArgSpec:
    """One argument of a tool, or one key of a map.

    Attributes:
        name: 1 to 128 printable characters without blanks, braces, brackets and quotes.
        type: An `ArgType`, or its word.
        required: Whether it must be given; None means "unless it has a default".
        default: What an absent argument becomes; it is coerced now and copied for each call.
        description: What it is, with its unit.
        nullable: Whether None is a value of it.
        choices: The only values it may have, or each element of a slice; compared with their type.
        keys: The keys of a map, or of each map of a slice, as specs of their own.
        extra_keys: Whether keys that are not named in *keys* are kept, as `any`.
        secret: Whether its value must be seen nowhere.
        minimum: The least number it may be, or each element of a slice of numbers.
        maximum: The greatest.
        min_length: The least number of characters, bytes, items or keys.
        max_length: The greatest.
        cls: An attrs class, a dataclass or a TypedDict for a map, or for each map of a slice: its fields are the keys.
            Or an Enum: the values of its members are the choices. The tool's function alone receives an instance, made
            after every gate.

    Raises:
        SpecError: With everything that is wrong with it.

    Source: contract section 1.
    """

    name: str
    type: ArgType
    required: bool | None = attrs.field(default=None, kw_only=True)
    default: Any = attrs.field(default=UNSET, kw_only=True)
    description: str = attrs.field(default="", kw_only=True)
    nullable: bool = attrs.field(default=False, kw_only=True)
    choices: tuple[Any, ...] = attrs.field(default=(), kw_only=True)
    keys: tuple[ArgSpec, ...] = attrs.field(default=(), kw_only=True)
    extra_keys: bool = attrs.field(default=False, kw_only=True)
    secret: bool = attrs.field(default=False, kw_only=True)
    minimum: float | None = attrs.field(default=None, kw_only=True)
    maximum: float | None = attrs.field(default=None, kw_only=True)
    min_length: int | None = attrs.field(default=None, kw_only=True)
    max_length: int | None = attrs.field(default=None, kw_only=True)
    cls: Class | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        faults = list(_settled(self))
        if faults:
            raise SpecError(f"argument {_label(self.name)}", faults)

    @property
    def holds_secret(self) -> bool:
        """Whether it, or a key within it, is secret."""
        return self.secret or any(key.holds_secret for key in self.keys)

    @property
    def element(self) -> ArgType:
        """The type of each element of a slice; the type itself where there are none."""
        return ELEMENTS.get(self.type, self.type)


def _settled(arg: ArgSpec) -> Iterator[str]:
    """Bring the fields into their exact form, and yield a sentence for each that can not be."""
    yield from field_problems(arg, name=ARGUMENT)
    type_faults = list(_settled_type(arg, "type"))
    if type_faults:
        yield from type_faults
        return
    if arg.type is ArgType.VOID:
        yield "void is a type of results alone"
    if arg.type is ArgType.NIL:
        _set(arg, "nullable", True)
    yield from field_problems(arg, nullable=FLAG, extra_keys=FLAG, secret=FLAG, cls=CLASS, description=TEXT)
    if isinstance(arg.cls, type) and issubclass(arg.cls, Enum):
        yield from _settled_members(arg, arg.cls)
    else:
        yield from _settled_keys(arg)
    yield from _settled_choices(arg)
    yield from _bound_faults(arg)
    yield from _settled_default(arg)


def _settled_type(thing: Any, name: str) -> Iterator[str]:
    """Bring a field that names an `ArgType` into its exact form, and yield a sentence where it cannot be."""
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
    if (keys or arg.cls is not None or arg.extra_keys) and arg.type not in DECLARED:
        yield f"keys, extra_keys and cls belong to map and slice_map, not to {arg.type}"
        return
    if arg.cls is not None:
        from neuroscript.spec.annotations import Unreadable

        try:
            derived = keys_of(arg.cls)
        except Unreadable as error:
            yield str(error)
            return
        if keys and keys != derived:
            yield "keys are read off cls; give one of the two"
        keys = derived
    if arg.extra_keys and (not keys or arg.cls is not None):
        yield "extra_keys belongs to keys that are written out"
    yield from _repeated("key", [key.name for key in keys])
    _set(arg, "keys", keys)


def _repeated(what: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted(name for name, count in Counter(names).items() if count > 1):
        yield f"two {what}s are called {_label(name)}"


def _settled_members(arg: ArgSpec, cls: type[Enum]) -> Iterator[str]:
    choices = tuple(member.value for member in cls)
    if arg.keys or arg.extra_keys:
        yield "keys and extra_keys do not belong to an Enum"
    if arg.choices and _tuple_of(object, arg.choices) != choices:
        yield "choices are read off cls; give one of the two"
    _set(arg, "choices", choices)


def _settled_choices(arg: ArgSpec) -> Iterator[str]:
    choices = _tuple_of(object, arg.choices)
    if choices is None:
        yield from ITEMS.problems("choices", arg.choices)
        return
    if choices and arg.element not in CHOSEN:
        yield f"choices belong to texts, numbers, truth values and slices of them, not to {arg.type}"
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
    """Tell whether choices are exact as they are, without a look at each; an API may list thousands."""
    if {*map(type, choices)} != {str} or max(map(len, choices)) > SHORT_CHARS:
        return False
    return is_unicode("".join(choices))


def _bound_faults(arg: ArgSpec) -> Iterator[str]:
    for low, high, fitting in (("minimum", "maximum", NUMBERS), ("min_length", "max_length", LONG)):
        bounds = {name: getattr(arg, name) for name in (low, high) if getattr(arg, name) is not None}
        kind = arg.element if fitting is NUMBERS else arg.type
        if bounds and kind not in fitting:
            yield f"{low} and {high} do not belong to {arg.type}"
        elif faults := [*problems(**{name: (bound, BOUNDS[fitting]) for name, bound in bounds.items()})]:
            yield from faults
        elif len(bounds) == 2 and bounds[low] > bounds[high]:
            yield f"{low} is above {high}"


def _settled_default(arg: ArgSpec) -> Iterator[str]:
    if arg.required is None:
        _set(arg, "required", arg.default is UNSET)
    yield from FLAG.problems("required", arg.required)
    if arg.default is UNSET:
        return
    if arg.required:
        yield "a required argument has no default"
    elif arg.default is not None:
        walk = Walk(LAX)
        _set(arg, "default", walk.limited(fit, arg, _plain_default(arg), ROOT))
        if walk.noted:
            from neuroscript.coercion.problems import sentences

            yield from (f"the default does not fit: {problem}" for problem in sentences(walk, arg))


def _plain_default(arg: ArgSpec) -> Any:
    """Return a default as a caller would write it; its author may have written an instance of the class."""
    if arg.cls is None:
        return arg.default
    from neuroscript.spec.fields import plain

    return plain(arg.default)


def _exactly(kind: ArgType, value: object) -> Any:
    """Return the exact value of one scalar that its author wrote, or None."""
    walk = Walk(RESULT)
    exact = walk.limited(values.exact, kind, value, ROOT)
    return None if walk.noted else exact


def _set(thing: object, name: str, value: object) -> None:
    object.__setattr__(thing, name, value)


def _label(name: object) -> str:
    return shown(name) if isinstance(name, str) else "?"


def keys_of(cls: type) -> tuple[ArgSpec, ...]:
    """Return the fields of a class as keys, in their order.

    Raises:
        Unreadable: It is no class with fields, holds itself, or has a field whose annotation names no ArgType.
        SpecError: A default does not fit its annotation.
    """
    from neuroscript.spec.fields import fields_of

    return tuple(
        argument(field.name, field.hint, default=field.default, required=False if field.optional else None)
        for field in fields_of(cls)
    )


def argument(
    name: str, hint: Any, *, default: Any = UNSET, required: bool | None = None, description: str = ""
) -> ArgSpec:
    """Return the spec of an argument that an annotation describes.

    Args:
        hint: What that says, a `Hint`.
        default: As its author wrote it, perhaps as an instance of the class.
        description: What it is, where the annotation does not say that.
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
        **{**said, "description": said["description"] or description},
    )


@attrs.frozen
class Example:
    """One call of a tool, as its author expects it to go.

    Attributes:
        args: The arguments, in order or by name, as a caller would write them.
        result: What it returns; `UNSET` where that differs from call to call.
        error: The code of the error that it raises instead, for example ``coercion.type``.
        note: What it shows.
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


@attrs.frozen
class ToolSpec:
    """What a tool is called, takes and returns.

    Attributes:
        name: One word, ``[a-z][a-z0-9_]*`` without ``__``; another case is lowered.
        group: Such words with dots between them, for example ``math`` or ``system.io``.
        args: The arguments in order.
        return_type: What the result is, exactly.
        description: What the tool does, in a sentence.
        when_to_use: When it is the right one, and which other tool is better when it is not.
        return_help: What the result means, with its unit.
        category: A heading for lists of tools.
        examples: Calls and what they give; they are bound when the tool is made.
        error_conditions: When it fails, and with which codes.
        variadic: Whether the last argument is the type of each further positional value. The function takes
            ``*values``; a call by name gives a list. If it is required, there is at least one.
        stream: Whether the function returns an iterator, or an async one, of items of ``return_type``. ``"maybe"`` lets
            each call say so: an iterator is a stream, anything else is the one result.
        return_nullable: Whether None is a result, or an item, too.
        deprecated: What to use instead, as in ``use math.sum``; empty as long as the tool is there to stay.
        schema: A JSON Schema of the arguments as others wrote it, as JSON text, where it says more than *args* do:
            `spec_from_schema` keeps it. What it asks beyond them is asked of the exact values of each call.
        full_name: The canonical name, ``group.name``.

    Raises:
        SpecError: With everything that is wrong with it.

    Source: contract section 1.
    """

    name: str
    group: str
    args: tuple[ArgSpec, ...] = ()
    return_type: ArgType = attrs.field(default=ArgType.ANY, kw_only=True)
    description: str = attrs.field(default="", kw_only=True)
    when_to_use: str = attrs.field(default="", kw_only=True)
    return_help: str = attrs.field(default="", kw_only=True)
    category: str = attrs.field(default="", kw_only=True)
    examples: tuple[Example, ...] = attrs.field(default=(), kw_only=True)
    error_conditions: str = attrs.field(default="", kw_only=True)
    variadic: bool = attrs.field(default=False, kw_only=True)
    stream: bool | Literal["maybe"] = attrs.field(default=False, kw_only=True)
    return_nullable: bool = attrs.field(default=False, kw_only=True)
    deprecated: str = attrs.field(default="", kw_only=True)
    schema: str = attrs.field(default="", kw_only=True, repr=False)
    full_name: str = attrs.field(init=False, eq=False, repr=False)
    exports: dict[str, Any] = attrs.field(init=False, eq=False, repr=False, factory=dict)
    """What is made of it once and asked for often, by the word of the room that keeps it here."""

    def __attrs_post_init__(self) -> None:
        faults = list(_settled_tool(self))
        if faults:
            raise SpecError(_label(f"{self.group}.{self.name}"), faults)

    @property
    def upstream_name(self) -> str:
        """Upstream's spelling, ``tool.group.name``."""
        return upstream_name(self.full_name)

    @property
    def wire_name(self) -> str:
        """The spelling for model APIs that allow no dot, ``group__name``."""
        return wire_name(self.full_name)

    @property
    def secret_names(self) -> frozenset[str]:
        """The names of the arguments that are secret, or hold a secret."""
        return frozenset(arg.name for arg in self.args if arg.holds_secret)

    def by_name(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return exact values in order as a dict by name; of a variadic argument the list of its values.

        Raises:
            SpecError: There is not one value for each argument.
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
        yield "variadic needs a last argument without a default"
    if spec.schema and isinstance(spec.schema, str):
        from neuroscript.coercion.schema_validation import schema_faults

        yield from schema_faults(spec.schema, {arg.name for arg in args})


def _settled_name(spec: ToolSpec) -> Iterator[str]:
    faults = list(field_problems(spec, name=STRING, group=STRING))
    if faults:
        yield from faults
        return
    _set(spec, "name", spec.name.lower())
    _set(spec, "group", canonical(f"{spec.group}.").removesuffix("."))
    _set(spec, "full_name", f"{spec.group}.{spec.name}")
    if len(spec.full_name) > MAX_NAME_CHARS:
        yield f"a name has at most {MAX_NAME_CHARS} characters, its group included"
    elif not is_group_name(spec.group) or not is_word(spec.name):
        yield "a name, and each part of a group, is a-z, 0-9 and _, starts with a letter and has no __"
