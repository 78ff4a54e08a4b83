"""A Pydantic class with the JSON Schema of a tool; it accepts any arguments, because the engine validates them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

from neuroscript._imports import missing_extra

try:
    from pydantic import BaseModel
except ImportError as error:
    raise missing_extra("classes of arguments need Pydantic", "pydantic", error) from None


class AnyArguments(BaseModel, extra="allow"):
    """Any arguments, unchanged; frameworks read the schema and validate nothing."""

    tool_schema: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return a copy of the schema of the tool."""
        return {"type": "object", "properties": {}, **deepcopy(dict(cls.tool_schema))}


def arguments_model(name: str, schema: Mapping[str, Any]) -> type[AnyArguments]:
    """Return a class with this name whose JSON Schema is *schema*."""
    return type(name, (AnyArguments,), {"tool_schema": schema, "__module__": __name__})
