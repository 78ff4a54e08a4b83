"""``neuroscript openapi``: serve tools over HTTP, described by an OpenAPI document."""
