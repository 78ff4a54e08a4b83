"""``neuroscript mcp tools``: show the tools of a server, compare them with the accepted ones, and accept changes."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.cli.env.choices import file_in_use
from neuroscript.cli.env.mcp_servers import secrets_of, tables
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import EMPTY, Output, Rows, cell, line, reason_of
from neuroscript.cli.terminal.printing import show
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.errors import MAX_LISTED_PROBLEMS
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.accepted_definitions import Definition, Difference, differences, read, write
from neuroscript.interop.mcp.client.definition_diff import diff_lines
from neuroscript.interop.mcp.client.servers import inspect_server
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import first, one_line, quote_path, quote_untrusted
from neuroscript.names import to_snake_case

GROUP: Final = "mcp"
"""The default of ``--group``."""

ANNOTATIONS: Final = {"readOnlyHint": "reads only", "destructiveHint": "destroys", "idempotentHint": "idempotent"}
"""The annotations of a tool that are shown, with their display names."""


def run(options: Namespace, output: Output, make_engine: Any = None) -> int:
    """Print the tools of a server, and return 0 if they match the accepted tools or are accepted now, otherwise 1.

    Args:
        options: Either ``name``, a server in the policy file ``policy``, or ``server``, a command line, or ``url``;
            with the latter two ``group`` and ``file``, the file with the accepted tools, which need not exist yet.
            Also ``accept``, ``timeout`` in seconds and ``json``.

    Raises:
        UsageError: The server is unknown, or the file is missing or cannot be written.
        SpecError: The file cannot be read, or the options do not select a server.
        PluginError: The server cannot be reached.
    """
    table = _table(options, make_engine is None, output)
    if options.accept and not table.accepted:
        raise UsageError("--accept needs a file to write; add --file FILE")
    return review(table, output, accept=options.accept, json=options.json)


def review(table: ServerTable, output: Output, *, accept: bool, json: bool = False) -> int:
    """Print the tools of a server and how they differ from the accepted ones, and return the exit code.

    Args:
        accept: Whether to accept the current tools.
        json: Whether to print a JSON object.

    Raises:
        UsageError: The file with the accepted tools cannot be written.
        SpecError: That file cannot be read.
        PluginError: The server cannot be reached.
    """
    old = read(table.accepted) if table.accepted and os.path.lexists(table.accepted) else {}
    with inspect_server(table, secrets_of([table])) as server:
        now, skipped = server.definitions, server.skipped
    found = differences(old, now) if table.accepted else ()
    if accept:
        _write(table.accepted, now)
    ok = accept or not found
    if json:
        output.json(
            {"ok": ok, "tools": _data(now, found, table.group), "removed": _removed(found), "skipped": [*skipped]}
        )
    else:
        show(_blocks(old, now, found, skipped, table, accept), output)
    return OK if ok else FAILED


def _table(options: Namespace, is_own: bool, output: Output) -> ServerTable:
    """Return the settings of the server, from the policy file or from the options."""
    timed = {} if options.timeout is None else {"timeout": options.timeout}
    if options.name is None:
        places = {"command": tuple(options.server), "url": options.url, "accepted": options.file or ""}
        return ServerTable("", options.group or GROUP, **places, **timed)
    if options.server or options.url or options.group or options.file:
        raise UsageError("NAME cannot be combined with --url, --group, --file or a command line")
    found = {each.name: each for each in tables(vars(options), is_own, output)}
    if options.name not in found:
        raise UsageError(_unknown_server_text(options, found, is_own))
    return attrs.evolve(found[options.name], **timed)


def _unknown_server_text(options: Namespace, found: Iterable[str], is_own: bool) -> str:
    if file_in_use(vars(options), is_own) is None:
        return "NAME is a server in a policy file, but there is no policy file; add --policy FILE"
    return f"unknown server {quote_untrusted(options.name)} in the policy file{did_you_mean(options.name, found)}"


def _write(file: str, now: Mapping[str, Definition]) -> None:
    try:
        write(file, now)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {quote_path(file)}: {reason_of(error)}") from None


def _removed(found: Sequence[Difference]) -> list[str]:
    return [each.name for each in found if each.kind == "removed"]


def _data(now: Mapping[str, Definition], found: Sequence[Difference], group: str) -> list[dict[str, Any]]:
    by_name = {each.name: each for each in found}
    return [
        {
            "name": name,
            "tool": f"{group}.{to_snake_case(name)}",
            "description": one_line(each.data.get("description"), MAX_DESCRIPTION_CHARS),
            "annotations": _annotations(each),
            "digest": each.digest,
            "state": by_name[name].kind if name in by_name else "unchanged",
            "changes": [*by_name[name].parts] if name in by_name else [],
        }
        for name, each in now.items()
    ]


def _annotations(definition: Definition) -> list[str]:
    """Return the properties that the annotations of a tool claim."""
    annotations = definition.data.get("annotations", {})
    return [word for key, word in ANNOTATIONS.items() if annotations.get(key) is True]


def _blocks(
    old: Mapping[str, Definition],
    now: Mapping[str, Definition],
    found: Sequence[Difference],
    skipped: Sequence[str],
    table: ServerTable,
    accepts: bool,
) -> Iterator[Rows]:
    """Yield the readable output: the tools, those that cannot be used, the differences and the next step."""
    rows = [
        (cell(each["tool"], "name"), cell(", ".join(each["annotations"])), cell(each["description"]))
        for each in _data(now, found, table.group)
    ]
    if rows:
        yield Rows(tuple(rows))
    if skipped:
        yield EMPTY
        yield from (line(f"cannot be used: {each}", "bad") for each in first(skipped, MAX_LISTED_PROBLEMS))
    if found:
        yield EMPTY
        for each in found:
            yield line(str(each), "bad" if each.kind == "changed" else "mended")
            if each.kind != "removed":
                before = old.get(each.name, Definition(each.name, {}))
                yield from (line(f"  {text}", "dim") for text in diff_lines(before, now[each.name]))
    yield EMPTY
    yield line(_summary(len(now), len(found), table.accepted, accepts))
    if found and not accepts:
        yield line("review the changes, then accept them with --accept")


def _summary(count: int, changed: int, accepted: str, accepts: bool) -> str:
    tools = f"{count} tool{'s' * (count != 1)}"
    if not accepted:
        return tools
    file = quote_path(accepted)
    if accepts:
        return f"{tools} written to {file}"
    if not changed:
        return f"{tools}, unchanged from {file}"
    return f"{tools}; {changed} changed from {file}"
