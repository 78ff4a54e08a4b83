"""Anthropic Messages: tools and conversations that the SDK's types accept, and how replies are read."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest
from anthropic import types
from pydantic import TypeAdapter
from tests.generator import Generator
from tests.interop.recorded import events, message

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    Example,
    LLMError,
    ToolCall,
    ToolFailed,
    ToolImplementation,
    ToolResult,
    ToolSpec,
    Turn,
    spec_from_schema,
    spec_to_schema,
)
from neuroscript.llm.wire import anthropic, gemini, openai
from neuroscript.llm.wire.prompted import instructions
from neuroscript.runtime.replies import Usage
from neuroscript.runtime.wire_names import WireNames

TOOL = TypeAdapter(types.ToolParam)
MESSAGE = TypeAdapter(types.MessageParam)


def check_tool(tool: dict[str, Any]) -> None:
    """Assert that the SDK's types accept a tool and lose nothing of it."""
    taken = TOOL.validate_python(tool, strict=True)
    plain = json.loads(json.dumps(tool))
    examples = [*taken.pop("input_examples", [])]
    assert {**taken, **({"input_examples": examples} if examples else {})} == plain
    assert tool["input_schema"]["type"] == "object"
    assert len(tool["name"]) <= 64


def test_sdk_accepts_every_first_party_tool() -> None:
    """With a description, a schema and matching examples."""
    with Engine() as engine:
        found = anthropic.to_tools(engine.tools.values())

    assert len(found) == len(engine.tools) > 0
    for reported in found:
        check_tool(reported)
    assert any("input_examples" in reported for reported in found)


@pytest.mark.parametrize("count", range(4))
def test_sdk_accepts_generated_specs(count: int) -> None:
    """Five hundred of them, with everything that a spec may contain."""
    for seed in range(125):
        spec = Generator(seed).spec(count)
        (reported,) = anthropic.to_tools([spec])
        check_tool(reported)
        assert reported["input_schema"] == spec_to_schema(spec, exact=False)


def test_a_tool_is_converted_once_and_is_immutable() -> None:
    """The result is cached on the spec; another name gives another tool."""
    spec = ToolSpec("ping", "net", deprecated="use net.find", description="Ask.", when_to_use="When in doubt.")
    (reported,) = anthropic.to_tools([ToolImplementation(spec, lambda rt: None)])

    assert reported["name"] == "net__ping"
    assert reported["description"] == "Deprecated: use net.find. Ask. When in doubt."
    assert anthropic.to_tools([spec])[0] is reported
    with pytest.raises(TypeError, match="read-only"):
        reported["name"] = "x"
    (other,) = anthropic.to_tools([spec], names=WireNames({"net.ping": "p"}, {"p": "net.ping"}))
    assert other["name"] == "p"


def test_examples_match_the_schema_and_hide_secrets() -> None:
    """By name or in order; none that fails, does not match unchanged, or contains a secret."""
    args = (ArgSpec("host", ArgType.STRING), ArgSpec("key", ArgType.STRING, required=False, secret=True))
    examples = (
        Example({"host": "a"}, True),
        Example(("b",)),
        Example({"host": "c"}, error="net.gone"),
        Example({"host": 5}),
        Example({"host": "d", "key": "sesame"}),
        Example({"host": "e", "more": 1}),
        Example(("f", "sesame", 7)),
    )
    (reported,) = anthropic.to_tools([ToolSpec("ping", "net", args, examples=examples)])

    assert reported["input_examples"] == [{"host": "a"}, {"host": "b"}]


ODD = ("$top", "_top", "größe", "a" * 128, "a" * 127 + "b", "user-id", "from")


