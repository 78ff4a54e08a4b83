"""Our tools in the agents of one framework, and its tools here; this program runs where it is installed, and prints facts.

Each framework has a function that runs an agent with a scripted model, and a function with the tools that it loads.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal, TypedDict

from neuroscript import (
    Audio,
    Content,
    Engine,
    ExecutionPolicy,
    Image,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    ToolResult,
    Toolset,
)

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(8)
SOUND = b"OggS\x00" + bytes(8)
Turns = list[list[tuple[str, dict[str, Any]]]]
"""What a scripted model asks for: calls, turn by turn."""


class Line(TypedDict):
    item: str
    count: int


shop = Toolset("shop")
SEEN: list[Any] = []
"""What the functions below received."""


@shop.tool
def take(count: int, tags: list[str] | None = None) -> int:
    """Take things out of the shop.

    Args:
        count: How many.
        tags: What is written on them.
    """
    SEEN.append([count, tags])
    return count


@shop.tool
def order(lines: list[Line], mode: Literal["fast", "slow"] = "fast") -> dict[str, Any]:
    """Order several things."""
    SEEN.append([lines, mode])
    return {"items": len(lines), "mode": mode}


@shop.tool
def echo(self: str) -> str:
    """Return a string; its argument has a name that classes use too."""
    return self


@shop.tool
async def wait(seconds: float) -> str:
    """Wait."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        SEEN.append("cancelled")
        raise
    return "waited"


@shop.tool
def fail() -> str:
    """Fail with a message for the model, which may try again later."""
    raise ToolFailed("there is no milk", retry="later")


@shop.tool
def crash() -> str:
    """Fail with an exception whose message stays secret."""
    raise ValueError("secret")


@shop.tool
def picture() -> bytes:
    """Return an image."""
    return PICTURE


@shop.tool
def album() -> Content:
    """Return a string, an image and audio."""
    return Content("The plot:", Image(PICTURE, "image/png"), Audio(SOUND, "audio/ogg"))


@shop.tool(policy=ToolPolicy(capabilities=("shop:pay:{amount}",)))
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@shop.tool
def open_safe() -> None:
    """Open the safe, which the policy denies."""


class Log:
    """An audit log in memory."""

    intents = False

    def __init__(self) -> None:
        self.records: list[Any] = []

    def write(self, record: Any) -> None:
        self.records.append(record)

    def close(self) -> None:
        pass


SCRIPT: Turns = [
    [("shop__take", {"count": "2", "tags": '["a"]'})],
    [("shop__take", {"count": "two"})],
    [("shop__take", {"count": 2, "tag": ["a"]})],
    [("shop__order", {"lines": '[{"item": "tea", "count": "2"}]', "mode": "slow"})],
    [("shop__order", {"lines": [{"item": 1}], "mode": "odd"})],
    [("shop__echo", {"self": "hi"})],
    [("shop__echo", {"text": "hi"})],
    [("shop__wait", {"seconds": "0"})],
    [("shop__fail", {})],
    [("shop__crash", {})],
    [("shop__picture", {})],
    [("shop__album", {})],
    [("shop__pay", {"amount": "5"})],
    [("shop__pay", {"amount": "6"})],
    [("shop__take", {"count": 3}), ("shop__take", {"count": 3})],
]


def exported(export: Callable[..., list[Any]], run: Callable[[list[Any], Turns], tuple[Any, list[Any]]]) -> Any:
    """Return what an agent offers a model, what the model reads, and what our tools and our audit log receive."""
    log, policy = Log(), ExecutionPolicy(grants=("shop:pay:5",), deny=("shop.open_safe",))
    with Engine(plugins="none", toolsets=shop, policy=policy, audit=log) as engine:
        tools = export(engine)
        offered, read = run(tools, SCRIPT)
        unmatched = problems(lambda: export(engine, tools="shop.sell"))
    records = [[each.tool, each.code, [kind.__name__ for kind in each.types]] for each in log.records]
    by_name = {each["name"]: each for each in offered}
    offered = {"names": [*by_name], "take": by_name[min(by_name, key=lambda name: not name.endswith("take"))]}
    return {"offered": offered, "read": read, "seen": [*SEEN], "audit": records[:4], "unmatched": unmatched}


