"""``neuroscript stubs``: the types of the tools, for the type checker of whoever calls them from Python."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from neuroscript.cli.env.tools import gathered
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.inputs import Written, counted, is_current, write
from neuroscript.cli.terminal.output import Output
from neuroscript.formats.stubs import stub
from neuroscript.io.text import shown_path

STDOUT = "-"


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Write the stub, or look whether the one that is there is current, and return the exit code.

    Raises:
        UsageError: No tool matches, or the file is none that can be written, or imported.
    """
    file = None if options.output == STDOUT else _file(options.output)
    if file is None and options.check:
        raise UsageError("--check needs the file that is to be looked at; name it with --output")
    tools = gathered(options, output, make_engine).tools
    text = stub(tool.spec for tool in tools)
    if file is None:
        data = {"file": STDOUT, "tools": len(tools), "text": text}
        output.json(data) if options.json else output.write(text)
        return OK
    page = Written(file, text)
    was_current = is_current(page)
    if not (options.check or was_current):
        write([page])
    if options.json:
        output.json({"file": str(file), "tools": len(tools), "was_current": was_current})
    elif options.check:
        output.text(f"{shown_path(str(file))} {'is current' if was_current else 'is not current'}")
    else:
        output.text(f"{shown_path(str(file))}: {counted(len(tools), 'tool')}")
    return FAILED if options.check and not was_current else OK


def _file(name: str) -> Path:
    file = Path(name)
    if file.suffix != ".pyi" or not file.stem.isidentifier():
        raise UsageError(f"{shown_path(name)} is no file that can be imported as a stub; name one like tools.pyi")
    return file
