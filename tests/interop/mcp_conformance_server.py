"""The server that the conformance suite of MCP tests: an engine with the tools, resources and prompts that it expects.

The suite calls them by fixed names, which begin with ``test_``, and compares what they return.
"""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from tests.interop.mcp_place import bound, until

from neuroscript import (
    Audio,
    Content,
    EmbeddedResource,
    Engine,
    ExecutionPolicy,
    Image,
    Runtime,
    ToolFailed,
    ToolPolicy,
    Toolset,
    spec_from_schema,
)
from neuroscript.interop.http_server.listener import server as http_server
from neuroscript.interop.mcp import can_request, continue_as_task, request_input, serve
from neuroscript.interop.mcp.server.http import app

PIXEL: Final = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
"""A picture with one pixel."""

SILENCE: Final = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
"""A sound without samples."""

ASKS: Final = ToolPolicy(effects=("reads", "prompts"))
"""The policy of a tool that asks the user; it may run again with the answer."""

DELETES: Final = ToolPolicy(effects=("deletes", "prompts"))
"""The policy of a tool that asks the user and may not run again, so that it waits for the answer as a task."""

SAMPLES: Final = ToolPolicy(effects=("reads", "prompts", "model", "idempotent"), capabilities=("model:use",))
"""The policy of a tool that asks the client's model."""

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""A schema with keywords of JSON Schema 2020-12 that must arrive unchanged."""

HEADER_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
"""A schema with an argument that clients also send in a header."""

DEFAULTS: Final = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
"""The fields of a form with defaults."""

OPTIONS: Final = ["option1", "option2", "option3"]
CHOICES: Final = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{index}", "title": f"Option {index}"} for index in (1, 2, 3)],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": f"value{index}", "title": f"Choice {index}"} for index in (1, 2, 3)]},
    },
}
"""The fields of a form with each kind of choice."""


def form(message: str, fields: dict[str, Any], required: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the request for a form; all fields are required unless *required* says otherwise."""
    schema = {"type": "object", "properties": fields, "required": list(fields if required is None else required)}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sampling(text: str, max_tokens: int = 100) -> dict[str, Any]:
    """Return the request for a reply of the client's model."""
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": max_tokens}}


NAME: Final = form("What is your name?", {"name": {"type": "string"}})
CONFIRM: Final = form("Please confirm", {"ok": {"type": "boolean"}})
ROOTS: Final = {"method": "roots/list", "params": {}}


def engine() -> Engine:
    """Return an engine with everything that the suite expects."""
    made = Engine(plugins="none", policy=ExecutionPolicy(grants=("model:use:*",)))
    tools = Toolset("suite")
    for add in (_add_results, _add_questions, _add_rounds, _add_tasks, _add_resources, _add_prompts):
        add(tools)
    _add_changes(tools, made)
    made.register(tools)
    return made


@contextmanager
def serving() -> Iterator[str]:
    """Serve the engine over HTTP, and provide the address."""
    with engine() as served, bound() as (listening, port):
        server = http_server(app(serve(served, name="conformance", names="bare")))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            until(lambda: server.started)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            thread.join(10)


def _add_results(tools: Toolset) -> None:
    @tools.tool
    def test_simple_text(rt: Runtime) -> str:
        """Return a string."""
        return "This is a simple text response for testing."

    @tools.tool
    def test_image_content(rt: Runtime) -> Content:
        """Return a picture."""
        return Content(Image(PIXEL, "image/png"))

    @tools.tool
    def test_audio_content(rt: Runtime) -> Content:
        """Return a sound."""
        return Content(Audio(SILENCE, "audio/wav"))

    @tools.tool
    def test_embedded_resource(rt: Runtime) -> Content:
        """Return a resource with its content."""
        text = "This is an embedded resource content."
        return Content(EmbeddedResource("test://embedded-resource", text, media_type="text/plain"))

    @tools.tool
    def test_multiple_content_types(rt: Runtime) -> Content:
        """Return a string, a picture and a resource."""
        data = json.dumps({"test": "data", "value": 123})
        resource = EmbeddedResource("test://mixed-content-resource", data, media_type="application/json")
        return Content("Multiple content types test:", Image(PIXEL, "image/png"), resource)

    @tools.tool
    def test_tool_with_logging(rt: Runtime) -> str:
        """Log three messages."""
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            rt.logger.info(text)
        return "logged"

    @tools.tool
    def test_logging_tool(rt: Runtime) -> str:
        """Log a message."""
        rt.logger.info("not requested")
        return "logged"

    @tools.tool
    def test_error_handling(rt: Runtime) -> str:
        """Fail."""
        raise ToolFailed("This tool intentionally returns an error for testing")

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def test_tool_with_progress(rt: Runtime) -> str:
        """Report progress."""
        for done in (0, 50, 100):
            rt.progress(done, 100, f"Completed step {done} of 100")
        return "done"

    for name, schema in (("json_schema_2020_12_tool", SCHEMA), ("test_header_tool", HEADER_SCHEMA)):
        spec = spec_from_schema(name, schema, group="suite", description="Take what the schema permits.")
        tools.add(spec, lambda rt, *values: "taken")


