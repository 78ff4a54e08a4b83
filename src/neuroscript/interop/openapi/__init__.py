"""Tools from the operations of an OpenAPI description.

The http toolset makes the requests, under its own grants. A description is untrusted input: nothing in it is executed
or fetched. Supports the OpenAPI Specification 3.1.1, 3.0.4 and 2.0 (Swagger), RFC 6570 and RFC
7578.
"""

from __future__ import annotations

from neuroscript.interop.openapi.load import LoadResult, from_openapi

__all__ = ["LoadResult", "from_openapi"]
