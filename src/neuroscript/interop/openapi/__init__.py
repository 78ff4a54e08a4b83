"""The operations of an OpenAPI description as tools, whose requests the http toolset makes, under its grants.

A description is text from outside: nothing in it is run or fetched.

Source: OpenAPI Specification 3.1.1 and 3.0.4; RFC 6570.
"""

from __future__ import annotations

from neuroscript.interop.openapi.load import Taken, from_openapi

__all__ = ["Taken", "from_openapi"]
