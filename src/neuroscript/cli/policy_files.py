"""Which policy file a command means, and whether servers may stand in it; little is loaded to tell.

Source: issue "Authority", policy as a file; issue "MCP", ``[mcp.NAME]`` in the configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.choosing import NO_AUTOLOAD
from neuroscript.directories import config_file

LONGEST: Final = 1024 * 1024
"""How many bytes of a file are looked at; a longer one is no policy file."""


def file_of(settings: Mapping[str, Any]) -> str | None:
    """Return the file that is named, else the user's own where there is one; one that can not be seen counts too."""
    named: str | None = settings["policy"]
    own = config_file() if named is None else None
    if own is None:
        return named
    try:
        os.lstat(own)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # so it may well say something
        return own
    return own


def may_name_servers(settings: Mapping[str, Any], is_own: bool) -> bool:
    """Tell whether the file in use may name servers, by a look that costs next to nothing."""
    file = file_in_use(settings, is_own)
    if file is None:
        return False
    if not Path(file).is_file():  # which whoever reads it tells of
        return True
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(LONGEST)
    except OSError:
        return True
    return b"mcp" in text or b"\\" in text  # as a key may be written with escapes


def file_in_use(settings: Mapping[str, Any], is_own: bool) -> str | None:
    """Return the file whose servers count, or None.

    Args:
        is_own: Whether the command is ours; that of a host takes no file that is not named.
    """
    if "policy" not in settings:
        return None
    is_wanted = is_own and settings.get("locked") is None and not os.environ.get(NO_AUTOLOAD)
    return file_of(settings) if is_wanted or settings["policy"] is not None else None