def cancelled(export: Callable[..., list[Any]], call: Callable[[Any, dict[str, Any]], Any]) -> list[Any]:
    """Return what a tool receives whose call is cancelled."""

    async def run(engine: Engine) -> None:
        SEEN.clear()
        (tool,) = export(engine, tools="shop.wait")
        task = asyncio.ensure_future(call(tool, {"seconds": 60}))
        while not engine._running:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=10)
        SEEN.append(task.cancelled())

    with Engine(plugins="none", toolsets=shop) as engine:
        asyncio.run(run(engine))
    return [*SEEN]


def problems(call: Callable[[], Any]) -> list[str]:
    """Return the problems of a `SpecError`."""
    try:
        call()
    except SpecError as error:
        return [*error.problems]
    return []


def outcome(result: ToolResult) -> Any:
    """Return the type and the value of a result, or the code of its error, who can fix it, and the message."""
    if result.error is None:
        value = result.value
        return [type(value).__name__, value.text if isinstance(value, Content) else value]
    return [result.error.code, result.error.retry, str(result.error)]


def imported(load: Callable[..., Toolset], tools: list[Any], calls: list[tuple[str, dict[str, Any]]]) -> Any:
    """Return the outcome of each call, sync and async, and of the first one without an approval, and without a grant."""
    toolset = load(tools, group="far")
    system = load.__name__.removeprefix("from_")
    grants = (f"{system}:call:far/*",)
    policy = ExecutionPolicy(grants=grants, preapproved=tuple(each.name for each in toolset))

    async def together(engine: Engine) -> list[Any]:
        return [outcome(await engine.aexecute(ToolCall(f"far.{name}", args))) for name, args in calls]

    with Engine(plugins="none", toolsets=toolset, policy=policy) as engine:
        found = [outcome(engine.execute(ToolCall(f"far.{name}", args))) for name, args in calls]
        awaited = asyncio.run(together(engine))
    first = ToolCall(f"far.{calls[0][0]}", calls[0][1])
    with Engine(plugins="none", toolsets=toolset, policy=ExecutionPolicy(grants=grants)) as engine:
        refused = [outcome(engine.execute(first))[0]]
    with Engine(plugins="none", toolsets=load(tools, group="far", trusted=True), policy=ExecutionPolicy()) as engine:
        refused.append(outcome(engine.execute(first))[0])
    return {"results": found, "same": found == awaited, "refused": refused}


def tried(count: int, lines: Any, mode: str = "fast") -> dict[str, Any]:
    """Return the types that a function of a framework received."""
    first = lines[0]
    is_map = isinstance(first, dict)
    return {
        "count": type(count).__name__,
        "line": type(first).__name__,
        "inner": type(first["count"] if is_map else first.count).__name__,
        "mode": mode,
    }


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("typed", {"count": "2", "lines": '[{"item": "tea", "count": "3"}]'}),
    ("typed", {"count": True, "lines": [{"item": 1}], "mode": "odd"}),
    ("typed", {"count": 2, "lines": [{"item": "tea", "count": 3}], "more": 1}),
    ("later", {"text": "a"}),
    ("crash", {}),
]
"""Calls of the tools that every framework defines: repaired, wrong and unknown arguments, a coroutine, an exception."""


# Google ADK