def test_argument_names_that_the_api_rejects_are_mapped() -> None:
    """In schemas, examples, turns and replies, complete and streamed; one bad name does not break a request."""
    given = {name: number for number, name in enumerate(ODD)}
    args = tuple(ArgSpec(name, ArgType.INT, description="How many.") for name in ODD)
    tool = ToolSpec("find", "mail", args, examples=(Example(given),))
    names = WireNames.of([tool])

    (reported,) = anthropic.to_tools([tool])

    check_tool(reported)
    wires = list(reported["input_schema"]["properties"])
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", wire) for wire in wires)
    assert (len(set(wires)), wires[1], wires[2], wires[5:]) == (7, "_top", "gr__e", ["user-id", "from"])
    assert reported["input_schema"]["required"] == wires
    assert reported["input_schema"]["properties"][wires[0]]["description"] == "Its name is $top. How many."
    sent = dict(zip(wires, range(7), strict=True))
    assert reported["input_examples"] == [sent]
    requests = [ToolCall("mail.find", sent, id="t1")]
    turn = anthropic.read(message(requests), names).turn
    assembler = anthropic.MessageAssembler(names)
    for each in events(message(requests)):
        assembler.take(each)
    assert turn.tool_calls == assembler.reply().turn.tool_calls == (ToolCall("mail.find", given, id="t1"),)
    turns = [Turn("user", "Go."), Turn("assistant", "", turn.tool_calls)]
    assert anthropic.conversation(turns, names)["messages"][1]["content"][0]["input"] == sent


def test_no_model_receives_a_secret() -> None:
    """Neither as a default at any depth, nor in an example; a property called default stays."""
    password = ArgSpec("default", ArgType.STRING, secret=True, default="sesame")
    args = (
        ArgSpec("key", ArgType.STRING, secret=True, default="sesame"),
        ArgSpec("login", ArgType.MAP, keys=(password,), default={"default": "sesame"}),
        ArgSpec("more", ArgType.SLICE_MAP, default=[], keys=(ArgSpec("login", ArgType.MAP, keys=(password,)),)),
        ArgSpec("host", ArgType.STRING, default="localhost"),
    )
    spec = ToolSpec("ping", "net", args, examples=(Example({"key": "sesame"}), Example({"host": "h"})))
    writers: tuple[Any, ...] = (anthropic.to_tools, gemini.to_tools, openai.to_tools)

    reported = [json.dumps(write([spec])) for write in writers]
    reported.append(instructions([attrs.evolve(spec, examples=())]))

    assert all("sesame" not in each for each in reported)
    assert all("localhost" in each for each in reported)
    found = anthropic.to_tools([spec])[0]
    assert list(found["input_schema"]["properties"]["login"]["properties"]) == ["default"]
    assert found["input_examples"] == [{"host": "h"}]


def test_root_keywords_that_the_api_rejects_are_checked_per_call() -> None:
    """An imported schema may contain them; the call pipeline still enforces them."""
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    (reported,) = anthropic.to_tools([spec_from_schema("shop.order", schema)])

    assert reported["input_schema"] == {"type": "object", "properties": {"a": {}, "b": {}}}


CALL = ToolCall("math.add", {"num1": 2}, id="t1")
SECOND = ToolCall("net.ping", '{"host": "h"', id="t2")
RESULTS = (
    ToolResult("t2", "net.ping", error=ToolFailed("no answer", tool="net.ping", retry="later")),
    ToolResult("t1", "math.add", 5),
)


def conversation(*turns: Turn) -> dict[str, Any]:
    """Return a conversation in which the SDK's types accept every message."""
    found = anthropic.conversation(turns, WireNames())
    for each in found["messages"]:
        MESSAGE.validate_python(each)
        assert each["content"]
    return found


def test_results_are_in_one_message_right_after_the_calls() -> None:
    """In the order of the calls, followed by the user's text; arguments that are not JSON are sent unchanged."""
    body = conversation(
        Turn("system", "Be brief."),
        Turn("user", "Add."),
        Turn("user", "Now."),
        Turn("assistant", "So be it.", (CALL, SECOND)),
        Turn("tool", tool_results=RESULTS[:1]),
        Turn("tool", tool_results=RESULTS[1:]),
        Turn("user", "And?"),
        Turn("assistant", " \n"),
    )

    assert body == {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Add."}, {"type": "text", "text": "Now."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "So be it."},
                    {"type": "tool_use", "id": "t1", "name": "math__add", "input": {"num1": 2}},
                    {"type": "tool_use", "id": "t2", "name": "net__ping", "input": {"INVALID_JSON": '{"host": "h"'}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "5"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "content": "error tool.failed: no answer. The same call may succeed later.",
                        "is_error": True,
                    },
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    }


