"""Answers to what a server asks during a call: the user's, the directory of the sandbox, and samples of the model.

A question is answered for the call that caused it, with the Runtime of that call: with its host and policy, until it
ends. In protocols since 2026-07-28, a question is part of the call's result. In older ones, it is a request of its own:
over HTTP, it comes on the stream of the call; over standard streams, it belongs to the only call in progress. A
question that belongs to no single call is declined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.coercion.context import type_name
from neuroscript.errors import PromptError, ToolFailed
from neuroscript.interop.mcp.client.call import Caller
from neuroscript.interop.mcp.client.forms import FormDeclined, attributed, confirm, fill_form
from neuroscript.interop.mcp.client.location import AnswerSettings
from neuroscript.interop.mcp.client.results import response_error
from neuroscript.io.text import one_line
from neuroscript.runtime.interfaces import Runtime, Turn

try:
    import mcp_types as types
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

MAX_QUESTIONS: Final = 20
"""Maximum number of questions of a server in one call."""

MAX_SAMPLES: Final = 1_000
"""Maximum number of samples of the model for one connection."""

MAX_SAMPLE_CHARS: Final = 100_000
"""Maximum size of the messages that a server sends to the model at once, in characters."""

CHARS_PER_TOKEN: Final = 4
"""The characters of a token, by which a sample is cut to the tokens that the server asked for."""

ROOTS_SECONDS: Final = 1.0
"""How long a call waits for a server to ask again for the sandbox, in seconds."""

MAX_URL_CHARS: Final = 2_000
"""Maximum length of a URL that the user is asked to open, in characters."""

REFUSED: Final = types.ErrorData(code=-1, message="the client refused the request")
"""The answer to a question in older protocols that is not answered; it contains no reason, which may be private."""


class Questions:
    """The questions of a server in one call.

    Attributes:
        caller: The call.
        count: How many there were.
        lock: Held while one is answered, so that the user and the model get one at a time.
    """

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.count = 0
        self.lock = asyncio.Lock()


CURRENT: Final[ContextVar[Questions | None]] = ContextVar("neuroscript.interop.mcp.client.answers", default=None)
"""The call whose request is being sent. Over HTTP, the SDK handles what comes on its stream in the same context."""


class Answers:
    """The answers on one connection.

    Args:
        settings: What the server may ask.
    """

    def __init__(self, settings: AnswerSettings) -> None:
        self._settings = settings
        self._calls: set[Questions] = set()
        self._samples = 0
        self._asks_roots = False
        self._root = ""
        self._root_sent = asyncio.Event()

    def callbacks(self) -> dict[str, Any]:
        """Return the arguments of the SDK's client, which declare what the server may ask."""
        found: dict[str, Any] = {"elicitation_callback": self._asked_user}
        if self._settings.roots:
            found["list_roots_callback"] = self._asked_roots
        if self._settings.sampling:
            found["sampling_callback"] = self._asked_model
        return found

    @property
    def has_calls(self) -> bool:
        """Whether a call is in progress."""
        return bool(self._calls)

    @contextmanager
    def during(self, caller: Caller) -> Iterator[Questions]:
        """Answer questions for a call while the context is open."""
        questions = Questions(caller)
        token = CURRENT.set(questions)
        self._calls.add(questions)
        try:
            yield questions
        finally:
            self._calls.discard(questions)
            CURRENT.reset(token)
            caller.end()

    async def announce_root(self, session: Any, caller: Caller) -> None:
        """Let a server of an older protocol ask again for the sandbox, if it does not know the one of a call.

        Servers ask when the connection opens, before any call, and remember the answer.
        """
        if not self._asks_roots or await caller.run(lambda rt: rt.sandbox_dir) == self._root:
            return
        self._root_sent.clear()
        await session.send_notification(types.RootsListChangedNotification())
        with suppress(TimeoutError):
            async with asyncio.timeout(ROOTS_SECONDS):
                await self._root_sent.wait()

    # Questions that are requests

    async def _asked_user(self, context: Any, params: types.ElicitRequestParams) -> Any:
        return await self._asked(types.ElicitRequest(params=params))

    async def _asked_roots(self, context: Any) -> Any:
        self._asks_roots = True
        return await self._asked(types.ListRootsRequest())

    async def _asked_model(self, context: Any, params: types.CreateMessageRequestParams) -> Any:
        return await self._asked(types.CreateMessageRequest(params=params))

    async def _asked(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        questions = self._current_questions()
        if questions is None:
            return types.ElicitResult(action="decline") if isinstance(request, types.ElicitRequest) else REFUSED
        try:
            return await self.answer(request, questions)
        except Exception as error:
            reason = error.text if isinstance(error, ToolFailed) else type_name(error)
            if questions.count <= MAX_QUESTIONS + 1:  # a server that asks without end must not fill the log
                questions.caller.log(f"a question of the MCP server was refused: {reason}")
            return REFUSED

    def _current_questions(self) -> Questions | None:
        found = CURRENT.get()
        if found in self._calls:
            return found
        return next(iter(self._calls)) if len(self._calls) == 1 else None

    # Answers

    async def answer(self, request: types.InputRequest, questions: Questions) -> types.InputResponse:
        """Return the answer to a question of a call.

        Raises:
            ToolFailed: ``mcp.answer``: it is not a question that the server may ask.
            Exception: Raised by the host's prompter, sandbox or model.
        """
        questions.count += 1
        if questions.count > MAX_QUESTIONS:
            raise response_error(f"asks more than {MAX_QUESTIONS} questions in one call")
        async with questions.lock:
            match request:
                case types.ElicitRequest(params=params):
                    return await self._elicited(params, questions.caller)
                case types.ListRootsRequest() if self._settings.roots:
                    return await self._roots(questions.caller)
                case types.CreateMessageRequest(params=params) if self._settings.sampling:
                    self._samples += 1
                    if self._samples > MAX_SAMPLES:
                        raise response_error(f"asks for more than {MAX_SAMPLES} samples of the model")
                    turns = _turns(params)
                    return await questions.caller.run(lambda rt: _sample(rt, turns, params.max_tokens))
        raise response_error(f"asks for {request.method}, which the client does not offer")

    async def _roots(self, caller: Caller) -> types.ListRootsResult:
        self._root = await caller.run(lambda rt: rt.sandbox_dir)
        self._root_sent.set()
        uri: Any = Path(self._root).as_uri()
        return types.ListRootsResult(roots=[types.Root(uri=uri, name="sandbox")])

    async def _elicited(self, params: types.ElicitRequestParams, caller: Caller) -> types.ElicitResult:
        try:
            return await caller.run(lambda rt: self._ask_user(rt, params))
        except FormDeclined as declined:
            caller.log(f"a question of the MCP server was not answered: {declined.reason}")
            return types.ElicitResult(action=declined.action)
        except PromptError as error:
            caller.log(f"a question of the MCP server was not answered: {error.text}")
            return types.ElicitResult(action="cancel" if error.code == "prompt.eof" else "decline")

    def _ask_user(self, rt: Runtime, params: types.ElicitRequestParams) -> types.ElicitResult:
        server = self._settings.server
        if isinstance(params, types.ElicitRequestFormParams):
            values = fill_form(rt.prompt_user, server, params.message, params.requested_schema)
            return types.ElicitResult(action="accept", content=values)
        if not params.url.startswith("https://") or len(params.url) > MAX_URL_CHARS:
            raise FormDeclined("decline", "it asks to open an address that is not https, or too long")
        address = one_line(params.url)
        confirm(rt.prompt_user, f"{attributed(server, params.message)} Open {address} if you trust it. Is it open?")
        return types.ElicitResult(action="accept")


def _turns(params: types.CreateMessageRequestParams) -> list[Turn]:
    """Return what the model is sent; raise a `ToolFailed` for everything but text, and for tools."""
    if params.tools is not None or params.tool_choice is not None:
        raise response_error("asks for a sample of the model with tools, which the client does not offer")
    turns = [Turn("system", params.system_prompt)] if params.system_prompt else []
    for message in params.messages:
        blocks = message.content_as_list
        texts = [each.text for each in blocks if isinstance(each, types.TextContent)]
        if len(texts) != len(blocks):
            raise response_error("asks for a sample of the model from content that is not text")
        turns.append(Turn(message.role, "\n".join(texts)))
    if sum(len(each.content) for each in turns) > MAX_SAMPLE_CHARS:
        raise response_error(f"asks for a sample of the model from more than {MAX_SAMPLE_CHARS} characters")
    return turns


def _sample(rt: Runtime, turns: list[Turn], max_tokens: int) -> types.CreateMessageResult:
    text = rt.llm.ask(turns).content
    most = max(max_tokens, 0) * CHARS_PER_TOKEN
    return types.CreateMessageResult(
        role="assistant",
        content=types.TextContent(type="text", text=text[:most]),
        model="host",
        stop_reason="endTurn" if len(text) <= most else "maxTokens",
    )


def as_data(responses: Mapping[str, types.InputResponse]) -> dict[str, Any]:
    """Return answers in the wire format of MCP."""
    return {key: each.model_dump(mode="json", by_alias=True, exclude_none=True) for key, each in responses.items()}
