"""Exclusive bounds and the bounds of decimal numbers, as other programs read them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import ArgSpec, CallError, Engine, ExecutionPolicy, ToolCall, ToolSpec, spec_from_schema, to_prompt
from neuroscript.interop.mcp import from_mcp
from neuroscript.interop.mcp.schema import to_mcp
from neuroscript.interop.openapi import from_openapi
from neuroscript.llm.wire import anthropic, gemini
from neuroscript.llm.wire.openai import strict_schema

RATE: Final = ArgSpec("rate", "float", exclusive_minimum=0, maximum=1, description="The rate.")
SHARES: Final = ArgSpec("shares", "slice_float", exclusive_minimum=0, exclusive_maximum=1)
PRICE: Final = ArgSpec("price", "string", format="decimal", exclusive_minimum=0, maximum=99.5, description="In euros.")
PAY: Final = ToolSpec("pay", "shop", (RATE, SHARES, PRICE), description="Pay.", return_type="string")

PLUGIN: Final = '''
from decimal import Decimal
from typing import Annotated
from annotated_types import Gt, Le, Lt
from neuroscript import Toolset

toolset = Toolset("shop")

@toolset.tool
def pay(
    rate: Annotated[float, Gt(0), Le(1)],
    shares: list[Annotated[float, Gt(0), Lt(1)]],
    price: Annotated[Decimal, Gt(0), Le(99.5)],
) -> str:
    """Pay."""
    return f"{rate} {shares} {price}"
'''

GOOD: Final[dict[str, Any]] = {"rate": "1", "shares": [0.5], "price": "99.50"}
WRONG: Final[tuple[dict[str, Any], ...]] = ({"rate": 0}, {"rate": 1.5}, {"shares": [0.5, 1]}, {"shares": [0]})

KEYWORDS: Final = {
    "rate": {"type": "number", "maximum": 1, "exclusiveMinimum": 0, "description": "The rate."},
    "shares": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
    "price": {
        "type": "string",
        "format": "decimal",
        "description": "In euros. Decimal number more than 0 and at most 99.5.",
    },
}
"""A decimal number is text, for which JSON Schema has no bounds, so its description contains them."""


def test_a_strict_schema_describes_them() -> None:
    """Strict mode has no keywords for bounds."""
    schema: Any = strict_schema(PAY)
    properties = schema["properties"]

    assert properties["rate"] == {"type": "number", "description": "The rate. At most 1, more than 0."}
    assert properties["shares"]["items"] == {"type": "number", "description": "More than 0, less than 1."}
    assert properties["price"]["description"] == (
        "In euros. Decimal number more than 0 and at most 99.5. In the format decimal."
    )


def test_other_schemas_have_keywords() -> None:
    """Those for Anthropic, Gemini and MCP."""
    (claude,), (google,), (served,) = anthropic.to_tools([PAY]), gemini.to_tools([PAY]), to_mcp([PAY])
    (declared,) = google["functionDeclarations"]

    assert claude["input_schema"]["properties"] == KEYWORDS
    assert declared["parametersJsonSchema"]["properties"] == KEYWORDS
    assert served["inputSchema"]["properties"] == KEYWORDS


def test_a_prompt_describes_them() -> None:
    prompt = to_prompt([PAY])

    assert "    rate: float more than 0 and at most 1, required. The rate." in prompt
    assert "    price: decimal number more than 0 and at most 99.5, required. In euros." in prompt


@pytest.mark.slow
def test_they_survive_mcp(tmp_path: Path) -> None:
    """A server of ours in a process of its own, and a client of ours: both check floats, the server checks decimals."""
    plugin = tmp_path / "shop.py"
    plugin.write_text(PLUGIN)
    server = from_mcp(
        [sys.executable, "-m", "neuroscript", "mcp", "serve", "-p", str(plugin)], group="far", trusted=True
    )

    with Engine(plugins="none", hooks=[server], policy=ExecutionPolicy(grants=("mcp:call:far/*",))) as engine:
        rate, shares, price = engine.infos["far.shop_pay"].spec.args
        assert (rate.exclusive_minimum, rate.maximum) == (0, 1)
        assert (shares.exclusive_minimum, shares.exclusive_maximum) == (0, 1)
        assert price.description == "Decimal number more than 0 and at most 99.5."
        assert engine.execute(ToolCall("far.shop_pay", GOOD)).value == "1.0 [0.5] 99.50"
        for wrong in WRONG:
            assert error_of(engine, {**GOOD, **wrong}) == ("coercion.bounds", "model")
        for wrong in ("0", "99.500001"):
            assert error_of(engine, {**GOOD, "price": wrong}) == ("mcp.error", "model")


def error_of(engine: Engine, arguments: dict[str, Any]) -> tuple[str, str]:
    """Return the code of the error of a call, and who can make the call succeed."""
    error = engine.execute(ToolCall("far.shop_pay", arguments)).error
    assert isinstance(error, CallError)
    return error.code, error.retry


@pytest.mark.parametrize("version", ["3.1.0", "3.0.4"])
def test_they_come_from_openapi(version: str) -> None:
    """As numbers since version 3.1, and as booleans beside the other bound before."""
    is_new = version == "3.1.0"
    rate = (
        {"type": "number", "exclusiveMinimum": 0}
        if is_new
        else {"type": "number", "minimum": 0, "exclusiveMinimum": True}
    )
    query = [{"name": "rate", "in": "query", "required": True, "schema": rate}]
    document = {
        "openapi": version,
        "info": {"title": "shop", "version": "1"},
        "paths": {"/pay": {"get": {"operationId": "pay", "parameters": query, "responses": {"200": {"description": "ok"}}}}},
    }  # fmt: skip

    (tool,) = from_openapi(document, base_url="http://127.0.0.1:1")
    (arg,) = tool.spec.args

    assert (arg.type, arg.minimum, arg.exclusive_minimum) == ("float", None, 0)


def test_the_description_of_a_decimal_is_stable() -> None:
    """A spec that is made from our plain schema has no bounds, so its description is not extended again."""
    plain = {"type": "object", "properties": KEYWORDS, "required": [*KEYWORDS], "additionalProperties": False}
    spec = spec_from_schema("shop.pay", plain, description="Pay.", return_type="string")

    assert to_mcp([spec])[0]["inputSchema"]["properties"] == KEYWORDS
