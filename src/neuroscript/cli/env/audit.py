"""The audit log and the recording of a command; the head of the audit log is printed when the command ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from neuroscript.audit.location import is_database_path
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.inputs import check_path, key_of
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.errors import AuditError, SpecError
from neuroscript.io.text import quote_untrusted


@contextmanager
def open_sinks(settings: Mapping[str, Any], output: Output) -> Iterator[dict[str, Any]]:
    """Open the audit log and recording in *settings* as keyword arguments of an engine, and report on them at the end.

    Raises:
        UsageError: The audit log or its key cannot be used, or there is a key without an audit log.
        SpecError: The recording cannot be used.
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
    """Return the requested audit log, open."""
    name, key = settings["audit"], settings["audit_key"]
    if name is None:
        raise UsageError("--audit-key needs an audit log; add --audit FILE")
    if not is_database_path(name):
        return _lines(name, key, output)
    if key is not None:
        raise UsageError(
            "--audit-key works only with JSON lines, not with a database; choose another file, or omit the key"
        )
    return _database(name)


def _lines(name: str, key: str | None, output: Output) -> Any:
    from neuroscript.audit.log_file import FileAudit

    secret = None
    if key is not None:
        secret = key_of(key, output)
    try:
        return FileAudit(name, key=secret)
    except AuditError as error:
        raise UsageError(f"{quote_untrusted(name)}: {error}") from None
    except SpecError:  # a ValueError that is not about the file
        raise
    except (OSError, ValueError) as error:
        raise _unusable(name, error) from None


def _database(name: str) -> Any:
    import sqlite3

    from neuroscript.audit.sqlite import SqliteAudit

    try:
        return SqliteAudit(name)
    except sqlite3.Error as error:
        raise UsageError(f"{quote_untrusted(name)}: cannot be used as an audit log: {error}") from None
    except (OSError, ValueError) as error:
        raise _unusable(name, error) from None


def _unusable(name: str, error: OSError | ValueError) -> UsageError:
    return UsageError(f"cannot write an audit log to {quote_untrusted(name)}: {reason_of(error)}")


def _recording(name: str, audit: str | None) -> Any:
    """Return the requested recording, open; in the file of the audit log it would write values there."""
    from neuroscript.audit.recording import Recording

    if audit is not None:
        with suppress(OSError, ValueError):  # a new file, or an invalid name, which Recording reports
            if Path(name).samefile(audit):
                raise UsageError(
                    "--audit and --record name the same file; use two files, because an audit log contains no values"
                )
    return Recording(name)


def _tell(keywords: Mapping[str, Any], output: Output) -> None:
    recording = keywords.get("recording")
    if recording is not None and recording.lost:
        output.say(f"warning: {recording.lost} of the calls could not be written to the recording")
    head: str = getattr(keywords.get("audit"), "head", "0:")
    if not head.startswith("0:"):  # an empty audit log, or a database
        output.say(f"audit head {head}")