def _add_questions(tools: Toolset) -> None:
    """Add the tools whose questions a client of the handshake versions answers during the call."""

    @tools.tool(policy=SAMPLES)
    def test_sampling(rt: Runtime, prompt: str) -> str:
        """Ask the client's model."""
        answer = request_input(rt, {"reply": sampling(prompt)})["reply"]
        return f"LLM response: {answer['content']['text']}"

    @tools.tool(policy=ASKS)
    def test_elicitation(rt: Runtime, message: str) -> str:
        """Ask the user for two strings."""
        fields = {name: {"type": "string"} for name in ("username", "email")}
        return f"User response: {request_input(rt, {'user': form(message, fields)})['user']}"

    @tools.tool(policy=ASKS)
    def test_elicitation_sep1034_defaults(rt: Runtime) -> str:
        """Ask with a form that has defaults."""
        return f"Elicitation completed: {request_input(rt, {'user': form('Please review', DEFAULTS, ())})['user']}"

    @tools.tool(policy=ASKS)
    def test_elicitation_sep1330_enums(rt: Runtime) -> str:
        """Ask with a form that has choices."""
        return f"Elicitation completed: {request_input(rt, {'user': form('Please choose', CHOICES, ())})['user']}"


def _add_rounds(tools: Toolset) -> None:
    """Add the tools whose questions a client of protocol 2026-07-28 answers by making the call again."""

    @tools.tool(policy=ASKS)
    def test_input_required_result_elicitation(rt: Runtime) -> str:
        """Greet the user."""
        return f"Hello, {request_input(rt, {'user_name': NAME})['user_name']['content']['name']}!"

    @tools.tool(policy=ASKS)
    def test_streaming_elicitation(rt: Runtime) -> str:
        """Greet the user after some progress."""
        rt.progress(1, 2)
        return f"Hello, {request_input(rt, {'user_name': NAME})['user_name']['content']['name']}!"

    @tools.tool(policy=SAMPLES)
    def test_input_required_result_sampling(rt: Runtime) -> str:
        """Ask the client's model."""
        requests = {"capital_question": sampling("What is the capital of France?")}
        answer = request_input(rt, requests)["capital_question"]
        return str(answer["content"]["text"])

    @tools.tool(policy=ASKS)
    def test_input_required_result_list_roots(rt: Runtime) -> str:
        """List the roots of the client."""
        roots = request_input(rt, {"client_roots": ROOTS})["client_roots"]["roots"]
        return f"roots: {', '.join(each['uri'] for each in roots)}"

    @tools.tool(policy=ASKS)
    def test_input_required_result_request_state(rt: Runtime) -> str:
        """Ask for a confirmation."""
        request_input(rt, {"confirm": CONFIRM})
        return "state-ok"

    @tools.tool(policy=ASKS)
    def test_input_required_result_tampered_state(rt: Runtime) -> str:
        """Ask for a confirmation."""
        request_input(rt, {"confirm": CONFIRM})
        return "confirmed"

    @tools.tool(policy=SAMPLES)
    def test_input_required_result_multiple_inputs(rt: Runtime) -> str:
        """Ask three questions at once."""
        requests = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
        return f"answered: {', '.join(request_input(rt, requests))}"

    @tools.tool(policy=ASKS)
    def test_input_required_result_multi_round(rt: Runtime) -> str:
        """Ask two questions, one after the other."""
        first = form("Step 1: What is your name?", {"name": {"type": "string"}})
        second = form("Step 2: What is your favorite color?", {"color": {"type": "string"}})
        name = request_input(rt, {"step1": first})["step1"]["content"]["name"]
        color = request_input(rt, {"step2": second})["step2"]["content"]["color"]
        return f"{name} likes {color}"

    @tools.tool(policy=SAMPLES)
    def test_input_required_result_capabilities(rt: Runtime) -> str:
        """Ask what the client can answer."""
        requests = {"elicit_input": NAME, "sample_input": sampling("Sample request", 50)}
        possible = {key: each for key, each in requests.items() if can_request(each["method"])}
        return f"answered: {', '.join(request_input(rt, possible))}"

    @tools.tool(policy=SAMPLES)
    def test_missing_capability(rt: Runtime) -> str:
        """Ask the client's model, whether or not the client has one."""
        return str(request_input(rt, {"reply": sampling("Hello?")})["reply"]["content"])