def google_adk() -> Any:
    from google.adk.agents import LlmAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.adk.sessions import InMemorySessionService, Session
    from google.adk.tools import BaseTool, FunctionTool, ToolContext, google_search
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from google.genai import types
    from pydantic import BaseModel

    from neuroscript.interop.google_adk import from_google_adk, to_google_adk

    class Scripted(BaseLlm):
        turns: Turns
        offered: list[Any]
        contents: list[Any]

        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            self.contents[:] = llm_request.contents
            declared = llm_request.config.tools[0].function_declarations
            self.offered[:] = [each.model_dump(exclude_none=True) for each in declared]
            calls = [
                types.FunctionCall(name=name, args=args) for name, args in (self.turns.pop(0) if self.turns else [])
            ]
            parts = [types.Part(function_call=each) for each in calls] or [types.Part(text="done")]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    def run(tools: list[Any], turns: Turns) -> tuple[Any, list[Any]]:
        model = Scripted(model="scripted", turns=[*turns], offered=[], contents=[])

        async def go() -> None:
            runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=tools), app_name="app")
            session = await runner.session_service.create_session(app_name="app", user_id="user")
            message = types.Content(role="user", parts=[types.Part(text="go")])
            async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
                pass

        asyncio.run(go())
        parts = [part.function_response for each in model.contents for part in each.parts if part.function_response]
        media = [[each.inline_data.mime_type for each in part.parts or []] for part in parts]
        return model.offered, [[part.response, *kinds] for part, kinds in zip(parts, media, strict=True)]

    class Line(BaseModel):
        item: str
        count: int

    def typed(count: int, lines: list[Line], mode: Literal["fast", "slow"] = "fast") -> dict[str, Any]:
        """Return types."""
        return tried(count, lines, mode)

    async def later(text: str) -> str:
        """Wait."""
        await asyncio.sleep(0)
        return text * 2

    def crash() -> str:
        """Fail."""
        raise ValueError("secret")

    def report() -> dict[str, str]:
        """Report an error in the way of the framework."""
        return {"error": "no tea\n\x1b[2J"}

    def remember(word: str, tool_context: ToolContext) -> str:
        """Remember a word in the state of the session."""
        tool_context.state["words"] = [*tool_context.state.get("words", []), word]
        return " ".join(tool_context.state["words"])

    def model(item: str) -> Line:
        """Return a model."""
        return Line(item=item, count=1)

    def paint() -> list[Any]:
        """Return an image."""
        return ["The plot:", types.Part.from_bytes(data=PICTURE, mime_type="image/png")]

    def paper() -> Any:
        """Return a document."""
        return types.Part.from_bytes(data=b"%PDF-1.7", mime_type="application/pdf")

    def pay(amount: int) -> str:
        """Pay, after a confirmation."""
        return f"paid {amount}"

    class Guarded(BaseTool):
        """A tool whose confirmation only the framework's agent checks."""

        async def check_require_confirmation(self, args: dict[str, Any], tool_context: Any) -> bool:
            return True

        def _get_declaration(self) -> Any:
            schema = types.Schema(type=types.Type.OBJECT, properties={"n": types.Schema(type=types.Type.INTEGER)})
            return types.FunctionDeclaration(name=self.name, description="Guarded.", parameters=schema)

        async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
            return args

    functions = [FunctionTool(each) for each in (typed, later, crash, report, remember, model, paint, paper)]
    guarded = [FunctionTool(pay, require_confirmation=True), Guarded(name="guarded", description="")]
    tools = [*functions, *guarded]
    session = Session(id="s", app_name="app", user_id="user")
    service = InMemorySessionService()

    def confirmed(rt: Any) -> ToolContext:
        run = InvocationContext(session_service=service, invocation_id="i", session=session)
        return ToolContext(run, function_call_id="c", tool_confirmation=ToolConfirmation(confirmed=True))

    calls = [*CALLS, ("report", {}), ("remember", {"word": "a"}), ("remember", {"word": "b"})]
    calls += [("model", {"item": "tea"}), ("paint", {}), ("paper", {}), ("pay", {"amount": 1}), ("guarded", {"n": "2"})]

    def from_google_adk_with_context(tools: list[Any], **options: Any) -> Toolset:
        return from_google_adk(tools, context=confirmed, **{**options, "policy": ToolPolicy()})

    return {
        "exported": exported(to_google_adk, run),
        "cancelled": cancelled(
            to_google_adk, lambda tool, args: tool.run_async(args=args, tool_context=confirmed(None))
        ),
        "imported": imported(from_google_adk, tools, calls),
        "with_context": imported(from_google_adk_with_context, tools, calls[6:8] + calls[11:])["results"],
        "problems": problems(
            lambda: from_google_adk([google_search, typed, FunctionTool(pay), FunctionTool(pay)], group="far")
        ),
    }


# CrewAI


