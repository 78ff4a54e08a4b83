"""Recordings of calls with their content, for a host that wants to replay them later.

A recording consists of JSON lines, one for each call: the tool, the fingerprint of its definition, its effects, the
arguments in order, and the result or the error code. Because it contains values, only its owner can read it, and it is
separate from the audit log. A call that cannot be replayed, or whose values must not be written, leaves a line that
gives the reason and contains no values.

Values are plain JSON except bytes ``{"$base64": text}``, times ``{"$datetime": text}``, embeddings
``{"$floats": [...]}``, and maps with a single key that begins with ``$``, which become ``{"$map": {...}}``.
"""

from __future__ import annotations

import datetime
import errno
import json
import os
import stat
import threading
from array import array
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from types import TracebackType
from typing import Any, Final, Literal, Self

from neuroscript.coercion.parameters import FUNCTION, PATH, STRING, Form, instance, optional, require
from neuroscript.coercion.plain_data import content_of
from neuroscript.coercion.scalars import AnyContent, Handle
from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError, CallError, ReturnError, SpecError, ToolFailed
from neuroscript.io.private_files import is_foreign, is_shared
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.nested_values import nested_values
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.tool import ToolImplementation

FORM: Final = 1
"""The version of the format, at the beginning of each line."""

HEAD: Final = b'{"recording":1,'
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a line in bytes, including its end."""

Reason = Literal["secret", "handle", "unsupported", "size", "host"]
"""Why a call is not recorded: it contains a secret, a handle, a value that cannot be restored exactly, or too much
data; or the host decided its outcome and not the tool, as with a limit."""

# Requirements on parameters

ERROR: Final = instance(CallError)
TOOL: Final = instance(ToolImplementation)
VALUES: Final = Form("a list or tuple", lambda values: isinstance(values, (list, tuple)))

_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class Unwritable(Exception):
    """A value that cannot be restored exactly; the message is a `Reason`."""


class Recording:
    """A file of calls that only its owner can read (mode 0600). Each call is appended in one write when it ends.

    Args:
        path: The path of the file. An existing file must be a recording that no other user can open.

    Attributes:
        written: The number of calls that were written.
        not_recorded: The number of calls that were not recorded.
        lost: The number of calls that could not be written, for example to a full disk. The calls do not fail.

    Raises:
        SpecError: If the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require("Recording", path=(path, PATH))
        self.written = self.not_recorded = self.lost = 0
        self._lock = threading.Lock()
        self._file: int | None = _opened(os.fspath(path))
        self._is_torn = not _ends_whole(self._file)

    def write(
        self,
        tool: ToolImplementation,
        fingerprint: str,
        values: Sequence[Any],
        result: Any = None,
        *,
        error: CallError | None = None,
        is_secret: Callable[[Any], bool] | None = None,
    ) -> bool:
        """Write a call that has ended, and return whether it was written.

        Args:
            fingerprint: The fingerprint of the tool's definition.
            values: The exact argument values, in order.
            result: The exact result; for a stream, the list of its items.
            error: The error, or None.
            is_secret: Returns whether a value contains a secret of the host. If it raises, the value counts as secret.
        """
        parts = {"tool": (tool, TOOL), "fingerprint": (fingerprint, STRING), "values": (values, VALUES)}
        require("Recording", **parts, error=(error, optional(ERROR)), is_secret=(is_secret, optional(FUNCTION)))
        head = {"recording": FORM, "tool": tool.name}
        try:
            _refuse_secrets(tool.spec, values, result, is_secret)
            line = _encode_line({**head, **_content(tool, fingerprint, values, result, error)})
        except Unwritable as reason:
            self.omit(tool, str(reason))
            return False
        with self._lock:
            is_written = self._append(line)
            self.written += is_written
            self.lost += not is_written
        return is_written

    def omit(self, tool: ToolImplementation, reason: str) -> None:
        """Record that a call was left out, with the reason."""
        require("Recording", tool=(tool, TOOL), reason=(reason, STRING))
        with self._lock:
            self.not_recorded += 1
            self._append(_encode_line({"recording": FORM, "tool": tool.name, "not_recorded": reason}))

    def _append(self, line: bytes) -> bool:
        """Append a line in one write, and return whether it was written completely."""
        data = b"\n" + line if self._is_torn else line
        try:
            self._is_torn = self._file is None or os.write(self._file, data) < len(data)
        except OSError:
            self._is_torn = True
        return not self._is_torn

    def close(self) -> None:
        """Close the file; later calls are not recorded."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opened(path: str) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", "") or type(error).__name__).lower()
        if getattr(error, "errno", 0) == errno.ELOOP and stat.S_ISLNK(os.lstat(path).st_mode):  # not a parent directory
            reason = "it is a symbolic link; use the path of the file itself"
        raise _unusable(path, reason) from None
    fault = _fault(os.fstat(file), file)
    if fault:
        os.close(file)
        raise _unusable(path, fault)
    return file


def _fault(status: os.stat_result, file: int) -> str:
    """Return why calls cannot be appended to a file, or ``""``."""
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if is_shared(status) or is_foreign(status):
        return "other users can open it; choose another file or run chmod 600"
    start = os.pread(file, len(HEAD), 0)
    return "" if HEAD.startswith(start) else "it is not a recording"


def _unusable(path: str, reason: str) -> SpecError:
    return SpecError(f"recording {quote_untrusted(path)}", [reason])


def _ends_whole(file: int) -> bool:
    """Return whether the file does not end within a line.

    If another process is just writing, it seems to; then a blank line follows, which readers skip.
    """
    size = os.fstat(file).st_size
    return not size or os.pread(file, 1, size - 1) == b"\n"


def _refuse_secrets(
    spec: ToolSpec, values: Sequence[Any], result: Any, is_secret: Callable[[Any], bool] | None
) -> None:
    rules: Iterable[ArgSpec] = chain(spec.args, repeat(spec.args[-1])) if spec.args else ()
    for rule, value in zip(rules, values, strict=False):
        _refuse_by_rule(rule, value)
    try:
        if is_secret is not None and any(map(is_secret, (*values, result))):
            raise Unwritable("secret")
    except Unwritable:
        raise
    except Exception:
        raise Unwritable("secret") from None


def _refuse_by_rule(rule: ArgSpec, value: Any) -> None:
    """Refuse an argument, or a value within it, that is secret or refers to an object of this engine."""
    if value is None:
        return
    if rule.secret:
        raise Unwritable("secret")
    if rule.type is ArgType.HANDLE:
        raise Unwritable("handle")
    if rule.nested:
        for inner, each in nested_values(rule, value):
            _refuse_by_rule(inner, each)


def _content(
    tool: ToolImplementation, fingerprint: str, values: Sequence[Any], result: Any, error: CallError | None
) -> dict[str, Any]:
    if error is not None and not isinstance(error, (ToolFailed, ReturnError, ArgumentError)):
        raise Unwritable("host")
    return {
        "fingerprint": fingerprint,
        "effects": list(tool.policy.effects),
        "args": [encode(value) for value in values],
        **({"result": encode(result)} if error is None else {"code": error.code}),
    }


def _encode_line(data: dict[str, Any]) -> bytes:
    try:
        line = json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    except (ValueError, TypeError, RecursionError):
        raise Unwritable("unsupported") from None
    if len(line) > MAX_LINE_BYTES:
        raise Unwritable("size")
    return line


def encode(value: Any) -> Any:
    """Return an exact value as plain data from which `decode` restores the same value.

    Raises:
        Unwritable: If that is impossible.

    >>> encode({"$base64": [b"a", 1.0]})
    {'$map': {'$base64': [{'$base64': 'YQ=='}, 1.0]}}
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [encode(each) for each in value]
    if kind is dict:
        data = {key: encode(each) for key, each in value.items()}
        if set(map(type, value)) - {str}:
            raise Unwritable("unsupported")
        return {"$map": data} if _is_marked(data) else data
    if kind is bytes:
        return {"$base64": b2a_base64(value, newline=False).decode("ascii")}
    if kind is array and value.typecode == "f":
        return {"$floats": value.tolist()}
    if kind is datetime.datetime:
        return _written_time(value)
    if isinstance(value, AnyContent):
        return {"$content": encode(value.data)}
    raise Unwritable("handle" if kind is Handle else "unsupported")


