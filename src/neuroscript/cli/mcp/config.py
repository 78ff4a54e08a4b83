"""``neuroscript mcp config``: the JSON configuration with which a client starts the server."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from neuroscript.cli.mcp.options import NAME
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import Output
from neuroscript.interop.mcp import CLIENTS, snippet


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Print the configuration for a client, and on stderr the file that it belongs in."""
    words = ["-m", "neuroscript", "mcp", "serve"]
    words += [] if options.name == NAME else ["--name", options.name]
    data = snippet(options.client, options.name, sys.executable, [*words, *options.words])
    output.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    output.say(f"add this to {CLIENTS[options.client][1]}")
    return OK
