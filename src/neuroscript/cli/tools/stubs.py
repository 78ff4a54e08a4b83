"""``neuroscript stubs``: write the types of the tools for type checkers of calling Python code."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from neuroscript.cli.env.tools import collect_tools
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.inputs import GeneratedFile, count_of, is_current, write
from neuroscript.cli.terminal.output import Output
from neuroscript.formats.stubs import stub
from neuroscript.io.text import quote_path

STDOUT = "-"


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Write the stub, or with ``--check`` only check that it is current, and return the exit code.

    Raises:
        UsageError: No tool matches, or the file cannot be written or has an invalid name.
    """
    file = None if options.output == STDOUT else _file(options.output)
    if file is None and options.check:
        raise UsageError("--check needs the stub file; add --output FILE")
    tools = collect_tools(options, output, make_engine).tools
    text = stub(tool.spec for tool in tools)
    if file is None:
        data = {"file": STDOUT, "tools": len(tools), "text": text}
        output.json(data) if options.json else output.write(text)
        return OK
    page = GeneratedFile(file, text)
    was_current = is_current(page)
    if not (options.check or was_current):
        write([page])
    if options.json:
        output.json({"file": str(file), "tools": len(tools), "was_current": was_current})
    elif options.check:
        output.text(f"{quote_path(str(file))} {'is current' if was_current else 'is not current'}")
    else:
        output.text(f"{quote_path(str(file))}: {count_of(len(tools), 'tool')}")
    return FAILED if options.check and not was_current else OK


def _file(name: str) -> Path:
    file = Path(name)
    if file.suffix != ".pyi" or not file.stem.isidentifier():
        raise UsageError(f"{quote_path(name)} is not a valid stub file name; use a name such as tools.pyi")
    return file
