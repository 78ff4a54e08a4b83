"""``neuroscript plugins lock`` and ``diff``: pin the installed plugins in a lock file, and compare with it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import attrs

from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, cell, line, reason_of
from neuroscript.cli.terminal.printing import show
from neuroscript.config.lock_diff import LockDifference, Selection, lock_differences, pins_of
from neuroscript.config.lock_file import Lock
from neuroscript.config.pinned import Difference, Pinned, count_changes, counts_of
from neuroscript.discovery.installed import Distribution
from neuroscript.errors import PluginError, SpecError
from neuroscript.io.text import quote_path

INDENT: Final = 2


def lock(selection: Selection, names: Collection[str], options: Namespace, output: Output) -> int:
    """Write the installed distributions to the lock file, and return the exit code.

    A distribution that an existing file marks as isolated is imported only if it is still isolated.

    Args:
        names: The keys of the distributions to update; the other entries of the file remain. Empty means all.

    Raises:
        UsageError: The file cannot be written.
        SpecError: There are *names*, and the existing file is not a lock file.
    """
    pins, errors = pins_of(selection, _existing(options.output))
    chosen = [each for each in pins if not names or each.key in names]
    broken = [error for key, error in errors.items() if not names or key in names]
    kept = _remaining_entries(options.output, names)
    if not broken:
        _write(Lock((*kept, *chosen)), options.output)
    if options.json:
        output.json({"ok": not broken, "file": options.output, **_locked_data(chosen, broken)})
    elif broken:
        for error in broken:
            output.say(str(error))
        output.say(f"{quote_path(options.output)} was not written")
    else:
        output.text(_summary(chosen, options.output))
    return FAILED if broken else OK


def _existing(file: str) -> Lock | None:
    """Return the lock file that is replaced, or None if there is no valid one."""
    try:
        return Lock.read(file)
    except SpecError:
        return None


def _remaining_entries(file: str, names: Collection[str]) -> list[Pinned]:
    """Return the entries of the file that remain."""
    if not names or not os.path.lexists(file):
        return []
    return [each for each in Lock.read(file).distributions if each.key not in names]


def _write(lock: Lock, file: str) -> None:
    try:
        lock.write(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {quote_path(file)}: {reason_of(error)}") from None


def _locked_data(chosen: Sequence[Pinned], broken: Sequence[PluginError]) -> dict[str, Any]:
    return {
        "locked": [_locked_one(each) for each in chosen],
        "errors": [_error_data(error) for error in broken],
    }


def _locked_one(each: Pinned) -> dict[str, Any]:
    isolated = {"isolated": True} if each.is_isolated else {}
    return {"name": each.name, "version": each.version, "tools": [*each.tools], **isolated}


def _error_data(error: PluginError) -> dict[str, str]:
    return {"distribution": error.distribution, "code": error.code, "reason": error.reason}


def _summary(chosen: Sequence[Pinned], file: str) -> str:
    tools = sum(len(each.tools) for each in chosen)
    isolated = sum(each.is_isolated for each in chosen)
    text = f"locked {_some(len(chosen), 'distribution')} with {_some(tools, 'tool')} in {quote_path(file)}"
    return f"{text}, {isolated} as isolated" if isolated else text


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def diff(found: Sequence[Distribution], selection: Selection, options: Namespace, output: Output) -> int:
    """Print the differences from the lock file, and return 0 if there are none, otherwise 1.

    Args:
        found: All installed distributions.
        selection: The distributions that are compared.

    Raises:
        SpecError: The file cannot be read, or is not a lock file.
    """
    lock = Lock.read(options.file)
    differing = lock_differences(lock, found, selection)
    if options.json:
        output.json({"ok": not differing, "file": options.file, **_data(differing)})
    else:
        show(_blocks(differing, options.file), output)
    return FAILED if differing else OK


def _data(differing: Sequence[LockDifference]) -> dict[str, Any]:
    counts = count_changes(each for one in differing for each in one.differences)
    return {**counts, "distributions": [_found_data(each) for each in differing]}


def _found_data(each: LockDifference) -> dict[str, Any]:
    changes = [{"tool": one.tool, **attrs.asdict(one.change)} for one in each.differences]
    known = each.old or each.new
    return {
        "name": known.name if known else each.error and each.error.distribution,
        "state": each.state,
        "locked": each.old and each.old.version,
        "installed": each.new and each.new.version,
        "error": each.error and _error_data(each.error),
        "changes": changes,
    }


def _blocks(differing: Sequence[LockDifference], file: str) -> Iterator[Rows]:
    for each in differing:
        yield line(_title(each), "title")
        if each.differences:
            yield Rows(tuple(_row(one) for one in each.differences), indent=INDENT)
        yield EMPTY
    if not differing:
        yield line(f"no differences from {quote_path(file)}")
        return
    differences = [one for each in differing for one in each.differences]
    verb = "differs" if len(differing) == 1 else "differ"
    text = f"{_some(len(differing), 'distribution')} {verb} from {quote_path(file)}"
    yield line(f"{text}: {counts_of(differences)}" if differences else text)


def _title(each: LockDifference) -> str:
    match each.state:
        case "unusable":
            return f"{each.error}"
        case "missing":
            return f"{each.old} is not installed"
        case "new":
            return f"{each.new} is not locked"
        case _:
            return str(each.new)


def _row(difference: Difference) -> tuple[Cell, ...]:
    is_breaking = difference.change.kind == "breaking"
    kind = cell(difference.change.kind, "bad" if is_breaking else "mended")
    return kind, cell(difference.tool, "name"), cell(str(difference.change))
