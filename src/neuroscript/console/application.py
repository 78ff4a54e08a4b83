"""The ASGI application of the console: its pages, behind the guard of requests and the sign-in of browsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from neuroscript.coercion.parameters import FLAG, instance, optional, require
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.console import access
from neuroscript.console.activities import Activity
from neuroscript.console.approvals.requests import waiting_count
from neuroscript.console.areas import AREAS
from neuroscript.console.console import Console, Settings
from neuroscript.console.inbox import Inbox
from neuroscript.console.rendering import STATIC, event_stream, message, not_found, redirect
from neuroscript.console.routing import VISITOR, get, post, visitor_of
from neuroscript.console.users import User
from neuroscript.engine.engine import Engine
from neuroscript.interop.http_server.guard import RequestGuard
from neuroscript.runtime.interfaces import AskedModel


def app(
    engine: Engine,
    *,
    run_effects: bool = False,
    users: Iterable[User] = (),
    authenticate: Callable[[HTTPConnection], User | None] | None = None,
    is_local: bool = True,
    audit: Iterable[str | os.PathLike[str]] = (),
    audit_key: bytes | None = None,
    approvals: str | os.PathLike[str] | None = None,
    inbox: Inbox | None = None,
    plans: str | os.PathLike[str] | None = None,
    runs: str | None = None,
    policy_file: str | os.PathLike[str] | None = None,
    model: AskedModel | None = None,
    checks: Callable[[], Mapping[str, Sequence[Any]]] | None = None,
    servers: Iterable[ServerTable] = (),
    lock: str | os.PathLike[str] | None = None,
) -> ConsoleApp:
    """Return an ASGI application with the console of an engine.

    Mount it in an application of your own, or serve it with any ASGI server. A browser signs in with a link from
    `ConsoleApp.link`, or with the token of a user.

    Args:
        run_effects: Whether tools with effects can be run; otherwise only those that declare to have none.
        users: Who may sign in with a token.
        authenticate: Returns the user who sent a request, or None, if your application authenticates users itself. It
            is called for each request, and must not block.
        is_local: Whether only this machine may access the console; requests must then name a local host.
        audit: The files of audit logs to show.
        audit_key: The key of their hash chains.
        approvals: A directory with suspended calls.
        inbox: The `Inbox` that is the approver of the engine's policy.
        plans: A directory with plan files.
        runs: The URL of a database with durable runs.
        policy_file: The policy file that the engine's policy comes from.
        model: The model for the chat.
        checks: Returns the results of checks of the installation.
        servers: The MCP servers of the engine.
        lock: The lock file of the plugins.

    Raises:
        SpecError: A parameter has the wrong type.
        ValueError: Other machines can reach it, and no user can sign in.
    """
    users = tuple(users)
    require("app", engine=(engine, instance(Engine)), run_effects=(run_effects, FLAG), is_local=(is_local, FLAG))
    require("app", inbox=(inbox, optional(instance(Inbox))))
    if not (is_local or authenticate is not None or any(user.token for user in users)):
        raise ValueError("a console that other machines can reach needs users with tokens")
    settings = Settings(
        run_effects=run_effects,
        is_local=is_local,
        users=users,
        authenticate=authenticate,
        audit=tuple(map(Path, audit)),
        audit_key=audit_key,
        approvals=_path(approvals),
        inbox=inbox,
        plans=_path(plans),
        runs=runs,
        policy_file=_path(policy_file),
        model=model,
        checks=checks,
        servers=tuple(servers),
        lock=_path(lock),
    )
    return ConsoleApp(Console(engine, settings))


def _path(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)


class ConsoleApp:
    """The ASGI application of one console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        pages = _pages(console)
        guard = RequestGuard(pages, is_local=console.settings.is_local, accepts_own_pages=True)
        self._application = access.BrowserAccess(console, guard)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        await self._application(scope, receive, send)

    def link(self, base: str = "") -> str:
        """Return a link that signs one browser in, once.

        Args:
            base: The address of the console, such as ``http://127.0.0.1:8000``.
        """
        return f"{base.rstrip('/')}/enter?token={self.console.create_link_token()}"

    def close(self) -> None:
        """Sign all browsers out, and cancel what they run; the engine stays open."""
        self.console.visitors.close()


def _pages(console: Console) -> Starlette:
    area_routes = [route for area in AREAS for route in area.routes]
    routes = [get("/", home, "home", role=None), *access.ROUTES, *ROUTES, *area_routes]
    routes.append(Mount("/static", StaticFiles(directory=STATIC), name="static"))
    pages = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _internal_error})
    pages.state.console = console
    pages.state.chats = WeakKeyDictionary()
    pages.state.waiting_approvals = lambda: waiting_count(console)
    pages.state.areas = tuple(each for each in AREAS if each.is_shown(console))
    names = {route.name: frozenset(route.param_convertors) for route in routes}
    pages.state.path_names = names
    return pages


async def home(request: Request) -> Response:
    """Show the first page, or how to sign in."""
    if request.scope.get(VISITOR) is None:
        return redirect(request, "access.sign_in")
    areas = request.app.state.areas
    return redirect(request, f"{areas[0].name}.index" if areas else "access.who")


async def events(request: Request) -> Response:
    """Stream the events of an activity; the browser states which ones it has received."""
    activity = visitor_of(request).activities.get(request.path_params["id"])
    if activity is None:
        return not_found(request, "This activity has ended, and is no longer stored.")
    seen = request.headers.get("last-event-id") or request.query_params.get("after", "0")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0
    return event_stream(request, activity.stream(after))


async def cancel(request: Request, form: FormData) -> Response:
    """Cancel an activity, and show the page that it belongs to."""
    activity: Activity | None = visitor_of(request).activities.get(request.path_params["id"])
    if activity is None:
        return not_found(request, "This activity has ended, and is no longer stored.")
    activity.cancel()
    await activity.wait()
    return redirect(request, f"{activity.kind}.activity", id=activity.id)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 401:
        return redirect(request, "access.sign_in")
    title = {403: "Not permitted", 404: "Not found", 405: "Not permitted", 413: "Too large"}.get(
        error.status_code, "This did not work"
    )
    text = "This page does not exist." if error.status_code == 404 and error.detail == "Not Found" else error.detail
    return message(request, error.status_code, title, text, error.headers)


async def _internal_error(request: Request, error: Exception) -> Response:
    return message(request, 500, "Internal error", "The console could not answer this request. Its log says more.")


ROUTES: Final = (
    get("/activities/{id}/events", events, "activity.events"),
    post("/activities/{id}/cancel", cancel, "activity.cancel"),
)
