"""What each HTTP service of an engine needs: the listener, the guard of requests, and the session of one request."""

from typing import Final

CLIENT_GONE: Final = "neuroscript.gone"
"""The key for the disconnect event, an `asyncio.Event`, in the scope of a request."""

CONNECTION: Final = "neuroscript.connection"
"""The key for the `listener.Connection` in the state of a request, if `listener.server` serves it."""

PRINCIPAL: Final = "neuroscript.principal"
"""The key for the `principals.Principal` in the scope of a request, if the service authenticates its clients."""
