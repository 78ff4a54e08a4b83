"""OpenAPI: tools from the operations of a description, and a service that describes its tools.

The http toolset makes the requests, under its own grants. A description is untrusted input: nothing in it is executed
or fetched. Supports the OpenAPI Specification 3.1.1, 3.0.4 and 2.0 (Swagger), RFC 6570 and RFC
7578.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.interop.openapi.export import to_openapi
    from neuroscript.interop.openapi.load import LoadResult, from_openapi
    from neuroscript.interop.openapi.serve import app

__all__ = ["LoadResult", "app", "from_openapi", "to_openapi"]

__getattr__ = lazy_getattr(__name__, {"export": "to_openapi", "load": "LoadResult from_openapi", "serve": "app"})