def _add_tasks(tools: Toolset) -> None:
    """Add the tools whose calls continue after the response, as tasks."""

    @tools.tool
    def greet(rt: Runtime, name: str) -> str:
        """Greet a person."""
        return f"Hello, {name}!"

    @tools.tool
    async def slow_compute(rt: Runtime, seconds: float, label: str = "") -> str:
        """Wait some seconds."""
        if seconds:
            continue_as_task()
        await asyncio.sleep(seconds)
        return f"{label}: waited"

    @tools.tool
    def failing_job(rt: Runtime) -> str:
        """Fail, for clients that support tasks."""
        continue_as_task(required=True)
        raise ToolFailed("the job failed")

    @tools.tool(policy=ASKS)
    def protocol_error_job(rt: Runtime) -> str:
        """Ask what the client cannot answer."""
        continue_as_task()
        return str(request_input(rt, {"roots": ROOTS}))

    @tools.tool(policy=DELETES)
    def confirm_delete(rt: Runtime, filename: str) -> str:
        """Ask the user before the file would be deleted."""
        continue_as_task()
        return f"{filename}: {request_input(rt, {'confirm': CONFIRM})['confirm']['action']}"

    @tools.tool(policy=DELETES)
    def multi_input(rt: Runtime) -> str:
        """Ask the user two questions at once."""
        continue_as_task()
        return f"answered: {', '.join(request_input(rt, {'name': NAME, 'confirm': CONFIRM}))}"

    @tools.tool(policy=ASKS)
    def test_tool_with_task(rt: Runtime) -> str:
        """Ask for a name, and greet in a task."""
        name = request_input(rt, {"user_name": NAME})["user_name"]["content"]["name"]
        continue_as_task()
        return f"Hello, {name}!"


def _add_changes(tools: Toolset, engine: Engine) -> None:
    numbers = count(1)

    @tools.tool
    def test_trigger_tool_change(rt: Runtime) -> str:
        """Add a tool."""
        more = Toolset(f"more_tools_{next(numbers)}")

        @more.tool
        def added(rt: Runtime) -> str:
            """Exist."""
            return "here"

        engine.register(more)
        return "added"

    @tools.tool
    def test_trigger_prompt_change(rt: Runtime) -> str:
        """Add a prompt."""
        more = Toolset(f"more_prompts_{next(numbers)}")

        @more.prompt()
        def added_prompt(rt: Runtime) -> str:
            """Exist."""
            return "here"

        engine.register(more)
        return "added"


def _add_resources(tools: Toolset) -> None:
    @tools.resource("test://static-text", media_type="text/plain")
    def static_text(rt: Runtime) -> str:
        """Contain text."""
        return "This is the content of the static text resource."

    @tools.resource("test://static-binary", media_type="image/png")
    def static_binary(rt: Runtime) -> bytes:
        """Contain a picture."""
        return PIXEL

    @tools.resource("test://watched-resource", subscribable=True)
    def watched(rt: Runtime) -> str:
        """Contain what may change."""
        return "Watched resource content"

    @tools.resource("test://template/{id}/data", media_type="application/json")
    def data_of(rt: Runtime, id: str) -> str:
        """Contain the data of an id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _add_prompts(tools: Toolset) -> None:
    @tools.prompt()
    def test_simple_prompt(rt: Runtime) -> str:
        """Say something."""
        return "This is a simple prompt for testing."

    @tools.prompt()
    def test_prompt_with_arguments(rt: Runtime, arg1: str, arg2: str) -> str:
        """Repeat two arguments.

        Args:
            arg1: The first.
            arg2: The second.
        """
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @tools.prompt()
    def test_prompt_with_embedded_resource(rt: Runtime, resourceUri: str) -> list[dict[str, Any]]:
        """Refer to a resource."""
        text = "Embedded resource content for testing."
        resource = EmbeddedResource(resourceUri, text, media_type="text/plain")
        return [
            {"role": "user", "content": Content(resource)},
            {"role": "user", "content": "Please process the embedded resource above."},
        ]

    @tools.prompt()
    def test_prompt_with_image(rt: Runtime) -> list[dict[str, Any]]:
        """Show a picture."""
        return [
            {"role": "user", "content": Content(Image(PIXEL, "image/png"))},
            {"role": "user", "content": "Please analyze the image above."},
        ]

    @tools.prompt(policy=ASKS)
    def test_input_required_result_prompt(rt: Runtime) -> str:
        """Ask for the context."""
        question = form("What context should the prompt use?", {"context": {"type": "string"}})
        return f"Use this: {request_input(rt, {'user_context': question})['user_context']['content']['context']}"


if __name__ == "__main__":
    with serving() as url:
        print(url, flush=True)
        input()
