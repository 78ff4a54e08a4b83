"""Google Gemini: tools, conversations and calls in the SDK's own types, complete and streamed."""

from __future__ import annotations

import json
import warnings
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

import pytest
from tests.generator import Generator
from tests.interop.recorded import (
    EVERYTHING,
    SIGNATURE,
    chunk,
    chunks,
    partial_chunks,
    response,
    texts_of,
    turns,
    unnumbered,
)
from tests.work import seconds_in

from neuroscript import (
    Engine,
    LLMError,
    ToolCall,
    ToolFailed,
    ToolResult,
    ToolSpec,
    Turn,
    spec_to_schema,
)
from neuroscript.llm.wire import gemini
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.wire_names import WireNames

with warnings.catch_warnings():  # the SDK warns when it is imported
    warnings.simplefilter("ignore")
    from google.genai import types

TURNS = turns()
SAID = "Let me see: é😀\n"
NAMES = WireNames()


def check_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the declarations after asserting that the SDK's types accept them without loss."""
    (tool,) = tools
    taken = types.Tool.model_validate(tool)
    assert taken.model_dump(mode="json", by_alias=True, exclude_unset=True) == tool
    found: list[dict[str, Any]] = tool["functionDeclarations"]
    assert all(len(each["name"]) <= 64 for each in found)
    return found


def test_sdk_accepts_every_first_party_tool() -> None:
    """All in one entry."""
    with Engine() as engine:
        found = check_tools(gemini.to_tools(engine.tools.values()))

    assert len(found) == len(engine.tools) > 0


@pytest.mark.parametrize("count", range(4))
def test_sdk_accepts_generated_specs(count: int) -> None:
    """Five hundred of them, with an unchanged schema."""
    for seed in range(125):
        spec = Generator(seed).spec(count)
        (reported,) = check_tools(gemini.to_tools([spec]))
        assert reported["parametersJsonSchema"] == spec_to_schema(spec, exact=False)


def test_a_tool_is_converted_once_and_is_immutable() -> None:
    """The result is cached on the spec; without tools nothing is sent."""
    spec = ToolSpec("ping", "net", description="Ask.")
    (reported,) = gemini.to_tools([spec])[0]["functionDeclarations"]

    assert reported["description"] == "Ask."
    assert gemini.to_tools([spec])[0]["functionDeclarations"][0] is reported
    assert gemini.to_tools([]) == []
    with pytest.raises(TypeError, match="read-only"):
        reported["name"] = "x"


CALL = ToolCall("math.add", {"num1": 2}, id="t1")
SECOND = ToolCall("net.ping", '{"host": "h"', id="t2")
RESULTS = (
    ToolResult("t2", "net.ping", error=ToolFailed("no answer", tool="net.ping", retry="later")),
    ToolResult("t1", "math.add", {"sum": [5, b"x"]}),
)


def conversation(*turns: Turn) -> dict[str, Any]:
    """Return a conversation in which the SDK's types accept every content."""
    found = gemini.conversation(turns, NAMES)
    for each in [*found["contents"], *([found["systemInstruction"]] if "systemInstruction" in found else [])]:
        taken = types.Content.model_validate(each)
        assert taken.model_dump(mode="json", by_alias=True, exclude_unset=True).keys() == each.keys()
        assert each["parts"]
    return found


def test_results_are_right_after_the_calls() -> None:
    """One for each call, in order; ids of other APIs are not sent."""
    body = conversation(
        Turn("system", "Be brief."),
        Turn("user", "Add."),
        Turn("assistant", "So be it.", (CALL, SECOND, CALL)),
        Turn("tool", tool_results=RESULTS),
        Turn("user", "And?"),
    )

    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Add."}]},
            {
                "role": "model",
                "parts": [
                    {"text": "So be it."},
                    {"functionCall": {"name": "math__add", "args": {"num1": 2}}},
                    {"functionCall": {"name": "net__ping", "args": {"INVALID_JSON": '{"host": "h"'}}},
                    {"functionCall": {"name": "math__add", "args": {"num1": 2}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    _response("math__add", {"result": {"sum": [5, {"$base64": "eA=="}]}}),
                    _response("net__ping", {"error": "error tool.failed: no answer. The same call may succeed later."}),
                    _response(
                        "math__add",
                        {"error": "error call.failed: this call was not made. The same call may succeed later."},
                    ),
                ],
            },
            {"role": "user", "parts": [{"text": "And?"}]},
        ],
    }


