"""What a command keeps of its calls: a trail, whose head is told when the command ends, and a recording.

Source: issue "Authority", audit; reliability.md part 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from neuroscript.audit.location import is_database_path
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.inputs import check_path
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.errors import AuditError, SpecError
from neuroscript.io.text import shown


@contextmanager
def kept(settings: Mapping[str, Any], output: Output) -> Iterator[dict[str, Any]]:
    """Open what *settings* name, and lend it as keywords of an engine; say at the end what is worth knowing of it.

    Raises:
        UsageError: The trail or its key can not be used, or there is a key and nothing that it is for.
        SpecError: The recording can not be used.
    """
    keywords: dict[str, Any] = {}
    for part in ("audit", "record"):
        if settings.get(part) is not None:
            check_path(settings[part])
    try:
        if settings.get("audit") is not None or settings.get("audit_key") is not None:
            keywords["audit"] = _audit(settings, output)
        if settings.get("record") is not None:
            keywords["recording"] = _recording(settings["record"], settings["audit"])
        yield keywords
    finally:
        for each in keywords.values():
            each.close()
        _tell(keywords, output)


def _audit(settings: Mapping[str, Any], output: Output) -> Any:
    """Return the trail that is asked for, open."""
    name, key = settings["audit"], settings["audit_key"]
    if name is None:
        raise UsageError("--audit-key is the key of a trail, and there is none; name it with --audit")
    if not is_database_path(name):
        return _lines(name, key, output)
    if key is not None:
        raise UsageError("--audit-key chains lines, and a database has none; name another file, or leave out the key")
    return _database(name)


def _lines(name: str, key: str | None, output: Output) -> Any:
    from neuroscript.audit.log_file import FileAudit

    secret = None
    if key is not None:
        from neuroscript.cli.terminal.inputs import key_of

        secret = key_of(key, output)
    try:
        return FileAudit(name, key=secret)
    except AuditError as error:
        raise UsageError(f"{shown(name)}: {error}") from None
    except SpecError:  # which is a ValueError, and not about the file
        raise
    except (OSError, ValueError) as error:
        raise _unusable(name, error) from None


def _database(name: str) -> Any:
    import sqlite3

    from neuroscript.audit.sqlite import SqliteAudit

    try:
        return SqliteAudit(name)
    except sqlite3.Error as error:
        raise UsageError(f"{shown(name)}: no trail can be kept in it: {error}") from None
    except (OSError, ValueError) as error:
        raise _unusable(name, error) from None


def _unusable(name: str, error: OSError | ValueError) -> UsageError:
    return UsageError(f"can not keep a trail in {shown(name)}: {reason_of(error)}")


def _recording(name: str, trail: str | None) -> Any:
    """Return the recording that is asked for, open; one in the file of the trail would put values there."""
    from neuroscript.audit.recording import Recording

    if trail is not None:
        with suppress(OSError, ValueError):  # it is not there yet, or is no name, as the recording says
            if Path(name).samefile(trail):
                raise UsageError("--audit and --record name one file; a trail holds no values, so name two")
    return Recording(name)


def _tell(keywords: Mapping[str, Any], output: Output) -> None:
    recording = keywords.get("recording")
    if recording is not None and recording.lost:
        output.say(f"warning: {recording.lost} of the calls could not be written to the recording")
    head: str = getattr(keywords.get("audit"), "head", "0:")
    if not head.startswith("0:"):  # of an empty trail, or of a database
        output.say(f"audit head {head}")
