"""The argument schemas of LangChain tools: what a model sees, and what is hidden from it."""

from __future__ import annotations

from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError
from neuroscript.interop.foreign import bounded_schema

try:
    from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool
    from langchain_core.utils.pydantic import get_fields, model_json_schema
except ImportError as error:
    raise missing_extra("loading LangChain tools needs langchain-core", "langchain", error) from None

RESERVED_NAMES: Final = ("config", "run_manager", "self")
"""Argument names that LangChain reserves; values for them never reach the function."""


def schemas_of(tool: BaseTool) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the schema that a model sees, and whether each hidden argument is required, by name.

    Raises:
        SpecError: It cannot be converted to JSON Schema, or an argument would never reach the function.
    """
    if isinstance(tool, Tool) and tool.args_schema is None:  # its function takes one string
        return {"type": "object", "properties": dict(tool.args), "required": [*tool.args]}, {}
    try:
        seen, whole = tool.tool_call_schema, tool.get_input_schema()
        schema = seen if isinstance(seen, dict) else model_json_schema(seen)
        names = set() if isinstance(seen, dict) else get_fields(whole).keys() - get_fields(seen).keys()
        fields = {name: get_fields(whole)[name] for name in names}
    except Exception as error:  # the schema classes are third-party code
        raise SpecError(tool.name, [f"cannot be converted to JSON Schema ({type_name(error)})"]) from None
    bounded = {"type": "object", **bounded_schema(schema, tool.name)}
    arguments = bounded.get("properties")
    if isinstance(tool, (StructuredTool, Tool)) and isinstance(arguments, dict):
        lost = [
            f"{each}: LangChain reserves this name; rename the argument" for each in RESERVED_NAMES if each in arguments
        ]
        if lost:
            raise SpecError(tool.name, lost)
    return bounded, {name: _is_required(field) for name, field in fields.items() if not wants_id(field)}


def wants_id(field: Any) -> bool:
    """Return whether a field receives the id of the tool call."""
    marks = getattr(field, "metadata", ())
    return any(each is InjectedToolCallId or isinstance(each, InjectedToolCallId) for each in marks)


def validation_name(name: str, schema: Any) -> str:
    """Return the name that a Pydantic model expects for a field; LangChain shows models the field's own name."""
    if getattr(schema, "model_config", {}).get("validate_by_alias") is False:
        return name
    field = get_fields(schema).get(name)
    alias = getattr(field, "validation_alias", None) or getattr(field, "alias", None)  # alias: Pydantic 1
    choices = getattr(alias, "choices", (alias,))
    return next((each for each in choices if isinstance(each, str)), name)


def _is_required(field: Any) -> bool:
    """Return whether a field is required, with Pydantic 1 or 2."""
    return bool(field.is_required() if hasattr(field, "is_required") else field.required is True)