def test_results_can_be_converted_alone() -> None:
    """As content blocks for any message."""
    found = anthropic.to_content(RESULTS[1:])

    assert found == [{"type": "tool_result", "tool_use_id": "t1", "content": "5"}]


def test_a_call_without_a_result_is_reported_as_not_made() -> None:
    """The API rejects a conversation with an open call."""
    body = conversation(Turn("user", "Add."), Turn("assistant", "", (CALL,)), Turn("user", "Stop."))

    assert body["messages"][2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": "error call.failed: this call was not made. The same call may succeed later.",
            "is_error": True,
        },
        {"type": "text", "text": "Stop."},
    ]


def test_ids_of_other_apis_are_unique() -> None:
    """Gemini's start again in each turn, and some servers omit them; the results follow."""
    calls = tuple(ToolCall("a.b", {}, id=id) for id in ("call_1", "", "", "call_1_5", "call_1"))
    results = tuple(ToolResult(call.id, "a.b", number) for number, call in enumerate(calls))
    body = conversation(*[Turn("user", "Go."), Turn("assistant", "", calls), Turn("tool", tool_results=results)] * 2)

    requests = [each["id"] for at in (1, 3) for each in body["messages"][at]["content"] if "id" in each]
    reported = [
        (each["tool_use_id"], each["content"])
        for one in body["messages"]
        for each in one["content"]
        if "tool_use_id" in each
    ]
    assert len(set(requests)) == 10
    assert reported == list(zip(requests, ["0", "1", "2", "3", "4"] * 2, strict=True))


def test_an_own_turn_is_sent_back_unchanged() -> None:
    """With signed thoughts; but without blank text, which the API sends and does not accept."""
    whole = message([CALL], "Hm.")
    whole["content"].append({"type": "text", "text": ""})
    reply = anthropic.read(types.Message.model_validate(whole), WireNames())

    body = conversation(Turn("user", "Add."), reply.turn, Turn("tool", tool_results=RESULTS[1:]))

    assert body["messages"][1] == {"role": "assistant", "content": whole["content"][:-1]}
    assert body["messages"][2]["content"][0]["tool_use_id"] == "t1"


@pytest.mark.parametrize(
    ("reason", "calls", "stop"),
    [
        ("end_turn", [], "end"),
        ("stop_sequence", [], "end"),
        ("pause_turn", [], "end"),
        ("pause_turn", [CALL], "tools"),
        ("tool_use", [CALL], "tools"),
        (None, [CALL], "tools"),
        ("another", [], "end"),
        ("tool_use", [], "end"),
        ("max_tokens", [CALL], "length"),
        ("model_context_window_exceeded", [], "length"),
        ("refusal", [], "refused"),
    ],
)
def test_a_reply_has_its_stop_reason(reason: Any, calls: list[ToolCall], stop: str) -> None:
    """With its usage; all tokens that were read count as input."""
    reply = anthropic.read(message(calls, "Hello.", stop_reason=reason))

    assert reply.stop == stop
    assert reply.usage == Usage(17, 20)
    assert (reply.turn.content, list(reply.turn.tool_calls)) == ("Hello.", calls)


