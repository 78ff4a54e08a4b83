"""Pages and parts of pages, rendered by templates in which all text is escaped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from neuroscript import __version__
from neuroscript.console.routing import console_of, visitor_of
from neuroscript.console.visitor import MAX_STREAMS
from neuroscript.io.text import duration, several_lines, utc_time

DIRECTORY: Final = Path(__file__).parent
STATIC: Final = DIRECTORY / "static"


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Return a whole page.

    Args:
        template: A file in ``templates``, which extends ``layout.html``.
        context: The variables of the template.
    """
    return HTMLResponse(render(request, template, **context), status)


def fragment(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Return a part of a page, for a request of JavaScript."""
    return HTMLResponse(render(request, template, **context), status)


def redirect(request: Request, name: str, /, **params: Any) -> Response:
    """Return a response that sends the browser to a route by GET."""
    return RedirectResponse(path_for(request, name, **params), 303)


def event_stream(request: Request, events: AsyncGenerator[str, None]) -> Response:
    """Return a response with server-sent events.

    Raises:
        HTTPException: This browser receives too many streams.
    """
    visitor = visitor_of(request)
    if visitor.streams >= MAX_STREAMS:
        raise HTTPException(429, "This browser receives too many streams of events.", {"retry-after": "5"})
    return StreamingResponse(visitor.counted(events), media_type="text/event-stream")


def not_found(request: Request, text: str) -> Response:
    """Return the page for something that does not exist, or no longer."""
    return message(request, 404, "Not found", text)


def message(request: Request, status: int, title: str, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page with one message."""
    html = render(request, "message.html", message_title=title, text=text)
    return HTMLResponse(html, status, headers=dict(headers or {}))


def render(request: Request, template: str, **context: Any) -> str:
    """Return a template with its variables, and with what every page needs."""
    visitor = visitor_of(request) if request.scope.get("neuroscript.visitor") else None
    shared = {
        "url": lambda name, /, **params: path_for(request, name, **params),
        "static": lambda file: path_for(request, "static", path=file) + f"?v={file_version(file)}",
        "csrf_field": lambda: csrf_field(visitor.csrf if visitor else ""),
        "csrf": visitor.csrf if visitor else "",
        "user": visitor.user if visitor else None,
        "theme": visitor.theme if visitor else "",
        "areas": request.app.state.areas if visitor else (),
        "console": console_of(request),
        "waiting_approvals": request.app.state.waiting_approvals,
        "version": __version__,
        "visitor_id": lambda: visitor.id if visitor else "",
    }
    return environment().get_template(template).render({**shared, **context})


def path_for(request: Request, name: str, /, **params: Any) -> str:
    """Return the path of a route, below the path at which the console is mounted.

    Parameters that are not part of the path become the query; those that are None or ``""`` are left out.
    """
    names = request.app.state.path_names[name]
    inside = {key: str(value) for key, value in params.items() if key in names}
    query = {key: value for key, value in params.items() if key not in names and value not in (None, "")}
    path = request.scope.get("root_path", "").rstrip("/") + str(request.app.url_path_for(name, **inside))
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def csrf_field(token: str) -> Markup:
    """Return the hidden field that each form needs."""
    return Markup('<input type="hidden" name="csrf" value="{}">').format(token)


@cache
def environment() -> Environment:
    """Return the templates; `finalize` also escapes characters that are invisible or change the writing direction."""
    found = Environment(
        loader=FileSystemLoader(DIRECTORY / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    found.globals |= {"moment": moment, "age": age, "duration": duration}
    return found


def moment(seconds: float) -> Markup:
    """Return a time in UTC as HTML.

    >>> print(moment(1_700_000_000))
    <time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13:20Z</time>
    """
    text = utc_time(seconds)
    return Markup('<time datetime="{}">{}</time>').format(text.replace(" ", "T"), text)


def age(seconds: float) -> str:
    """Return how long ago a time was.

    >>> age(time() - 90)
    '1 minute ago'
    """
    passed = max(0, int(time() - seconds))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if passed >= size:
            count = passed // size
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now" if passed < 5 else f"{passed} seconds ago"


def _visible(value: Any) -> Any:
    return several_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@cache
def file_version(file: str) -> str:
    """Return a string that changes with a static file, so that a browser may store the file."""
    return sha256((STATIC / file).read_bytes()).hexdigest()[:12]
