"""A tool as a plain Python function, for any framework that takes callables.

Frameworks read a function's name, docstring, signature and annotations, so all four agree: types that JSON can
represent, and a description of each argument in Google style.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, Optional, Union

import attrs

from neuroscript.coercion.parameters import FLAG, STRING, Form, instance, require
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.types import TYPES, ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import rule_phrase
from neuroscript.formats.python_names import is_name, parameters
from neuroscript.io.text import escape, one_line
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, ToolSpec

NAME: Final = Form("a name in Python, or empty", STRING.accepts, lambda name: not name or is_name(name))


def to_function(session: Session, tool: str, *, name: str = "", is_async: bool = False) -> Callable[..., Any]:
    """Return a function that calls a tool, for frameworks that read a function's signature and docstring.

    The function takes the arguments of the tool by name or in order. It returns a value that JSON can represent: bytes
    as ``{"$base64": text}``, and a stream as a list of its items. Results do not contain secrets, because a model may
    read them. The policy, the limits and the approvals of the session apply to each call.

    Args:
        session: An `Engine` or a session.
        tool: The name of the tool, in any spelling.
        name: The name of the function; the default is ``group__tool``, the spelling of model APIs.
        is_async: Return a coroutine function.

    Returns:
        A function whose ``__name__``, ``__qualname__``, ``__doc__``, ``__signature__`` and ``__annotations__`` describe
        the tool. The annotations are types that JSON can represent. An argument name that is not a valid Python name is
        spelled with ``_``. A variadic argument is a list.

    Raises:
        SpecError: A parameter has the wrong type.
        ToolNotFound: The tool does not exist.
        PolicyError: The session does not permit the tool.

    >>> from neuroscript import Engine, to_function
    >>> with Engine() as engine:
    ...     add = to_function(engine, "math.add")
    ...     add.__name__, add(2, 3)
    ('math__add', 5.0)
    """
    parts = {"session": (session, SESSION), "tool": (tool, STRING), "name": (name, NAME), "is_async": (is_async, FLAG)}
    require("to_function", **parts)
    spec = session._entry(tool).pipeline.tool.spec
    signature, names = signature_of(spec), parameters(spec)
    defaults = {each.name: each.default for each in signature.parameters.values()}

    def call_of(args: tuple[Any, ...], named: Mapping[str, Any]) -> ToolCall:
        known = {each: value for each, value in named.items() if each in names}
        arguments = {**named, **signature.bind_partial(*args, **known).arguments}
        empty = {each for each, value in arguments.items() if each in names and value is None is defaults[each]}
        return ToolCall(
            spec.full_name, {names.get(each, each): arguments[each] for each in arguments if each not in empty}
        )

    def function(*args: Any, **named: Any) -> Any:
        return _value(session.execute(call_of(args, named)))

    async def coroutine_function(*args: Any, **named: Any) -> Any:
        return _value(await session.aexecute(call_of(args, named)))

    return set_metadata(
        coroutine_function if is_async else function, name or spec.wire_name, docstring(spec), signature
    )


SESSION: Final = instance(Session, "an Engine is one")


def _value(result: ToolResult) -> Any:
    if result.error is not None:
        raise result.error
    return to_plain(result.value)


def set_metadata(function: Callable[..., Any], name: str, doc: str, signature: inspect.Signature) -> Callable[..., Any]:
    """Set the name, the docstring, the signature and the matching annotations of a function."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    function.__annotations__["return"] = signature.return_annotation
    return function


def signature_of(spec: ToolSpec) -> inspect.Signature:
    """Return the signature of a tool, with types that JSON can represent.

    A required argument after an optional one is keyword-only.
    """
    forms = inspect.Parameter
    found: list[inspect.Parameter] = []
    form: Any = forms.POSITIONAL_OR_KEYWORD
    for name, arg in zip(parameters(spec), spec.args, strict=True):
        if arg.required and found and found[-1].default is not forms.empty:
            form = forms.KEYWORD_ONLY
        default = forms.empty if arg.required else _default(arg)
        many = spec.variadic and arg is spec.args[-1]
        found.append(forms(name, form, default=default, annotation=annotation(arg, many)))
    return inspect.Signature(found, return_annotation=result_annotation(spec))


