"""Calls in the text of models without tool calling, and the instructions for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from tests.interop.recorded import EVERYTHING, turns, unnumbered, wire
from tests.work import seconds_in

from neuroscript import ArgSpec, ArgType, Engine, ToolCall, ToolImplementation, ToolResult, ToolSpec, Turn
from neuroscript.llm import converse
from neuroscript.llm.wire import prompted
from neuroscript.llm.wire.prompted.prompt import calls_text
from neuroscript.runtime.wire_names import WireNames

SPEC = ToolSpec(
    "add", "math", (ArgSpec("num1", ArgType.INT), ArgSpec("num2", ArgType.INT)), description="Add two numbers."
)
PING = ToolSpec("ping", "net", description="Ask.")
NAMES = WireNames.of([SPEC, PING])
CALL = '{"name": "math__add", "arguments": {"num1": 2, "num2": 3}}'
OTHER = '{"tool": "net.ping", "parameters": {"host": "h"}}'
ADD = ToolCall("math.add", {"num1": 2, "num2": 3}, id="call_1")
ADD_AGAIN = attrs.evolve(ADD, id="call_2")
PINGED = ToolCall("net.ping", {"host": "h"}, id="call_2")


@pytest.mark.parametrize(
    ("text", "message", "calls"),
    [
        (f"See.\n```tool_call\n{CALL}\n```\nDone.", "See.\nDone.", [ADD]),
        (f"```json\n{CALL}\n```", "", [ADD]),
        (f"```\n[{CALL}, {OTHER}]\n```", "", [ADD, PINGED]),
        (f"```tool_call\n{CALL}\n{OTHER}\n```", "", [ADD, PINGED]),
        (f"```tool_call\n{CALL}", "", [ADD]),
        (CALL, "", [ADD]),
        (f"See.\n{CALL}\n{OTHER}\nDone.", "See.\nDone.", [ADD, PINGED]),
        (f"[{CALL},\n {OTHER}]", "", [ADD, PINGED]),
        (json.dumps(json.loads(CALL), indent=2), "", [ADD]),
        (f'{{"type": "function", "function": {CALL}}}', "", [ADD]),
        ('{"function": "math__add", "args": [2, 3]}', "", [ToolCall("math.add", [2, 3], id="call_1")]),
        ('{"name": "math__add", "arguments": "{}"}', "", [ToolCall("math.add", "{}", id="call_1")]),
        ('{"name": "net__ping"}', "", [ToolCall("net.ping", {}, id="call_1")]),
        ('{"name": "no__tool", "arguments": {}}', "", [ToolCall("no.tool", {}, id="call_1")]),
        (f"See. <tool_call>{CALL}</tool_call> Done.", "See.\nDone.", [ADD]),
        (f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{OTHER}\n</tool_call>", "", [ADD, PINGED]),
        (f"<tool_call>{CALL}", "", [ADD]),
        (
            '<tool_call>{"name": "fs__write", "arguments": {"text": "</tool_call>\\n```"}}</tool_call>',
            "",
            [ToolCall("fs.write", {"text": "</tool_call>\n```"}, id="call_1")],
        ),
        ('See.<function=math__add>{"num1": 2, "num2": 3}</function>', "See.", [ADD]),
        ('<tool_call>\n<function=math__add>{"num1": 2, "num2": 3}</function>\n</tool_call>', "", [ADD]),
        (
            "<tool_call>\n<function=net__ping>\n<parameter=host>\nh\n</parameter>\n<parameter=text>\n<b>\n\n</parameter>\n"
            "</function>\n</tool_call>\nDone.",
            "Done.",
            [ToolCall("net.ping", {"host": "h", "text": "<b>\n"}, id="call_1")],
        ),
        (f"[TOOL_CALLS] [{CALL}, {OTHER}]", "", [ADD, PINGED]),
        ('[TOOL_CALLS]math__add[ARGS]{"num1": 2, "num2": 3}', "", [ADD]),
        (f"<|python_tag|>{CALL}; {OTHER}", "", [ADD, PINGED]),
        (f"<|python_tag|>{CALL}", "", [ADD]),
    ],
)
def test_calls_are_read_as_models_are_trained_to_write_them(text: str, message: str, calls: list[ToolCall]) -> None:
    """With the surrounding text, and generated ids."""
    assert prompted.read(text, NAMES) == (message, tuple(calls))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Prose with {braces} and [brackets].",
        f"You could write {CALL} to add.",
        f"{CALL} adds two numbers.",
        '{"name": "Ada", "born": 1815}',
        '{"name": "Ada"}',
        '[{"name": "Ada"}, {"name": "Bob"}]',
        f'{{"name": "x", "arguments": {{}}, "more": {CALL}}}',
        f"```python\n{CALL}\n```",
        '```json\n{"a": 1}\n```',
        '```json\n{"a": 1,}\n```',
        "```json\nno\n```",
        '{"name": "math__add", "arguments": {"num1": 2',
        '{"name": "math__add", "arguments": 5}',
        "[]",
        "</tool_call></function>",
    ],
)
def test_a_mention_of_a_call_is_not_a_call(text: str) -> None:
    """The whole string is the text of the model."""
    assert prompted.read(text, NAMES) == (text, ())


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (
            '<tool_call>{"name": "math__add", "arguments": {"num1": 2,}}</tool_call>',
            ToolCall("math.add", '{"num1": 2,}}', id="call_1"),
        ),
        (
            '```tool_call\n{"name": "math__add", "arguments": {"num1": 2\n```',
            ToolCall("math.add", '{"num1": 2', id="call_1"),
        ),
        (
            '```json\n{"name": "math__add", "arguments": {"num1": 2,}}\n```',
            ToolCall("math.add", '{"num1": 2,}}', id="call_1"),
        ),
        ("<function=math__add>{2}</function>", ToolCall("math.add", "{2}", id="call_1")),
        (
            "<function=math__add><parameter=num1>2",
            ToolCall("math.add", "<parameter=num1>2", id="call_1"),
        ),
        ("[TOOL_CALLS] nothing", ToolCall("", "nothing", id="call_1")),
        ("<tool_call>add 2 and 3</tool_call>", ToolCall("", "add 2 and 3", id="call_1")),
        (
            '<tool_call>{"name": "math__add", "num1": 2}</tool_call>',
            ToolCall("math.add", '{"name": "math__add", "num1": 2}', id="call_1"),
        ),
        (
            '<tool_call>{"name": "math__add", "arguments": {"a": 1, "a": 2}}</tool_call>',
            ToolCall("math.add", '{"a": 1, "a": 2}}', id="call_1"),
        ),
    ],
)
def test_everything_after_a_marker_is_a_call(text: str, call: ToolCall) -> None:
    """The engine can report its problems to the model, and nothing is dropped."""
    output, calls = prompted.read(text, NAMES)

    assert (output, calls) == ("", (call,))
    with Engine(toolsets=[ToolImplementation(SPEC, lambda rt, num1, num2: num1 + num2)], plugins="none") as engine:
        result = engine.execute(calls[0])
    assert result.error is not None
    assert result.error.retry == "model"


def test_a_damaged_call_does_not_hide_the_next() -> None:
    """It ends where the next one starts."""
    _, calls = prompted.read(f'<tool_call>{{"name": "math__add", "arguments": {{<tool_call>{CALL}</tool_call>', NAMES)

    assert calls == (ToolCall("math.add", "{", id="call_1"), ADD_AGAIN)


def test_generated_calls_survive_a_round_trip() -> None:
    """In every syntax, with any arguments."""
    for calls in turns():
        data = [{"name": wire(call.name), "arguments": call.arguments} for call in calls]
        objects = [json.dumps(each, ensure_ascii=len(call.id) % 2 == 0) for each, call in zip(data, calls, strict=True)]
        ways = (
            "\n".join(objects),
            f"[{', '.join(objects)}]",
            "".join(f"<tool_call>\n{each}\n</tool_call>" for each in objects),
            "[TOOL_CALLS]" + json.dumps(data),
            "<|python_tag|>" + ";".join(objects),
            "\n".join(f"```json\n{json.dumps(each, indent=2)}\n```" for each in data),
            "".join(f"<function={each['name']}>{json.dumps(each['arguments'])}</function>" for each in data),
            calls_text(calls, WireNames()),
        )
        for text in ways:
            assert prompted.read(text) == ("", unnumbered(calls)), text


HOSTILE = (
    "[",
    "[\n",
    '{"name":',
    '{"name":\n',
    '[{"name":"x","arguments":[\n',
    "<tool_call>",
    "<tool_call>[",
    '<tool_call>{"name":"',
    '<tool_call>["x","',
    "<function=a>{",
    "<function=",
    "<function=a><parameter=b>",
    "<tool_call><function=a>{",
    "[TOOL_CALLS] [",
    "[TOOL_CALLS]a {",
    "<|python_tag|>{",
    "```json\n{",
    "```\n",
    '"\\',
    '{"name":"\\',
    '{"name": 1}\n',
    '{"id": {"name": 1}\n',
    CALL + "\n",
    f"<tool_call>{CALL}",
    f"<|python_tag|>{CALL};",
    " \n",
    "{ \n",
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_parsing_time_is_linear(unit: str) -> None:
    """For any repeated part, eight times the text takes at most about eight times as long."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit)) + "]" * 1000
        return seconds_in(lambda: prompted.read(text, NAMES))

    most = 1_000_000 if EVERYTHING else 64_000
    assert seconds(most) < 32 * max(seconds(most // 8), 0.001)


class Scripted:
    """A model that replays a script, and records its requests."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[list[Turn]] = []

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the next answer."""
        self.asked.append(list(turns))
        return Turn("assistant", self.answers.pop(0))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[Any]) -> Turn:
        """Fail, because this method is never called."""
        raise AssertionError("this model knows no tools")

    def embed(self, text: str) -> Sequence[float]:
        """Return the length of a string."""
        return [float(len(text))]


def test_a_model_without_tool_calling_calls_tools() -> None:
    """It receives instructions, and then the result of each call; its own text is sent back unchanged."""
    written = f"Let me see.\n```tool_call\n{CALL}\n```\n<tool_call>no</tool_call>"
    scripted = Scripted(written, "It is 5.")
    model = prompted.PromptedModel(scripted)
    received: list[str] = []
    turns = [Turn("system", "Be brief."), Turn("user", "What is 2 + 3?")]

    reply = model.reply(turns, [SPEC], received.append)
    results = (ToolResult("call_2", "", error=None, value="none"), ToolResult("call_1", "math.add", 5))
    end = model.ask_with_tools([*turns, reply.turn, Turn("tool", tool_results=results)], [SPEC])

    assert (reply.stop, reply.turn.content, received) == ("tools", "Let me see.", ["Let me see."])
    assert reply.turn.tool_calls == (ADD, ToolCall("", "no", id="call_2"))
    assert end == Turn("assistant", "It is 5.")
    system = Turn("system", f"Be brief.\n\n{prompted.instructions([SPEC])}")
    assert scripted.asked == [
        [system, turns[1]],
        [
            system,
            turns[1],
            Turn("assistant", written),
            Turn("user", "Call 1, math__add, returned:\n5\n\nCall 2, without a name, returned:\nnone"),
        ],
    ]
    assert model.embed("abc") == [3.0]


def test_a_conversation_works_with_a_model_without_tool_calling() -> None:
    """Its errors use its own syntax, and it fixes them."""
    scripted = Scripted(
        '<tool_call>{"name": "math__add", "arguments": {"num1" 2}}</tool_call>',
        "<tool_call><function=math__add><parameter=num1>2</parameter><parameter=num2>3</parameter></function></tool_call>"
        "<tool_call>and more</tool_call>",
        "It is 5.",
    )
    tool = ToolImplementation(SPEC, lambda rt, num1, num2: num1 + num2)
    with Engine(toolsets=[tool], plugins="none") as engine:
        message = converse(engine, "What is 2 + 3?", tools=("math.*",), model=prompted.PromptedModel(scripted))

    assert message.answer == "It is 5."
    reported = [requests[-1].content for requests in scripted.asked[1:]]
    assert reported == [
        "Call 1, math__add, returned:\nerror arg.not_json: expected arguments as JSON, got str "
        "(line 1, column 9 is not JSON). Fix the arguments and call again.",
        "Call 1, math__add, returned:\n5\n\nCall 2, without a name, returned:\n"
        "error tool.not_found: no tool with this name is available. Fix the arguments and call again.",
    ]


def test_a_turn_of_another_model_uses_the_syntax_of_this_one() -> None:
    """The model learns from its own example."""
    scripted = Scripted(CALL)
    turn = Turn("assistant", "So be it.", (ToolCall("math.add", '{"num1": 2}', id="t1"),))

    answer = prompted.PromptedModel(scripted).ask([Turn("user", "Add."), turn])

    assert scripted.asked[0][1:] == [
        Turn("assistant", 'So be it.\n```tool_call\n{"name": "math__add", "arguments": {"num1": 2}}\n```'),
        Turn(
            "user",
            "Call 1, math__add, returned:\nerror call.failed: this call was not made. The same call may succeed later.",
        ),
    ]
    assert answer == Turn("assistant", CALL), "without tools nothing is read off it"


def test_instructions_contain_the_names_that_the_model_writes() -> None:
    """For every tool; without tools there are none; the parser accepts the example in them."""
    reported = prompted.instructions([SPEC, ToolImplementation(PING, lambda rt: None)])
    other = prompted.instructions([SPEC], WireNames({"math.add": "plus"}, {"plus": "math.add"}))

    assert "\nmath__add(num1: int, num2: int) -> any\n  Add two numbers.\n" in reported
    assert "\nnet__ping() -> any\n  Ask." in reported
    assert "\nplus(num1: int, num2: int) -> any\n" in other
    assert prompted.instructions([]) == ""
    assert [call.name for call in prompted.read(reported, NAMES)[1]] == ["name"]