def _response(name: str, response: dict[str, Any]) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response}}


def test_a_generated_id_is_not_sent_back() -> None:
    """The result of a call without an id has no id."""
    (call,) = gemini.read_calls({"candidates": [{"content": {"parts": [{"functionCall": {"name": "math__add"}}]}}]})

    (part,) = gemini.to_parts([ToolResult(call.id, call.name, 5)])

    assert call.id == "call_1"
    assert part == {"functionResponse": {"name": "math__add", "response": {"result": 5}}}


def test_results_can_be_converted_alone() -> None:
    """With the ids that they have."""
    found = gemini.to_parts([ToolResult("t1", "math.add", 5)])

    assert found == [{"functionResponse": {"id": "t1", "name": "math__add", "response": {"result": 5}}}]


def test_a_generated_id_is_unique() -> None:
    """Even if the API gives another call the same id."""
    parts = [{"functionCall": {"name": "a__b", "id": "call_2"}}, {"functionCall": {"name": "a__b"}}]

    found = gemini.read_calls({"candidates": [{"content": {"parts": parts}}]})

    assert [call.id for call in found] == ["call_2", "call_3"]


@pytest.mark.parametrize("has_ids", [True, False])
def test_an_own_turn_is_sent_back_unchanged(has_ids: bool) -> None:
    """With its signatures, and an id only where the API sent one."""
    whole = response([CALL, CALL], "Hm.", ids=has_ids)
    del whole["candidates"][0]["content"]["parts"][0]["thought"]
    taken = types.GenerateContentResponse.model_validate(whole)
    for each in (whole, taken, taken.model_dump()):
        turn = gemini.read(each, NAMES).turn
        results = tuple(ToolResult(call.id, call.name, 5) for call in turn.tool_calls)

        body = conversation(Turn("user", "Add."), turn, Turn("tool", tool_results=results))["contents"]

        assert _signed(body[1]) == _signed(whole["candidates"][0]["content"])
        reported = [each["functionResponse"] for each in body[2]["parts"]]
        assert [each.get("id") for each in reported] == ([CALL.id] * 2 if has_ids else [None] * 2)


def _signed(content: Any) -> Any:
    """Return a content with its bytes decoded, because there are two Base64 alphabets."""
    return types.Content.model_validate(content).model_dump(exclude_none=True)


def assembled(pieces: Iterable[Any]) -> tuple[Reply, str]:
    """Return the result of an assembler, and the text that it emitted."""
    assembler = gemini.GENERATE.assembler(NAMES)
    text = "".join([assembler.take(piece) for piece in pieces])
    return assembler.reply(), text


def sdk(data: dict[str, Any]) -> types.GenerateContentResponse:
    return types.GenerateContentResponse.model_validate(data)


def test_recorded_calls_arrive_as_objects_and_as_data() -> None:
    """With the ids of the API or generated ones; under the wire names and the SDK's names."""
    for calls in TURNS:
        for ids, expected in ((True, tuple(calls)), (False, unnumbered(calls))):
            whole = response(calls, SAID, ids=ids)
            for each in (whole, sdk(whole), sdk(whole).model_dump(), json.loads(json.dumps(whole))):
                reply = gemini.read(each, NAMES)
                assert texts_of(reply.turn) == (SAID, expected)
                assert (reply.stop, reply.usage) == ("tools", Usage(10, 25))
            assert tuple(gemini.read_calls(whole)) == expected


def test_recorded_calls_arrive_in_pieces() -> None:
    """Text in pieces of every size, complete calls; the signatures stay where they were."""
    for calls in TURNS if EVERYTHING else TURNS[:40]:
        whole = response(calls, SAID)
        for step in range(1, len(SAID) + 1):
            reply, text = assembled(chunks(whole, step))
            assert text == SAID
            assert texts_of(reply.turn) == (SAID, tuple(calls))
            assert reply.turn.native is not None
            assert reply.turn.native["gemini.generate"][:-1] == whole["candidates"][0]["content"]["parts"]
            assert (reply.stop, reply.usage) == ("tools", Usage(10, 25))


