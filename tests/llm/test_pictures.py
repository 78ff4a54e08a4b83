"""Content as models receive it: pictures for APIs that take them in results, notes for all others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import ToolOutputImage, ToolOutputText
from anthropic.types import ToolResultBlockParam
from openai.types.responses.response_input_param import FunctionCallOutput
from pydantic import TypeAdapter
from pydantic_ai import Agent, BinaryContent, ToolReturnPart
from pydantic_ai.models.test import TestModel
from tests.cli.conftest import CommandResult, command
from tests.picture_tools import EVERY_BLOCK, PNG, pictures

from neuroscript import Content, Engine, Image, ToolResult
from neuroscript.interop.llm import to_llm
from neuroscript.interop.openai_agents import to_openai_agents
from neuroscript.interop.pydantic_ai import to_pydantic_ai
from neuroscript.llm.wire import anthropic, gemini, openai
from neuroscript.runtime.result_text import shorten

DATA = "iVBORw0KGgoAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw=="
PLOT = ToolResult("t1", "pictures.plot", Content("The plot:", " ", Image(PNG, "image/png"), Image(b"a", "image/tiff")))
BARE = ToolResult("t1", "pictures.plot", Content("No picture", Image(b"a", "image/tiff")))


def test_anthropic_receives_pictures() -> None:
    """Its SDK accepts the block; a blank text would make the API reject the request."""
    (block,) = anthropic.to_content([PLOT])

    assert block["content"] == [
        {"type": "text", "text": "The plot:"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        {"type": "text", "text": "[image/tiff, 1 bytes]"},
    ]
    TypeAdapter(ToolResultBlockParam).validate_python(block)
    assert anthropic.to_content([BARE])[0]["content"] == "No picture\n[image/tiff, 1 bytes]"


def test_responses_receive_pictures() -> None:
    (item,) = openai.to_items([PLOT])

    assert item["output"] == [
        {"type": "input_text", "text": "The plot:"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
        {"type": "input_text", "text": "[image/tiff, 1 bytes]"},
    ]
    TypeAdapter(FunctionCallOutput).validate_python(item)
    assert openai.to_items([BARE])[0]["output"] == "No picture\n[image/tiff, 1 bytes]"


def test_other_apis_receive_notes() -> None:
    text = "The plot:\n \n[image/png, 40 bytes]\n[image/tiff, 1 bytes]"

    assert openai.to_messages([PLOT])[0]["content"] == text
    assert gemini.to_parts([PLOT])[0]["functionResponse"]["response"] == {"result": text}


def test_long_content_is_shortened_as_text() -> None:
    short = shorten(ToolResult("", "a.b", Content("x" * 50, Image(PNG, "image/png"))), 20)

    assert short.value == f"{'x' * 20}\n[52 more characters of this result were omitted]"


def test_frameworks_receive_pictures() -> None:
    with Engine(toolsets=pictures, plugins="none") as engine:
        (offered,) = (each for each in to_openai_agents(engine, tools="pictures.every"))
        output = asyncio.run(offered.on_invoke_tool(_Context(), "{}"))
        (tool,) = to_llm(engine, tools="pictures.every")
        attached = tool.implementation()
        agent = Agent(TestModel(), toolsets=[to_pydantic_ai(engine, tools="pictures.every")])
        parts = [part for each in asyncio.run(agent.run("Draw.")).all_messages() for part in each.parts]

    assert output[:3] == [
        ToolOutputText(text="The plot:"),
        ToolOutputText(text="for people"),
        ToolOutputImage(image_url=f"data:image/png;base64,{DATA}"),
    ]
    assert attached.output == EVERY_BLOCK.text
    assert [(each.type, each.content) for each in attached.attachments] == [
        ("image/png", PNG),
        ("audio/wav", b"RIFF\x00"),
    ]
    returned: list[Any] = [each.content for each in parts if isinstance(each, ToolReturnPart)]
    assert returned[0][:3] == ["The plot:", "for people", BinaryContent(PNG, media_type="image/png")]


class _Context:
    """What the OpenAI Agents SDK passes with a call."""

    tool_call_id = "c1"


def test_command_prints_the_text_of_content() -> None:
    """And with --json the result of MCP."""

    def engine(**options: Any) -> Engine:
        return Engine(toolsets=pictures, plugins="none")

    shown = command("call", "pictures.every", make_engine=engine)
    streamed = command("call", "pictures.each", "1", make_engine=engine)
    data = command("call", "--json", "pictures.every", make_engine=engine)

    assert shown == CommandResult(0, f"{EVERY_BLOCK.text}\n")
    assert streamed == CommandResult(0, "0\n[image/png, 40 bytes]\n")
    assert Content.of_data(json.loads(data.out)["value"]) == EVERY_BLOCK
