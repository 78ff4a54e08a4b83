"""A served console with a chat, whose model is a scripted server on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import attrs
import pytest
from playwright.sync_api import Page
from tests.browsers import PageOpener
from tests.console.conftest import ServedConsole, serving
from tests.llm.fixtures import no_keys as no_keys
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.server import ModelServer

from neuroscript import ArgSpec, ArgType, Engine, ExecutionPolicy, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript.console import Inbox, User, app
from neuroscript.llm import Model, model


def shop_tools(ran: list[Any]) -> Toolset:
    """Return tools for a model; each notes its values in *ran*."""
    tools = Toolset("shop")
    pure = ToolPolicy(effects=("pure",))

    @tools.tool(policy=pure)
    def price(item: str, count: int = 1) -> float:
        """Return the price of an item."""
        ran.append((item, count))
        return len(item) * count / 2

    @tools.tool(policy=ToolPolicy(effects=("writes",), requires_approval=True))
    def order(item: str) -> str:
        """Order an item."""
        ran.append(item)
        return f"ordered {item}"

    @tools.tool(policy=ToolPolicy(effects=("reads",), requires_approval=True))
    def look(item: str) -> str:
        """Look at an item."""
        ran.append(item)
        return f"<b>saw</b> {item}"

    @tools.tool(policy=pure)
    def remember(rt: Runtime, name: str) -> str:
        """Remember a name for this session."""
        rt.set_var("name", name)
        return "remembered"

    def login(rt: Runtime, user: str, password: str) -> str:
        ran.append((user, password))
        return f"{user} may enter with {password}"

    args = (ArgSpec("user", ArgType.STRING), ArgSpec("password", ArgType.STRING, secret=True))
    tools.add(ToolSpec("login", "shop", args, return_type=ArgType.STRING, description="Sign in."), login, policy=pure)
    return tools


@attrs.frozen
class ChatPlace:
    """A console with a chat.

    Attributes:
        ran: The values of the calls that have run.
    """

    served: ServedConsole
    inbox: Inbox
    model: Model
    ran: list[Any]

    def page(self, open_page: PageOpener, user: User | None = None, **options: Any) -> Page:
        """Return the page of the chat in a browser of its own."""
        page = open_page(self.served.link(user), open_page.new_context(**options))
        page.goto(f"{self.served.url}/chat")
        return page


MakeChat = Callable[..., ChatPlace]


@pytest.fixture
def make_chat(server: ModelServer) -> Iterator[MakeChat]:
    """Return what serves a console with a chat, with some parameters of `app`."""
    with ExitStack() as stack:

        def made(**settings: Any) -> ChatPlace:
            ran, inbox = list[Any](), Inbox()
            engine = Engine(plugins=(), toolsets=[shop_tools(ran)], policy=ExecutionPolicy(approver=inbox))
            asked = stack.enter_context(model("tiny", base_url=server.base_url(), api="openai-chat"))
            served = stack.enter_context(serving(app(engine, inbox=inbox, model=asked, **settings)))
            return ChatPlace(served, inbox, asked, ran)

        yield made