def test_recorded_calls_arrive_value_by_value() -> None:
    """Strings character by character; as plain data and as SDK objects, whose numbers are floats."""
    for calls in turns(has_empty=False):
        whole = response(calls, SAID)
        for pieces in (list(partial_chunks(whole)), [sdk(each) for each in partial_chunks(whole)]):
            reply, _ = assembled(pieces)
            assert texts_of(reply.turn) == (SAID, tuple(calls))
            assert reply.turn.native is not None
            assert _parts(reply)[2]["functionCall"]["args"] == calls[0].arguments
            assert _signed({"parts": _parts(reply)[2:3]})["parts"][0]["thought_signature"] == b64decode(SIGNATURE)


def _parts(reply: Reply) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (reply.turn.native or {})["gemini.generate"]
    return found


def test_consecutive_streamed_calls_are_separated() -> None:
    """By a name or another id, if no piece marks the end of a call."""
    first = {"name": "a__b", "partialArgs": [{"jsonPath": "$.x", "stringValue": "1"}], "willContinue": True}
    pieces = [chunk({"functionCall": first}), chunk({"functionCall": {**first, "willContinue": False}})]
    reply, _ = assembled([*pieces, chunk({"text": ""}, finishReason="STOP")])

    assert reply.turn.tool_calls == (ToolCall("a.b", {"x": "1"}, id="call_1"), ToolCall("a.b", {"x": "1"}, id="call_2"))


def test_characters_split_between_pieces_are_whole() -> None:
    """Of text and of arguments, if a server splits a character in two surrogates."""
    halves = ["a\ud83d", "\ude00b"]
    call = {"name": "a__b", "partialArgs": [{"jsonPath": "$.x", "stringValue": half} for half in halves]}
    reply, _ = assembled(
        [*(chunk({"text": half}) for half in halves), chunk({"functionCall": call}, finishReason="STOP")]
    )

    assert texts_of(reply.turn) == ("a\U0001f600b", (ToolCall("a.b", {"x": "a\U0001f600b"}, id="call_1"),))


def test_an_incomplete_call_has_arguments_that_are_not_json() -> None:
    """The engine can report it to the model; it is sent back as a map."""
    call = {"name": "a__b", "partialArgs": [{"jsonPath": "$.x", "stringValue": "1"}], "willContinue": True}
    reply, _ = assembled([chunk({"functionCall": call}), chunk({"text": ""}, finishReason="MAX_TOKENS")])

    assert reply.stop == "length"
    assert reply.turn.tool_calls == (ToolCall("a.b", '{"x": "1"', id="call_1"),)
    assert _parts(reply)[0] == {"functionCall": {"name": "a__b", "args": {"INVALID_JSON": '{"x": "1"'}}}


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([{"stringValue": "x"}], "a piece of an argument has no path"),
        ([{"jsonPath": "$..x"}], "a piece of an argument has an invalid path"),
        ([{"jsonPath": "$", "stringValue": "x"}], "a piece of an argument does not name the argument"),
        ([{"jsonPath": "$.x[1]", "stringValue": "x"}], "the pieces of an argument do not fit together"),
        (
            [{"jsonPath": "$.x", "numberValue": 1}, {"jsonPath": "$.x.y", "numberValue": 1}],
            "the pieces of an argument do not fit together",
        ),
        (
            [{"jsonPath": "$.x.y", "numberValue": 1}, {"jsonPath": "$.x", "numberValue": 1}],
            "two pieces of an argument have the same path",
        ),
    ],
)
def test_inconsistent_pieces_are_reported(pieces: list[dict[str, Any]], text: str) -> None:
    """The error contains the problem, and nothing of the text."""
    with pytest.raises(LLMError) as caught:
        assembled([chunk({"functionCall": {"name": "a__b", "partialArgs": pieces}}, finishReason="STOP")])

    assert (caught.value.code, caught.value.retry, caught.value.text) == (
        "llm.format",
        "host",
        f"the server did not send a valid reply: {text}",
    )


