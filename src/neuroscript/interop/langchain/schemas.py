"""What tools of LangChain take: what a model sees of it, and what is hidden from models.

Source: LangChain reference, ``BaseTool.tool_call_schema`` and ``InjectedToolArg``.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript._imports import missing
from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError
from neuroscript.interop.foreign import bounded_schema

try:
    from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool
    from langchain_core.utils.pydantic import get_fields, model_json_schema
except ImportError as error:
    raise missing("taking tools of LangChain needs langchain-core", "langchain", error) from None

KEPT_BACK: Final = ("config", "run_manager", "self")
"""Names of arguments that never come to a function: LangChain puts something of its own there."""


def schemas_of(tool: BaseTool) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return what a model sees of the arguments, and by name whether one that it does not see must be given.

    Raises:
        SpecError: There is no JSON Schema of it, or an argument would never arrive.
    """
    if isinstance(tool, Tool) and tool.args_schema is None:  # its function takes one text
        return {"type": "object", "properties": dict(tool.args), "required": [*tool.args]}, {}
    try:
        seen, whole = tool.tool_call_schema, tool.get_input_schema()
        schema = seen if isinstance(seen, dict) else model_json_schema(seen)
        names = set() if isinstance(seen, dict) else get_fields(whole).keys() - get_fields(seen).keys()
        fields = {name: get_fields(whole)[name] for name in names}
    except Exception as error:  # what it is made of is not ours
        raise SpecError(tool.name, [f"what it takes can not be told as JSON Schema ({type_name(error)})"]) from None
    told = {"type": "object", **bounded_schema(schema, tool.name)}
    arguments = told.get("properties")
    if isinstance(tool, (StructuredTool, Tool)) and isinstance(arguments, dict):
        lost = [f"{each}: never arrives, for LangChain keeps that name" for each in KEPT_BACK if each in arguments]
        if lost:
            raise SpecError(tool.name, lost)
    return told, {name: _is_required(field) for name, field in fields.items() if not wants_id(field)}


def wants_id(field: Any) -> bool:
    """Tell whether a field of a schema is given the id of the call."""
    marks = getattr(field, "metadata", ())
    return any(each is InjectedToolCallId or isinstance(each, InjectedToolCallId) for each in marks)


def taken_as(name: str, schema: Any) -> str:
    """Return the name by which a model of Pydantic takes a field; LangChain tells models the field's own."""
    if getattr(schema, "model_config", {}).get("validate_by_alias") is False:
        return name
    field = get_fields(schema).get(name)
    alias = getattr(field, "validation_alias", None) or getattr(field, "alias", None)  # the latter of Pydantic 1
    choices = getattr(alias, "choices", (alias,))
    return next((each for each in choices if isinstance(each, str)), name)


def _is_required(field: Any) -> bool:
    """Tell whether a field must be given; those of Pydantic 1 say it otherwise."""
    return bool(field.is_required() if hasattr(field, "is_required") else field.required is True)
