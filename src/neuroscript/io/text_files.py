"""Text files that a host names: read completely or rejected with a reason, and replaced atomically."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Final

from neuroscript.errors import SpecError

NOT_WAITING: Final = getattr(os, "O_NONBLOCK", 0)

OPEN_FILE_PREFIXES: Final = ("/dev/fd/", "/proc/")
"""The prefixes of the real paths of pipes that this process has open, such as /dev/stdin."""


def open_at_once(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Open a file, a device or a pipe that this process has open, without waiting for another process.

    Args:
        flags: The flags for `os.open`.
        mode: The permissions of a file that is created.

    Returns:
        A file descriptor.

    Raises:
        OSError: It is a named pipe, or the system refuses.
    """
    with suppress(FileNotFoundError):
        _refuse_named_pipe(path, os.stat(path))  # noqa: PTH116
    descriptor = os.open(path, flags | NOT_WAITING, mode)
    try:
        _refuse_named_pipe(path, os.fstat(descriptor))  # it may have appeared in the meantime
        if NOT_WAITING:
            os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_named_pipe(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if stat.S_ISFIFO(status.st_mode) and not os.path.realpath(path).startswith(OPEN_FILE_PREFIXES):
        raise OSError(errno.EINVAL, "it is a named pipe")


def read_text_file(path: str | os.PathLike[str], name: str, most: int) -> str:
    """Return the text of a file, or of a device such as ``/dev/null``, without waiting for other processes.

    Args:
        name: The name of the file in errors.
        most: The maximum size in bytes.

    Raises:
        SpecError: The file cannot be read, is too large, or is not UTF-8.
    """
    try:
        with open(path, "rb", opener=_opened) as file:
            data: bytes | None = file.read(most + 1)
            if data is None:
                raise OSError(0, "no data is available yet")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise SpecError(name, [f"cannot be read: {(reason or type(error).__name__).lower()}"]) from None
    if len(data) > most:
        raise SpecError(name, [f"has more than {most} bytes"])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(name, ["is not UTF-8 text"], [data.count(b"\n", 0, error.start) + 1]) from None


def _opened(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISDIR(mode):  # open() reports directories itself
        return descriptor
    os.close(descriptor)
    raise OSError(0, "it is not a regular file")


def write_atomically(path: str | os.PathLike[str], text: str, *, encoding: str = "ascii") -> None:
    """Replace a text file atomically, even if the process or the machine dies in the meantime.

    Raises:
        OSError: The file cannot be written, or is a directory or a device. The previous content is unchanged.
        ValueError: The path contains a NUL.
    """
    from pathlib import Path

    file = Path(path)
    with suppress(FileNotFoundError):
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):  # replacing a device would leave a regular file in its place
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(code, os.strerror(code) if code == errno.EISDIR else "it is not a regular file")
    unfinished = file.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        with unfinished.open("x", encoding=encoding, newline="\n") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