def test_an_incomplete_stream_is_reported() -> None:
    """At any position; the parts are not a reply."""
    pieces = list(chunks(response(TURNS[0], SAID)))
    for count in range(len(pieces)):
        with pytest.raises(LLMError) as caught:
            assembled(pieces[:count])
        assert (caught.value.code, caught.value.retry) == ("llm.incomplete", "later")


UNREADABLE = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL")


@pytest.mark.parametrize("reason", UNREADABLE)
def test_text_before_a_malformed_call_is_not_an_answer(reason: str) -> None:
    """The model may write a valid call when it is asked again."""
    with pytest.raises(LLMError) as caught:
        gemini.read(sdk(response([], "Let me add.", finishReason=reason)), NAMES)

    assert (caught.value.code, caught.value.retry) == ("llm.empty", "later")


@pytest.mark.parametrize("reason", [each for each in types.FinishReason if each.value not in UNREADABLE], ids=str)
def test_every_finish_reason_is_known(reason: types.FinishReason) -> None:
    """Refusals and length limits have their own reasons; any other end with content is normal."""
    reply = gemini.read(sdk(response([], "Hello.", finishReason=reason.value)), NAMES)

    no_room = reason.value in ("MAX_TOKENS", "CONTINUATION")
    others = {"FINISH_REASON_UNSPECIFIED", "STOP", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "TOO_MANY_TOOL_CALLS"}
    others |= {"MISSING_THOUGHT_SIGNATURE"}
    assert reply.stop == ("length" if no_room else "end" if reason.value in others else "refused")


def test_a_blocked_prompt_is_refused() -> None:
    """Complete and streamed."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    for reply in (gemini.read(sdk(blocked)), assembled([blocked])[0], gemini.read(sdk(blocked).model_dump())):
        assert (reply.stop, reply.turn.content, reply.usage) == ("refused", "", Usage(4, 0))


@pytest.mark.parametrize(
    ("data", "code", "retry", "text"),
    [
        ("<html>", "llm.format", "host", "the server did not send a valid reply: expected a map, got str"),
        ({"content": "x"}, "llm.format", "host", "the server did not send a valid reply: it has no candidates"),
        ({"candidates": []}, "llm.empty", "later", "the model returned an empty reply"),
        (response([], ""), "llm.empty", "later", "the model returned an empty reply"),
        (
            response([], "", finishReason="MALFORMED_FUNCTION_CALL"),
            "llm.empty",
            "later",
            "the model's server could not parse the model's reply",
        ),
        (
            chunk({"functionCall": {"args": {}}}),
            "llm.format",
            "host",
            "the server did not send a valid reply: it contains an invalid call: "
            "functionCall['name']: expected the name of a tool, got nothing",
        ),
        (
            {"error": {"code": 503, "status": "UNAVAILABLE", "message": "canary"}},
            "llm.server",
            "later",
            "the server ended the reply with an error (unavailable)",
        ),
        (
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}},
            "llm.rate",
            "later",
            "the server ended the reply with an error (resource_exhausted)",
        ),
        ({"error": {"code": 404}}, "llm.model_not_found", "host", "the server ended the reply with an error"),
        ({"error": {"code": 418}}, "llm.request", "host", "the server ended the reply with an error"),
    ],
)
def test_invalid_replies_are_reported(data: Any, code: str, retry: str, text: str) -> None:
    """The error contains the problem, and nothing of the text."""
    with pytest.raises(LLMError) as caught:
        gemini.read(data)

    assert (caught.value.code, caught.value.retry, caught.value.text) == (code, retry, text)


def test_stream_time_is_linear() -> None:
    """For any size of the pieces, eight times as many take at most about eight times as long."""

    def seconds(length: int) -> float:
        pieces = list(partial_chunks(response([ToolCall("fs.read", {"text": "x" * length})], "y")))
        return seconds_in(lambda: assembled(pieces))

    assert seconds(4_000) < 24 * seconds(500)
