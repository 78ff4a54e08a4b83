"""A ``registry.json``: its entries, the file of each entry, and the differences from the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, parse_json, quote_path, quote_untrusted
from neuroscript.io.text_files import read_text_file
from neuroscript.llm.wire.calls import CallField

MAX_LIST_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a list, in bytes."""

PREFIX: Final = "smith.tools."
"""The prefix of module names in Smith's own lists."""


@attrs.frozen(eq=False)
class ListEntry:
    """One entry of the list.

    Attributes:
        metadata: The METADATA in the entry.
        file: The file of the tool, or None.
        problem: Why there is no file.
    """

    metadata: Mapping[str, Any]
    file: Path | None
    problem: str = ""


def read_entries(path: Path, files: Sequence[Path]) -> tuple[list[ListEntry], list[str]]:
    """Return the entries of a list, and a message for each of the *files* that is not listed.

    Raises:
        SpecError: The list cannot be read or is invalid; with every problem found.
    """
    name = quote_path(str(path))
    text = read_text_file(path, name, MAX_LIST_BYTES)
    try:
        data = parse_json(text)
    except NotJSON as error:
        raise SpecError(name, [error.hint]) from None
    problems = [*_problems(data)]
    if problems:
        raise SpecError(name, problems)
    entries = [_listed(each, files, f"tools[{index}]") for index, each in enumerate(data["tools"])]
    used = {each.file for each in entries}
    return [*_once(entries)], [f"{quote_path(file.name)}: is not in the registry" for file in files if file not in used]


def _problems(data: object) -> Iterator[str]:
    if not isinstance(data, dict):
        yield f"expected an object with tools, got {type_name(data)}"
        return
    if not isinstance(data.get("tools"), list):
        yield str(CallField(data, "tools").problem("a list of METADATA"))
        return
    for index, each in enumerate(data["tools"]):
        if not isinstance(each, dict):
            yield f"tools[{index}]: expected METADATA, got {type_name(each)}"
            continue
        for key, what in (("name", "the name of the tool"), ("module", "the name of a file")):
            is_there = key == "name" or key in each
            if is_there and (not isinstance(each.get(key), str) or not each[key]):
                yield str(CallField(each, key, within=f"tools[{index}]").problem(what))


def _listed(metadata: dict[str, Any], files: Sequence[Path], where: str) -> ListEntry:
    """Return an entry with its file: found by its module, or else by its name, ignoring case if needed."""
    key = "module" if "module" in metadata else "name"
    stem = metadata[key].removeprefix(PREFIX).removesuffix(".py")
    exact = [file for each in (metadata[key], stem) for file in files if file.stem == each][:1]
    alike = exact or [file for file in files if file.stem.casefold() == stem.casefold()]
    if len(alike) == 1:
        return ListEntry(metadata, alike[0])
    reason = "matches several files" if alike else "matches no file in the folder"
    return ListEntry(metadata, None, f"{where}['{key}']: {quote_untrusted(metadata[key])} {reason}")


def _once(entries: Sequence[ListEntry]) -> Iterator[ListEntry]:
    """Yield the entries; entries with the same file lose it, because it is unclear which of them describes it."""
    places: dict[Path | None, list[str]] = {}
    for index, each in enumerate(entries):
        places.setdefault(each.file, []).append(f"tools[{index}]")
    for each in entries:
        several = [] if each.file is None else places[each.file]
        if each.file is None or len(several) == 1:
            yield each
        else:
            yield ListEntry(
                each.metadata, None, f"{' and '.join(several)} refer to the same file, {quote_path(each.file.name)}"
            )


def difference(in_file: Any, listed: Any, subject: str) -> Iterator[str]:
    """Yield each place where the METADATA of a file and of a list differ; ``module`` is ignored."""
    in_file_data, in_list_data = (
        {key: part for key, part in each.items() if key != "module"} for each in (in_file, listed)
    )
    for where, what in _differing(in_file_data, in_list_data, ""):
        yield f"{subject}: {where}: {what}"


def _differing(mine: Any, theirs: Any, where: str) -> Iterator[tuple[str, str]]:
    match mine, theirs:
        case dict(), dict():
            for key in dict.fromkeys((*mine, *theirs)):
                yield from _part(
                    mine, theirs, key, f"{where}['{quote_untrusted(key)}']" if where else quote_untrusted(key)
                )
        case list(), list():
            for index in range(max(len(mine), len(theirs))):
                both = [{index: each[index]} if index < len(each) else {} for each in (mine, theirs)]
                yield from _part(both[0], both[1], index, f"{where}[{index}]")
        case _ if type(mine) is not type(theirs) or mine != theirs:
            yield where, "differs between the file and the registry"


def _part(mine: Mapping[Any, Any], theirs: Mapping[Any, Any], key: Any, where: str) -> Iterator[tuple[str, str]]:
    if key in mine and key in theirs:
        yield from _differing(mine[key], theirs[key], where)
    else:
        yield where, "is only in the file" if key in mine else "is only in the registry"
