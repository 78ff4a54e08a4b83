"""A store with tools, files, an audit log and plans: what the operator of the tasks and screenshots looks after."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLUGIN: Final = Path(__file__).with_name("store_plugin.py")
TOOLS: Final = ("-p", str(PLUGIN), "--grant", "fs:read:**")
"""Options of commands for the same tools and grants."""
