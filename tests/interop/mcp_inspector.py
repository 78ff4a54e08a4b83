"""The official MCP Inspector from npm: some 110 MB, which npm installs within some 8 seconds of one core."""

from __future__ import annotations

from tests import npm_packages

VERSION = "2.12.0"
UNAVAILABLE = "the Inspector could not be installed with npm"
"""The reason for skipping its tests if the npm registry cannot be reached."""


COMMAND_LINE = "clients/cli/build/index.js"
LAUNCHER = "clients/launcher/build/index.js"
"""The scripts of its command line, and of the program that serves its web page."""


def installed(script: str = COMMAND_LINE) -> list[str]:
    """Return the command of a script, and install the Inspector if necessary.

    Raises:
        OSError: `UNAVAILABLE`.
    """
    try:
        return npm_packages.installed("@modelcontextprotocol/inspector", VERSION, script)
    except OSError:
        raise OSError(UNAVAILABLE) from None
