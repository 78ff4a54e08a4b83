"""Pages of the chat."""

from __future__ import annotations

from typing import Final, cast
from weakref import WeakKeyDictionary

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.activities import TooManyActivities
from neuroscript.console.chat.exchanges import Chat, Exchange, Part
from neuroscript.console.chat.turns import begin_turn
from neuroscript.console.effects import runnable_session
from neuroscript.console.rendering import not_found, page, redirect
from neuroscript.console.routing import console_of, get, post, visitor_of
from neuroscript.console.visitor import Visitor
from neuroscript.llm.offered_tools import offered_infos

MAX_PROMPT_CHARS: Final = 100_000
"""Maximum number of characters of a prompt."""

NO_MODEL: Final = "This console has no model; the chat needs one."


def chat_of(request: Request) -> Chat:
    """Return the conversation of a browser; it ends with the browser's sign-in."""
    chats = cast("WeakKeyDictionary[Visitor, Chat]", request.app.state.chats)
    return chats.setdefault(visitor_of(request), Chat())


async def index(request: Request) -> Response:
    """Show the conversation."""
    return _page(request)


def _page(request: Request, status: int = 200, problem: str = "", prompt: str = "") -> Response:
    console = console_of(request)
    if console.settings.model is None:
        return not_found(request, NO_MODEL)
    chat = chat_of(request)
    session = runnable_session(visitor_of(request), console)
    return page(
        request,
        "chat/index.html",
        status,
        active="chat",
        chat=chat,
        running=chat.running,
        problem=problem,
        prompt=prompt,
        tools=len(offered_infos(session)),
        model=str(getattr(console.settings.model, "name", "")),
        parts_of=_parts,
    )


def _parts(exchange: Exchange) -> list[tuple[Part, str]]:
    return [(part, exchange.part_element(index)) for index, part in enumerate(exchange.parts)]


async def send(request: Request, form: FormData) -> Response:
    """Send a prompt to the model, and show the conversation."""
    if console_of(request).settings.model is None:
        return not_found(request, NO_MODEL)
    chat, prompt = chat_of(request), str(form.get("prompt", "")).replace("\r\n", "\n").strip()
    if chat.running is not None:
        return _page(request, 409, "The model still answers. Wait, or stop the turn.", prompt)
    if not prompt:
        return _page(request, 422, "Write something first.")
    if len(prompt) > MAX_PROMPT_CHARS:
        return _page(request, 422, f"The text is too long; the maximum is {MAX_PROMPT_CHARS:,} characters.", prompt)
    try:
        begin_turn(request, chat, prompt)
    except TooManyActivities as error:
        return _page(request, 429, str(error), prompt)
    response = redirect(request, "chat.index")
    response.headers["location"] += "#chat-controls"  # the end of the conversation
    return response


async def clear(request: Request, form: FormData) -> Response:
    """Begin a new conversation."""
    chat = chat_of(request)
    running = chat.running
    if running is not None and running.activity is not None:
        running.activity.cancel()
        await running.activity.wait()
    chat.clear()
    return redirect(request, "chat.index")


async def activity(request: Request) -> Response:
    """Show the conversation of a turn that was stopped."""
    return redirect(request, "chat.index")


ROUTES: Final = (
    get("/chat", index, "chat.index"),
    post("/chat", send, "chat.send"),
    post("/chat/new", clear, "chat.clear"),
    get("/chat/turns/{id}", activity, "chat.activity"),
)
