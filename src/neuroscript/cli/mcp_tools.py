"""``neuroscript mcp tools``: the tools of a server, what is different from what was accepted, and ``--accept``."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from neuroscript.cli.exits import FAILED, OK, UsageError
from neuroscript.cli.output import Output, reason_of
from neuroscript.cli.pages import EMPTY, Rows, cell, line
from neuroscript.cli.printing import show
from neuroscript.display import shown_path
from neuroscript.interop.mcp.accepted import Definition, Difference, differences, read, write
from neuroscript.interop.mcp.foreign_text import LONGEST
from neuroscript.interop.mcp.taking import from_mcp
from neuroscript.interop.openapi.documents import one_line
from neuroscript.interop.openapi.naming import word_of

CLAIMS: Final = {"readOnlyHint": "reads only", "destructiveHint": "destroys", "idempotentHint": "idempotent"}
"""What a server may say of a tool, in our words."""


def run(options: Namespace, output: Output, make_engine: Any = None) -> int:
    """Tell of the tools of a server, and return the exit code: 0 where all are as accepted, or are accepted now.

    Args:
        options: ``server``, the program and its arguments, or ``url``; ``group``; ``file``, that of what was accepted,
            or None, and one that is not there yet holds nothing; ``accept``, whether to write it anew; ``timeout`` in
            seconds; ``json``.

    Raises:
        UsageError: The file can not be written, or there is none to write.
        SpecError: The file can not be read, or the options name no server.
        PluginError: The server can not be asked.
    """
    if options.accept and not options.file:
        raise UsageError("--accept needs a file to write")
    old = read(options.file) if options.file and os.path.lexists(options.file) else {}
    now, skipped = _asked(options)
    found = differences(old, now) if options.file else ()
    if options.accept:
        _write(options.file, now)
    ok = options.accept or not found
    if options.json:
        output.json({"ok": ok, "tools": _data(now, found, options.group), "gone": _gone(found), "skipped": [*skipped]})
    else:
        show(_blocks(now, found, skipped, options), output)
    return OK if ok else FAILED


def _asked(options: Namespace) -> tuple[Mapping[str, Definition], Sequence[str]]:
    """Return what a server offers, and why some of it can not be taken."""
    given: dict[str, Any] = {"url": options.url, "group": options.group, "timeout": options.timeout, "skip": True}
    with from_mcp(options.server, **given) as server:
        return server.definitions, server.skipped


def _write(file: str, now: Mapping[str, Definition]) -> None:
    try:
        write(file, now)
    except (OSError, ValueError) as error:
        raise UsageError(f"can not write {shown_path(file)}: {reason_of(error)}") from None


def _gone(found: Sequence[Difference]) -> list[str]:
    return [each.name for each in found if each.kind == "gone"]


def _data(now: Mapping[str, Definition], found: Sequence[Difference], group: str) -> list[dict[str, Any]]:
    by_name = {each.name: each for each in found}
    return [
        {
            "name": name,
            "tool": f"{group}.{word_of(name)}",
            "description": one_line(each.data.get("description"), LONGEST),
            "claims": _claims(each),
            "digest": each.digest,
            "state": by_name[name].kind if name in by_name else "same",
            "changed": [*by_name[name].parts] if name in by_name else [],
        }
        for name, each in now.items()
    ]


def _claims(definition: Definition) -> list[str]:
    """Return what a server says of a tool."""
    said = definition.data.get("annotations", {})
    return [word for key, word in CLAIMS.items() if said.get(key) is True]


def _blocks(
    now: Mapping[str, Definition], found: Sequence[Difference], skipped: Sequence[str], options: Namespace
) -> Iterator[Rows]:
    """Yield what a person reads: the tools, what differs, what can not be taken, and what can be done."""
    rows = [
        (cell(each["tool"], "name"), cell(", ".join(each["claims"])), cell(each["description"]))
        for each in _data(now, found, options.group)
    ]
    if rows:
        yield Rows(tuple(rows))
    if skipped:
        yield EMPTY
        yield from (line(f"can not be taken: {each}", "bad") for each in skipped)
    if found:
        yield EMPTY
        yield from (line(str(each), "bad" if each.kind == "changed" else "mended") for each in found)
    yield EMPTY
    yield line(_summary(len(now), len(found), options))
    if found and not options.accept:
        yield line("read what is new, and take it with --accept")


def _summary(count: int, changed: int, options: Namespace) -> str:
    tools = f"{count} tool{'s' * (count != 1)}"
    if not options.file:
        return tools
    file = shown_path(options.file)
    if options.accept:
        return f"{tools} written to {file}"
    if not changed:
        return f"{tools}, all as in {file}"
    return f"{tools}; {changed} not as in {file}"