@pytest.mark.parametrize(
    ("data", "code", "retry", "text"),
    [
        ("<html>", "llm.format", "host", "the server did not send a valid reply: expected a map, got str"),
        ({"content": "x"}, "llm.format", "host", "the server did not send a valid reply: it has no list under content"),
        (
            {"content": [{"type": "tool_use", "id": "t", "input": {}}]},
            "llm.format",
            "host",
            "the server did not send a valid reply: it contains an invalid call: "
            "name: expected the name of a tool, got nothing",
        ),
        (
            {"content": ["x"]},
            "llm.format",
            "host",
            "the server did not send a valid reply: content: expected a list of maps, got list",
        ),
        (message([]), "llm.empty", "later", "the model returned an empty reply"),
        (message([], stop_reason="tool_use"), "llm.empty", "later", "the model returned an empty reply"),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "canary"}},
            "llm.server",
            "later",
            "the server ended the reply with an error (overloaded_error)",
        ),
        (
            {"type": "error", "error": {"type": "Some type: canary"}},
            "llm.server",
            "later",
            "the server ended the reply with an error",
        ),
    ],
)
def test_invalid_replies_are_reported(data: Any, code: str, retry: str, text: str) -> None:
    """The error contains the problem, and nothing of the text."""
    with pytest.raises(LLMError) as caught:
        anthropic.read(data)

    assert (caught.value.code, caught.value.retry, caught.value.text) == (code, retry, text)


@pytest.mark.parametrize(
    ("word", "code", "retry"),
    [
        ("authentication_error", "llm.auth", "host"),
        ("permission_error", "llm.auth", "host"),
        ("not_found_error", "llm.model_not_found", "host"),
        ("invalid_request_error", "llm.request", "host"),
        ("request_too_large", "llm.request", "host"),
        ("rate_limit_error", "llm.rate", "later"),
        ("timeout_error", "llm.timeout", "later"),
        ("api_error", "llm.server", "later"),
    ],
)
def test_server_errors_have_our_codes(word: str, code: str, retry: str) -> None:
    """And say who can resolve them."""
    with pytest.raises(LLMError) as caught:
        anthropic.MessageAssembler(WireNames()).take({"type": "error", "error": {"type": word, "message": "canary"}})

    assert (caught.value.code, caught.value.retry) == (code, retry)
    assert "canary" not in str(caught.value)


def test_a_paused_turn_may_be_empty() -> None:
    """It is sent back unchanged, and the model continues."""
    reply = anthropic.read(message([], stop_reason="pause_turn"))

    assert (reply.stop, reply.turn.content) == ("end", "")
    assert reply.turn.native


def test_negative_counts_are_ignored() -> None:
    """In each API; they would raise the limit on tokens."""
    whole = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -5, "completion_tokens": 2}}
    part = {"candidates": [{"content": {"parts": [{"text": "x"}]}}], "usageMetadata": {"promptTokenCount": -5}}
    blocks = {"content": [{"type": "text", "text": "x"}], "usage": {"input_tokens": -5, "cache_read_input_tokens": 7}}

    assert openai.read_chat(whole).usage == Usage(0, 2)
    assert gemini.read(part).usage == Usage()
    assert anthropic.read(blocks).usage == Usage(7, 0)


def test_a_call_without_an_id_receives_one() -> None:
    """A unique id within the message, also on the call that is sent back and on its result."""
    blocks = [{"type": "tool_use", "name": "a__b", "input": {"n": n}} for n in range(3)]
    blocks[0]["id"] = "call_2"

    turn = anthropic.read(message([], content=blocks)).turn
    results = tuple(ToolResult(call.id, "a.b", call.arguments["n"]) for call in reversed(turn.tool_calls))
    body = conversation(Turn("user", "Go."), turn, Turn("tool", tool_results=results))["messages"]

    ids = [call.id for call in turn.tool_calls]
    assert ids == ["call_2", "call_3", "call_4"]
    assert [each["id"] for each in body[1]["content"]] == ids
    assert [(each["tool_use_id"], each["content"]) for each in body[2]["content"]] == list(zip(ids, "012", strict=True))
    assert ids == [call.id for call in anthropic.read_calls({"content": blocks})]


def test_the_wire_uses_only_public_functions() -> None:
    """A transport needs nothing else."""
    wire = anthropic.MESSAGES
    names = WireNames.of([ToolSpec("add", "math")])

    assert wire.tools([ToolSpec("add", "math")], names) == anthropic.to_tools([ToolSpec("add", "math")])
    assert wire.read(message([CALL]), names).turn.tool_calls == (CALL,) == tuple(anthropic.read_calls(message([CALL])))
    assert wire.conversation([Turn("user", "Hi")], names)["messages"][0]["role"] == "user"
