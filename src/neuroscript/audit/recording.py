"""Calls with their content, written down by a host that wants to run them again, and what has become different since.

A recording is JSON lines, one for each call: the tool, the fingerprint of its definition, its effects, the arguments in
order and the result, or the code of the error. It holds values, so it is for its user alone, and apart from any audit.
A call that could not be run again, or whose values are not to be written, leaves a line that says why and holds none.

Values are plain JSON but for bytes ``{"$base64": text}``, times ``{"$datetime": text}``, embeddings
``{"$floats": [...]}``, and a map of one key that begins with ``$``, which is ``{"$map": {...}}``.

Source: contract section 5; peers.md part 0, row 7, and part 2, row 43.
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
from neuroscript.coercion.scalars import Handle
from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError, CallError, ReturnError, SpecError, ToolFailed
from neuroscript.io.private_files import is_foreign, is_shared
from neuroscript.io.text import shown
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.tool import ToolImplementation

FORM: Final = 1
"""The number of the form of a line; it stands at the head of each."""

HEAD: Final = b'{"recording":1,'
LONGEST: Final = 16 * 1024 * 1024
"""How many bytes a line may have, its end included."""

Reason = Literal["secret", "handle", "form", "size", "host"]
"""Why a call is left out: it holds a secret or a handle, something that would not come back exactly, or too much; or
how it ended was the host's affair and not the tool's, as with a limit."""

# What parameters have to be

ERROR: Final = instance(CallError)
TOOL: Final = instance(ToolImplementation)
VALUES: Final = Form("a list or tuple", lambda values: isinstance(values, (list, tuple)))

_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class Unwritable(Exception):
    """A value that would not come back as it is; its text is a `Reason`."""


class Recording:
    """A file of calls, made for its user alone (mode 0600) or gone on with; each call is one write at its end.

    Args:
        path: Where it is. A file that is there must be a recording that nobody else can open.

    Attributes:
        written: How many calls were written.
        left_out: How many were left out.
        lost: How many could not be written, for example to a full disk; no call fails for that.

    Raises:
        SpecError: The file can not be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require("Recording", path=(path, PATH))
        self.written = self.left_out = self.lost = 0
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
        """Write a call that has ended down, and tell whether that was done.

        Args:
            fingerprint: Of the tool's definition.
            values: The exact values that the tool was called with, in order.
            result: Its exact result; of a stream, the list of its items.
            error: Why there is no result.
            is_secret: Tells whether a value holds a secret of the host's; where it fails, each does.
        """
        parts = {"tool": (tool, TOOL), "fingerprint": (fingerprint, STRING), "values": (values, VALUES)}
        require("Recording", **parts, error=(error, optional(ERROR)), is_secret=(is_secret, optional(FUNCTION)))
        head = {"recording": FORM, "tool": tool.name}
        try:
            _refuse_secrets(tool.spec, values, result, is_secret)
            line = _line({**head, **_content(tool, fingerprint, values, result, error)})
        except Unwritable as reason:
            self.leave_out(tool, str(reason))
            return False
        with self._lock:
            is_written = self._append(line)
            self.written += is_written
            self.lost += not is_written
        return is_written

    def leave_out(self, tool: ToolImplementation, reason: str) -> None:
        """Write down that a call was left out, for a `Reason`."""
        require("Recording", tool=(tool, TOOL), reason=(reason, STRING))
        with self._lock:
            self.left_out += 1
            self._append(_line({"recording": FORM, "tool": tool.name, "left_out": reason}))

    def _append(self, line: bytes) -> bool:
        """Add a line to the file in one write, and tell whether it is there, all of it."""
        data = b"\n" + line if self._is_torn else line
        try:
            self._is_torn = self._file is None or os.write(self._file, data) < len(data)
        except OSError:
            self._is_torn = True
        return not self._is_torn

    def close(self) -> None:
        """Close the file; what is written after that is lost."""
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
        if getattr(error, "errno", 0) == errno.ELOOP and stat.S_ISLNK(os.lstat(path).st_mode):  # not a link above it
            reason = "it is a symbolic link; name the file itself"
        raise _unusable(path, reason) from None
    fault = _fault(os.fstat(file), file)
    if fault:
        os.close(file)
        raise _unusable(path, fault)
    return file