def _written_time(time: datetime.datetime) -> dict[str, str]:
    text = time.isoformat()
    if repr(datetime.datetime.fromisoformat(text)) != repr(time):  # named time zones, and ambiguous local times
        raise Unwritable("unsupported")
    return {"$datetime": text}


def _is_marked(data: dict[str, Any]) -> bool:
    return len(data) == 1 and next(iter(data)).startswith("$")


def decode(data: Any) -> Any:
    """Return the value that `encode` encoded.

    Raises:
        ValueError: If *data* has another format.
    """
    if type(data) is list:
        return [decode(each) for each in data]
    if type(data) is not dict:
        return data
    if not _is_marked(data):
        return {key: decode(each) for key, each in data.items()}
    try:
        return _read_marked(*next(iter(data.items())))
    except (NotBase64, TypeError, ValueError):
        raise ValueError("the value has an unknown format") from None


def _read_marked(mark: str, data: Any) -> Any:
    match mark, data:
        case "$base64", str():
            return a2b_base64(data, strict_mode=True)
        case "$datetime", str():
            return datetime.datetime.fromisoformat(data)
        case "$content", dict():
            return content_of(decode(data))
        case "$floats", list() if (floats := array("f", data)).tolist() == data:
            return floats
        case "$map", dict() if _is_marked(data):
            return {key: decode(each) for key, each in data.items()}
        case _:
            raise ValueError
