"""``neuroscript docs``: write a Markdown page for each group of tools."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from neuroscript.cli.env.tools import ToolSelection, collect_tools
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.inputs import GeneratedFile, count_of, existing_text, is_current, write
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.formats.markdown import MARK, page
from neuroscript.io.text import quote_path


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Write the pages, or with ``--check`` only check that they are current, and return the exit code.

    Raises:
        UsageError: No tool matches, a page cannot be written, or it would overwrite a file of another program.
    """
    if options.check and options.output is None:
        raise UsageError("--check needs the directory of the pages; add --output DIR")
    if options.output == "":
        raise UsageError("--output: expected the name of a directory, got an empty string")
    directory = Path(options.output or "")
    pages = [*_pages(collect_tools(options, output, make_engine), directory)]
    if options.output is None:
        _print(pages, options, output)
        return OK
    stale = [each.file for each in pages if not is_current(each)]
    obsolete = [] if options.pattern else [*_obsolete(directory, pages)]
    if not options.check:
        _refuse_others(pages)
        write(each for each in pages if each.file in stale)
    _tell(directory, pages, stale, obsolete, options, output)
    return FAILED if options.check and (stale or obsolete) else OK


def _pages(found: ToolSelection, directory: Path) -> Iterator[GeneratedFile]:
    tools = sorted(found.tools, key=lambda tool: (tool.spec.group, tool.spec.name))
    for group, members in groupby(tools, key=lambda tool: tool.spec.group):
        yield GeneratedFile(directory / f"{group}.md", page(group, members, found.aliases))


def _print(pages: Sequence[GeneratedFile], options: Namespace, output: Output) -> None:
    if options.json:
        output.json({"pages": [{"file": each.file.name, "text": each.text} for each in pages]})
    else:
        output.write("\n".join(each.text for each in pages))


def _obsolete(directory: Path, pages: Sequence[GeneratedFile]) -> Iterator[Path]:
    """Yield the pages of an earlier run whose groups no longer exist."""
    files = {each.file for each in pages}
    try:
        found = sorted(directory.glob("*.md"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {quote_path(str(directory))}: {reason_of(error)}") from None
    yield from (file for file in found if file not in files and file.is_file() and _is_ours(file))


def _is_ours(file: Path) -> bool:
    return (existing_text(file) or "").startswith(f"{MARK}\n")


def _refuse_others(pages: Sequence[GeneratedFile]) -> None:
    for each in pages:
        if each.file.is_symlink() or (existing_text(each.file) is not None and not _is_ours(each.file)):
            where = quote_path(str(each.file))
            raise UsageError(f"{where} was not written by neuroscript docs; move it, or choose another directory")


def _tell(
    directory: Path,
    pages: Sequence[GeneratedFile],
    stale: Sequence[Path],
    obsolete: Sequence[Path],
    options: Namespace,
    output: Output,
) -> None:
    if options.json:
        names = {"files": [each.file for each in pages], "stale": stale, "obsolete": obsolete}
        output.json({"directory": str(directory), **{key: [each.name for each in names[key]] for key in names}})
        return
    for file in obsolete:
        output.say(f"{quote_path(str(file))} is obsolete, because its group has no tools; delete it")
    if not options.check:
        output.text(f"{quote_path(str(directory))}: {count_of(len(pages), 'page')}, {len(stale)} written")
        return
    for file in stale:
        output.text(f"{quote_path(str(file))} is not current")
    if not stale and not obsolete:
        output.text(f"{quote_path(str(directory))}: {count_of(len(pages), 'page')}, all current")
