"""The official MCP Inspector from npm: some 110 MB, which npm installs within some 8 seconds of one core."""

from __future__ import annotations

from tests import npm_packages

VERSION = "2.12.0"
UNAVAILABLE = "the Inspector could not be installed with npm"
"""The reason for skipping its tests if the npm registry cannot be reached."""


def installed() -> list[str]:
    """Return the command, and install it if necessary.

    Raises:
        OSError: `UNAVAILABLE`.
    """
    try:
        return npm_packages.installed("@modelcontextprotocol/inspector", VERSION, "clients/cli/build/index.js")
    except OSError:
        raise OSError(UNAVAILABLE) from None