def _fault(status: os.stat_result, file: int) -> str:
    """Return what is wrong with a file that calls are to be added to, or ``""``."""
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if is_shared(status) or is_foreign(status):
        return "others can open it; take another name, or chmod 600"
    start = os.pread(file, len(HEAD), 0)
    return "" if HEAD.startswith(start) else "it holds something else than a recording"


def _unusable(path: str, reason: str) -> SpecError:
    return SpecError(f"recording {shown(path)}", [reason])


def _ends_whole(file: int) -> bool:
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
    """Refuse an argument, or one of its keys, that is secret or names a thing which only this engine keeps."""
    if value is None:
        return
    if rule.secret:
        raise Unwritable("secret")
    if rule.type is ArgType.HANDLE:
        raise Unwritable("handle")
    for each in value if isinstance(value, list) else (value,):
        for key in rule.keys if isinstance(each, dict) else ():
            _refuse_by_rule(key, each.get(key.name))


def _content(
    tool: ToolImplementation, fingerprint: str, values: Sequence[Any], result: Any, error: CallError | None
) -> dict[str, Any]:
    if error is not None and not isinstance(error, (ToolFailed, ReturnError, ArgumentError)):
        raise Unwritable("host")
    return {
        "fingerprint": fingerprint,
        "effects": list(tool.policy.effects),
        "args": [written(value) for value in values],
        **({"result": written(result)} if error is None else {"code": error.code}),
    }


def _line(data: dict[str, Any]) -> bytes:
    try:
        line = json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    except (ValueError, TypeError, RecursionError):
        raise Unwritable("form") from None
    if len(line) > LONGEST:
        raise Unwritable("size")
    return line


def written(value: Any) -> Any:
    """Return an exact value as plain data, out of which `read` makes the very same value.

    Raises:
        Unwritable: There is no such data.

    >>> written({"$base64": [b"a", 1.0]})
    {'$map': {'$base64': [{'$base64': 'YQ=='}, 1.0]}}
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [written(each) for each in value]
    if kind is dict:
        data = {key: written(each) for key, each in value.items()}
        if set(map(type, value)) - {str}:
            raise Unwritable("form")
        return {"$map": data} if _is_marked(data) else data
    if kind is bytes:
        return {"$base64": b2a_base64(value, newline=False).decode("ascii")}
    if kind is array and value.typecode == "f":
        return {"$floats": value.tolist()}
    if kind is datetime.datetime:
        return _written_time(value)
    raise Unwritable("handle" if kind is Handle else "form")


def _written_time(time: datetime.datetime) -> dict[str, str]:
    text = time.isoformat()
    if repr(datetime.datetime.fromisoformat(text)) != repr(time):  # the name of a time zone, and what is said twice
        raise Unwritable("form")
    return {"$datetime": text}


def _is_marked(data: dict[str, Any]) -> bool:
    return len(data) == 1 and next(iter(data)).startswith("$")


def read(data: Any) -> Any:
    """Return the value that `written` wrote.

    Raises:
        ValueError: It did not write that.
    """
    if type(data) is list:
        return [read(each) for each in data]
    if type(data) is not dict:
        return data
    if not _is_marked(data):
        return {key: read(each) for key, each in data.items()}
    try:
        return _read_marked(*next(iter(data.items())))
    except (NotBase64, TypeError, ValueError):
        raise ValueError("no value is written like that") from None


def _read_marked(mark: str, data: Any) -> Any:
    match mark, data:
        case "$base64", str():
            return a2b_base64(data, strict_mode=True)
        case "$datetime", str():
            return datetime.datetime.fromisoformat(data)
        case "$floats", list() if (floats := array("f", data)).tolist() == data:
            return floats
        case "$map", dict() if _is_marked(data):
            return {key: read(each) for key, each in data.items()}
        case _:
            raise ValueError