def _default(arg: ArgSpec) -> Any:
    """Return the default of a parameter; a secret default is replaced by None."""
    return None if arg.default is UNSET or arg.holds_secret else to_plain(arg.default)


def annotation(arg: ArgSpec, many: bool = False) -> Any:
    """Return the annotation of an argument: its JSON type and its description.

    Args:
        many: Whether it is the variadic argument, which is a list here.

    >>> annotation(ArgSpec("mode", "string", choices=("r", "w"), description="How."))
    typing.Annotated[typing.Literal['r', 'w'], 'How.']
    """
    kind = json_form(arg)
    kind = GenericAlias(list, kind) if many else kind
    is_empty = not arg.required and _default(arg) is None
    if (arg.nullable and not many) or is_empty:
        return Optional[kind]  # no description, because Semantic Kernel would lose the type
    return Annotated[kind, one_line(arg.description)] if arg.description.strip() else kind


def json_form(arg: ArgSpec) -> Any:
    """Return the Python type of a spec in JSON form, without its description and null.

    A tuple is a list of any of its items, because not every model API accepts the schema of a tuple. Keys of a map are
    strings in JSON.
    """
    if arg.is_refined:
        return _refined_form(arg)
    if arg.choices and arg.element is not ArgType.FLOAT:  # Literal does not support floats
        literal: Any = Literal.__getitem__(arg.choices)
        return literal if arg.element is arg.type else GenericAlias(list, literal)
    return TYPES[arg.type].json_type


def _refined_form(arg: ArgSpec) -> Any:
    if arg.any_of:
        return Union.__getitem__(tuple(map(json_form, arg.any_of)))
    if arg.prefix_items:
        return GenericAlias(list, Union.__getitem__(tuple(map(_inner_form, arg.prefix_items))))
    if arg.items is not None:
        return GenericAlias(list, _inner_form(arg.items))
    if arg.value_spec is not None and not arg.keys:
        return GenericAlias(dict, (str, _inner_form(arg.value_spec)))
    return json_form(attrs.evolve(arg, unique_items=False, cls=None)) if arg.unique_items else TYPES[arg.type].json_type


def _inner_form(arg: ArgSpec) -> Any:
    """Return the type of an item or value, which may be null."""
    return Optional[json_form(arg)] if arg.nullable else json_form(arg)


def result_annotation(spec: ToolSpec) -> Any:
    """Return the annotation of the result in JSON form; a stream is a list of its items."""
    row = TYPES[spec.return_type]
    kind: Any = (row.json_result or row.json_type) if spec.returns is None else json_form(spec.returns)
    kind = Optional[kind] if spec.return_nullable else kind
    if spec.stream == MAYBE:
        return Any
    return GenericAlias(list, kind) if spec.stream else kind


def docstring(spec: ToolSpec) -> str:
    """Return the documentation of a spec as a docstring in Google style."""
    texts = (spec.description, spec.when_to_use)
    paragraphs = ["\n".join(map(escape, text.strip().splitlines())) for text in texts if text.strip()]
    sections = {
        "Args": [f"{name}: {_argument_text(arg)}" for name, arg in zip(parameters(spec), spec.args, strict=True)],
        "Returns": [one_line(spec.return_help)] if spec.return_help.strip() else [],
        "Raises": [one_line(spec.error_conditions)] if spec.error_conditions.strip() else [],
    }
    for title, lines in sections.items():
        if lines:
            paragraphs.append("\n".join([f"{title}:", *(f"    {line}" for line in lines)]))
    return "\n\n".join(paragraphs) or f"Call {spec.full_name}."


def _argument_text(arg: ArgSpec) -> str:
    return f"{one_line(arg.description).rstrip('.')}. ({rule_phrase(arg)})".lstrip(". ")