def crewai() -> Any:
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.tools import BaseTool, tool
    from crewai.tools.tool_failure import ToolFailure
    from pydantic import BaseModel

    from neuroscript.interop.crewai import from_crewai, to_crewai

    class Scripted(BaseLLM):
        turns: Any = None
        offered: Any = None
        messages: Any = None
        native: bool = True

        def call(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
            self.messages, self.offered = messages, tools or self.offered
            turn = self.turns.pop(0) if self.turns else []
            if isinstance(turn, str):
                return turn
            calls = [
                {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
                for at, (name, args) in enumerate(turn)
            ]
            return calls or "done"

        def supports_function_calling(self) -> bool:
            return self.native

    def kickoff(tools: list[Any], turns: list[Any], native: bool = True) -> tuple[Any, Any]:
        model = Scripted(model="scripted", native=native)
        model.turns = [*turns]
        agent = Agent(role="r", goal="g", backstory="b", llm=model, tools=tools)
        task = Task(description="go", expected_output="done", agent=agent)
        return model, Crew(agents=[agent], tasks=[task]).kickoff()

    def run(tools: list[Any], turns: Turns) -> tuple[Any, list[Any]]:
        model, _ = kickoff(tools, turns)
        read = [each["content"] for each in model.messages if each["role"] == "tool"]
        return [each["function"] for each in model.offered], read

    def react() -> Any:
        """Return what a model reads that writes its calls as text, and the failures that the framework records."""
        wrong = 'Thought: a\nAction: shop_take\nAction Input: {"count": "two"}'
        right = 'Thought: b\nAction: shop_take\nAction Input: {"count": "4", "unknown": 1}'
        with Engine(plugins="none", toolsets=shop) as engine:
            model, output = kickoff(
                to_crewai(engine, tools="shop.take"), [wrong, right, "Thought: c\nFinal Answer: done"], native=False
            )
        failures = output.tasks_output[0].tool_failures
        lines = [line for each in model.messages for line in str(each["content"]).splitlines()]
        observed = [each for each in lines if each.startswith("Observation: ") and "the result of" not in each]
        return [observed, [[each.tool_name, each.failure.details, each.failure.retryable] for each in failures]]

    def uncached() -> Any:
        """Return what the tool receives if a model repeats a call."""
        SEEN.clear()
        with Engine(plugins="none", toolsets=shop) as engine:
            kickoff(
                to_crewai(engine, tools="shop.take"), [[("shop_take", {"count": 7})], [("shop_take", {"count": 7})]]
            )
        return [*SEEN]

    class Line(BaseModel):
        item: str
        count: int

    @tool("typed")
    def typed(count: int, lines: list[Line], mode: Literal["fast", "slow"] = "fast") -> dict[str, Any]:
        """Return types."""
        return tried(count, lines, mode)

    @tool("later")
    async def later(text: str) -> str:
        """Wait."""
        await asyncio.sleep(0)
        return text * 2

    @tool("crash")
    def crash() -> str:
        """Fail."""
        raise ValueError("secret")

    class Report(BaseTool):
        name: str = "report"
        description: str = "Report a failure in the way of the framework."

        def _run(self, later: bool) -> Any:
            return ToolFailure(message="no tea\n\x1b[2J", code="tea", retryable=later)

    class Both(BaseTool):
        name: str = "both"
        description: str = "A tool whose _run is a coroutine function."

        async def _run(self, text: str) -> str:
            return text

    @tool("model")
    def model(item: str) -> Line:
        """Return a model."""
        return Line(item=item, count=1)

    @tool("once", max_usage_count=1)
    def once() -> str:
        """Run once."""
        return "once"

    calls = [*CALLS, ("report", {"later": True}), ("report", {"later": False}), ("both", {"text": "a"})]
    calls += [("model", {"item": "tea"})]
    tools = [typed, later, crash, Report(), Both(), model]
    policy = ToolPolicy(effects=("pure",))
    with Engine(plugins="none", toolsets=from_crewai(once, group="far", policy=policy)) as engine:
        used = [outcome(engine.execute(ToolCall("far.once", {}))) for _ in range(2)]
    return {
        "exported": exported(to_crewai, run),
        "cancelled": cancelled(to_crewai, lambda tool, args: tool.arun(**args)),
        "imported": imported(from_crewai, tools, calls),
        "used": used,
        "react": react(),
        "uncached": uncached(),
        "problems": problems(lambda: from_crewai([typed, later, later, print], group="far")),
    }


# LlamaIndex


def llama_index_core() -> Any:
    from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
    from llama_index.core.base.llms.types import AudioBlock, ChatMessage, ImageBlock, TextBlock, ToolCallBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM
    from llama_index.core.tools import FunctionTool, ToolOutput
    from llama_index.core.tools.calling import call_tool
    from llama_index.core.tools.types import BaseTool, ToolMetadata
    from llama_index.core.workflow import Context
    from pydantic import BaseModel

    from neuroscript.interop.llama_index import from_llama_index, to_llama_index

    def shown(block: Any) -> str:
        """Return what a model reads in a block, or its type and its first bytes."""
        match block:
            case ImageBlock():
                return f"{block.image_mimetype} {block.resolve_image().read() == PICTURE}"
            case AudioBlock():
                return f"{block.format} {block.resolve_audio().read() == SOUND}"
        return str(block.text)

    def run(tools: list[Any], turns: Turns) -> tuple[Any, list[Any]]:
        left, last = [*turns], list[Any]()

        def answer(messages: Any, **options: Any) -> Any:
            last[:] = messages
            calls = [
                ToolCallBlock(tool_call_id=f"c{len(left)}{at}", tool_name=name, tool_kwargs=args)
                for at, (name, args) in enumerate(left.pop(0) if left else [])
            ]
            return (
                ChatMessage(role="assistant", blocks=calls) if calls else ChatMessage(role="assistant", content="done")
            )

        async def go() -> None:
            model = MockFunctionCallingLLM(response_generator=answer)
            await FunctionAgent(tools=tools, llm=model, streaming=False).run("go", max_iterations=40)

        asyncio.run(go())
        offered = [each.metadata.to_openai_tool()["function"] for each in tools]
        return offered, [[shown(each) for each in message.blocks] for message in last if message.role == "tool"]

    class Line(BaseModel):
        item: str
        count: int

    def typed(count: int, lines: list[Line], mode: Literal["fast", "slow"] = "fast") -> dict[str, Any]:
        """Return types."""
        return tried(count, lines, mode)

    async def later(text: str) -> str:
        """Wait."""
        await asyncio.sleep(0)
        return text * 2

    def crash() -> str:
        """Fail."""
        raise ValueError("secret")

    class Report(BaseTool):
        """A tool that is only sync, and reports an error in the way of the framework."""

        metadata = ToolMetadata("Report.", "report")

        def __call__(self, input: Any) -> ToolOutput:
            return ToolOutput("report", content="no tea\n\x1b[2J", raw_input={}, raw_output=input, is_error=True)

    def model(item: str) -> Line:
        """Return a model."""
        return Line(item=item, count=1)

    def paint() -> list[Any]:
        """Return an image."""
        return [TextBlock(text="The plot:"), ImageBlock(image=PICTURE), AudioBlock(audio=SOUND, format="ogg")]

    class Unreadable(ToolMetadata):
        """A schema that cannot be made."""

        def get_parameters_dict(self) -> dict[str, Any]:
            raise RuntimeError("secret")

    class Broken(Report):
        """A tool with that schema."""

        metadata = Unreadable("Broken.", "broken")

    def stateful(ctx: Context, n: int) -> int:
        """Use the context."""
        return n

    def react(tools: list[Any]) -> Any:
        """Return what an agent that writes its calls as text reads for one."""
        lines = ['Thought: a\nAction: shop__take\nAction Input: {"count": "4"}', "Thought: b\nAnswer: done"]
        last = list[Any]()

        def answer(messages: Any, **options: Any) -> Any:
            last[:] = messages
            return ChatMessage(role="assistant", content=lines.pop(0))

        async def go() -> None:
            agent = ReActAgent(tools=tools, llm=MockFunctionCallingLLM(response_generator=answer), streaming=False)
            await agent.run("go")

        asyncio.run(go())
        return last[-1].content

    functions = [FunctionTool.from_defaults(each) for each in (typed, later, crash, model, paint)]
    tools = [*functions, Report()]
    calls = [*CALLS, ("report", {"input": "a"}), ("model", {"item": "tea"}), ("paint", {})]
    found = {
        "exported": exported(to_llama_index, run),
        "cancelled": cancelled(to_llama_index, lambda tool, args: tool.acall(**args)),
        "imported": imported(from_llama_index, tools, calls),
        "problems": problems(
            lambda: from_llama_index(
                [FunctionTool.from_defaults(stateful), typed, Broken(), *functions[:2], *functions[:1]], group="far"
            )
        ),
    }
    with Engine(plugins="none", toolsets=shop, policy=ExecutionPolicy()) as engine:
        by_name = {each.metadata.name: each for each in to_llama_index(engine)}
        found["react"] = react([by_name["shop__take"]])
        echoed = [call_tool(by_name["shop__echo"], {name: "hi"}) for name in ("self", "text")]
        found["direct"] = [[each.content, each.is_error, each.raw_output] for each in echoed]
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1].replace("-", "_")]()))
    sys.stdout.flush()
    os._exit(0) if threading.active_count() > 1 else None
