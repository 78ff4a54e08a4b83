"""The web console: tools, approvals, the audit log, plans and the policy of one engine, as pages in a browser.

`app` returns an ASGI application; the command is ``neuroscript web``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.console.application import app
    from neuroscript.console.inbox import Inbox
    from neuroscript.console.users import User

__all__ = ["Inbox", "User", "app"]

__getattr__ = lazy_getattr(__name__, {"application": "app", "inbox": "Inbox", "users": "User"})
