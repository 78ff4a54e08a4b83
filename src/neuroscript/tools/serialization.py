"""Conversion of specs, policies and results to and from plain data, based on cattrs.

The format of a spec is that of upstream's metadata export, ``name``, ``groupname``, ``args``, ``returnType`` and so on,
with additional keys for other fields. Every problem with data is reported at once, with its path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import named_type
from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import instance, require
from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError, CallError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.capabilities import parts
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.spec.served import Prompt, Resource
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, Example, ToolSpec

ARG_KEYS: Final = {
    "default": "defaultValue",
    "keys": "mapKeySpecs",
    "extra_keys": "extraKeys",
    "min_length": "minLength",
    "max_length": "maxLength",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "prefix_items": "prefixItems",
    "unique_items": "uniqueItems",
    "value_spec": "valueSpec",
    "key_spec": "keySpec",
    "any_of": "anyOf",
}
SPEC_KEYS: Final = {
    "group": "groupname",
    "return_type": "returnType",
    "return_help": "returnHelp",
    "when_to_use": "whenToUse",
    "error_conditions": "errorConditions",
    "return_nullable": "returnNullable",
}
RESOURCE_KEYS: Final = {"media_type": "mediaType", "as_tool": "asTool"}
POLICY_KEYS: Final = {
    "requires_trust": "requiresTrust",
    "capabilities": "requiredCaps",
    "requires_approval": "requiresApproval",
    "raw_files": "rawFiles",
}
ALWAYS: Final = frozenset({"description", "required", "return_type", "requires_trust"})
"""Fields that are written even with their default value, as upstream does."""


Hook = Callable[..., Any]


class Unfit(Exception):
    """Plain data of the wrong form; the message contains no value."""


def spec_to_data(spec: ToolSpec) -> dict[str, Any]:
    """Return a spec as JSON-compatible data. The class of an argument is written as its keys.

    >>> spec_to_data(ToolSpec("ping", "net"))
    {'name': 'ping', 'groupname': 'net', 'returnType': 'any', 'description': '', 'fullname': 'net.ping'}
    """
    require("spec_to_data", spec=(spec, instance(ToolSpec)))
    data: dict[str, Any] = _converter().unstructure(spec)
    return {**data, "fullname": spec.full_name}


def spec_from_data(data: Mapping[str, Any]) -> ToolSpec:
    """Return the spec for plain data.

    Raises:
        SpecError: With every problem and its path.
    """
    fields = dict(data) if isinstance(data, Mapping) else data
    full_name = fields.pop("fullname", None) if isinstance(fields, dict) else None
    spec: ToolSpec = _structured(fields, ToolSpec)
    if full_name is not None and full_name not in (spec.full_name, spec.upstream_name):
        raise SpecError(spec.full_name, ["fullname does not match groupname and name"])
    return spec


def policy_to_data(policy: ToolPolicy) -> dict[str, Any]:
    """Return the policy of a tool as plain data."""
    require("policy_to_data", policy=(policy, instance(ToolPolicy)))
    data: dict[str, Any] = _converter().unstructure(policy)
    return data


def policy_from_data(data: Mapping[str, Any]) -> ToolPolicy:
    """Return the policy of a tool from plain data.

    Raises:
        SpecError: With every problem and its path.
    """
    policy: ToolPolicy = _structured(data, ToolPolicy)
    return policy


def result_to_data(result: ToolResult) -> dict[str, Any]:
    """Return the result of a call as JSON-compatible data with either ``value`` or ``error``."""
    require("result_to_data", result=(result, instance(ToolResult)))
    from neuroscript.coercion.plain_data import to_plain

    data: dict[str, Any] = {"id": result.id, "tool": result.tool, "ok": result.ok}
    if result.error is None:
        data["value"] = to_plain(result.value)
    else:
        data["error"] = error_to_data(result.error)
    if result.spilled is not None:
        data["spilled"] = attrs.asdict(result.spilled)
    if result.repairs:
        data["repairs"] = [attrs.asdict(repair) for repair in result.repairs]
    if result.labels:
        data["labels"] = [*result.labels]
    return {**data, "seconds": round(result.seconds, 6)}


def error_to_data(error: CallError) -> dict[str, Any]:
    """Return an error as plain data. Its message is safe for models."""
    data: dict[str, Any] = {"code": error.code, "number": error.number, "retry": error.retry, "message": str(error)}
    if isinstance(error, ArgumentError):
        data["problems"] = [problem._asdict() for problem in error.problems]
    if error.items is not None:
        data["items"] = error.items
    return data


@functools.cache
def _converter() -> Any:
    """Return the converter for specs, with scalar hooks that are stricter than those of cattrs.

    cattrs would convert ``"false"`` to True.
    """
    from cattrs import Converter

    from neuroscript.coercion.plain_data import from_plain, to_plain

    converter = Converter()
    for kind in (str, bool, int):
        converter.register_structure_hook(kind, functools.partial(_only, kind))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(ArgType, _word)
    converter.register_unstructure_hook(ArgType, str)

    def many(kind: type) -> tuple[Hook, Hook]:
        return (
            lambda values, *_: tuple(converter.structure(_only(list, values), list[kind])),  # type: ignore[valid-type]
            lambda values: [converter.unstructure(each) for each in values],
        )

    def one(kind: type) -> tuple[Hook, Hook]:
        return (
            lambda value, *_: None if value is None else converter.structure(value, kind),
            lambda value: None if value is None else converter.unstructure(value),
        )

    as_it_is: tuple[Hook, Hook] = (lambda value, *_: from_plain(value), to_plain)
    words = many(str)
    _register(converter, Example, {}, {"args": (_example_args, to_plain), "result": as_it_is})
    arg = {"default": as_it_is, "choices": as_it_is}
    arg |= {name: many(ArgSpec) for name in ("keys", "prefix_items", "any_of")}
    arg |= {name: one(ArgSpec) for name in ("items", "value_spec", "key_spec")}
    _register(converter, ArgSpec, ARG_KEYS, arg)
    tool = {"args": many(ArgSpec), "examples": many(Example), "stream": (_stream, lambda value: value)}
    tool |= {"returns": one(ArgSpec), "resource": one(Resource), "prompt": one(Prompt)}
    _register(converter, Resource, RESOURCE_KEYS, {})
    _register(converter, Prompt, RESOURCE_KEYS, {})
    _register(converter, ToolSpec, SPEC_KEYS, tool)
    policy: dict[str, tuple[Hook, Hook]] = dict.fromkeys(("effects", "sources", "sinks", "declassifies"), words)
    _register(converter, ToolPolicy, POLICY_KEYS, {**policy, "capabilities": (_capabilities, _parts)})
    return converter


def _register(converter: Any, cls: type, names: Mapping[str, str], hooks: Mapping[str, tuple[Hook, Hook]]) -> None:
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

    fields: dict[str, Any] = {}
    for field in attrs.fields(cls):
        structure, unstructure = hooks.get(field.name, (None, None))
        fields[field.name] = override(
            rename=names.get(field.name),
            omit=True if field.name == "cls" else None,
            omit_if_default=False if field.name in ALWAYS else None,
            struct_hook=structure,
            unstruct_hook=unstructure,
        )
    reading: Any = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **fields)
    writing: Any = make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True, **fields)
    converter.register_structure_hook(cls, lambda value, _: reading(_only(dict, value), cls))
    converter.register_unstructure_hook(cls, writing)


def _structured(data: object, cls: type) -> Any:
    from cattrs import transform_error
    from cattrs.errors import BaseValidationError

    try:
        return _converter().structure(data, cls)
    except BaseValidationError as error:
        problems = transform_error(error, path=cls.__name__, format_exception=_sentence)
        raise SpecError("data", [_with_data_path(problem) for problem in problems]) from None
    except (Unfit, SpecError) as error:
        raise SpecError("data", [f"{error} @ {cls.__name__}"]) from None


def _with_data_path(problem: str) -> str:
    """Return a problem with the keys of the data in its path instead of field names."""
    sentence, _, path = problem.rpartition(" @ ")
    names = {**ARG_KEYS, **SPEC_KEYS, **POLICY_KEYS, **RESOURCE_KEYS}
    steps = [part.partition("[") for part in path.split(".")]
    return f"{sentence} @ {'.'.join(names.get(name, name) + bracket + rest for name, bracket, rest in steps)}"


def _sentence(error: BaseException, _: type | None) -> str:
    from cattrs.errors import ForbiddenExtraKeysError

    match error:
        case ForbiddenExtraKeysError():
            return f"unknown keys {', '.join(sorted(quote_untrusted(str(key)) for key in error.extra_fields))}"
        case SpecError():
            return "; ".join(error.problems)
        case KeyError():
            return f"missing key {error.args[0]}"
        case Unfit():
            return str(error)
        case _:
            return f"is invalid ({type(error).__name__})"


def _only(kind: type, value: Any, *_: object) -> Any:
    if type(value) is not kind:
        raise Unfit(f"expected {kind.__name__}, got {type_name(value)}")
    return value


def _word(value: Any, *_: object) -> ArgType:
    return named_type(value if isinstance(value, ArgType) else _only(str, value))


def _stream(value: Any, *_: object) -> Any:
    return value if value == MAYBE and type(value) is str else _only(bool, value)


def _number(value: Any, *_: object) -> Any:
    return value if type(value) is int else _only(float, value)


def _example_args(value: Any, *_: object) -> Any:
    from neuroscript.coercion.plain_data import from_plain

    return from_plain(value) if type(value) is dict else tuple(from_plain(_only(list, value)))


def _capabilities(values: Any, *_: object) -> tuple[str, ...]:
    """Read needs in the upstream format ``{"Resource", "Verbs", "Scopes"}``, or as strings."""
    return tuple(each if type(each) is str else _capability(_only(dict, each)) for each in _only(list, values))


def _capability(parts: dict[str, Any]) -> str:
    words = [_only(str, parts.get("Resource")), ",".join(_only(list, parts.get("Verbs")))]
    scopes = _only(list, parts.get("Scopes") or [])
    return ":".join([*words, ",".join(scopes)] if scopes else words)


def _parts(capabilities: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_part(*parts(capability)) for capability in capabilities]


def _part(resource: str, verbs: tuple[str, ...], scopes: tuple[str, ...]) -> dict[str, Any]:
    return {"Resource": resource, "Verbs": list(verbs), "Scopes": list(scopes)}
