"""The web console: tools, approvals, the audit log, plans and the policy of one engine, as pages in a browser.

`app` returns an ASGI application; the command is ``neuroscript web``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr, missing_extra

try:  # here, so that no other module of the console has to
    for _library in ("jinja2", "python_multipart", "starlette", "uvicorn"):
        import_module(_library)
except ImportError as error:
    raise missing_extra("the web console needs Starlette, uvicorn and Jinja2", "console", error) from None

if TYPE_CHECKING:
    from neuroscript.console.application import app
    from neuroscript.console.inbox import Inbox
    from neuroscript.console.users import User

__all__ = ["Inbox", "User", "app"]

__getattr__ = lazy_getattr(__name__, {"application": "app", "inbox": "Inbox", "users": "User"})
