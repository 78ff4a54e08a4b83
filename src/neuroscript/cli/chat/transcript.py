"""Readable transcripts of conversations in files that only their owner can read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import reason_of
from neuroscript.io.text import quote_path
from neuroscript.io.text_files import open_at_once
from neuroscript.llm.events import Conversation
from neuroscript.llm.transcripts import transcript


def write_transcript(file: str | None, conversation: Conversation, end: str = "") -> None:
    """Write a conversation to a file with mode 0600, replacing an existing file; do nothing if *file* is None.

    Args:
        end: Why there is no answer; it is written as the last line.

    Raises:
        UsageError: The file cannot be written.
    """
    if file is None:
        return
    lines = [transcript(conversation), f"ended: {end}" if end else ""]
    try:
        _write(Path(file), "".join(f"{line}\n" for line in lines if line))
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise UsageError(f"cannot write {quote_path(file)}: {reason_of(error)}") from None


def _write(file: Path, text: str) -> None:
    if file.exists() and not file.is_file():  # a pipe, or a device such as /dev/stderr
        with open(file, "w", encoding="utf-8", opener=open_at_once) as opened:
            opened.write(text)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with os.fdopen(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as open_file:
            open_file.write(text)
        beside.replace(file)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
