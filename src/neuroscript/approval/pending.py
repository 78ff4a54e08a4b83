"""Suspended calls: each waits for its approval in a file, until the request is answered and the call is resumed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.context import LAX, ROOT, CoercionPass, type_name
from neuroscript.coercion.parameters import (
    DURATION,
    PATH,
    STRING,
    STRINGS,
    WHOLE,
    instance,
    optional,
    require,
    require_fields,
)
from neuroscript.coercion.plain_data import from_plain, to_plain
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import coerce_value
from neuroscript.errors import SpecError
from neuroscript.io.private_files import read_private, write_private
from neuroscript.io.text import NotJSON, parse_json, quote_untrusted
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.tools.fingerprints import canonical_text

SUBJECT: Final = "pending approval"
CALL: Final = instance(ToolCall)
REQUEST: Final = instance(ApprovalRequest)
VERSION: Final = 1
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a file; more than the arguments of one call can have."""

FIELDS: Final[Mapping[str, tuple[type, ...]]] = {
    "version": (int,),
    "tool": (str,),
    "arguments": (dict,),
    "fingerprint": (str,),
    "policy": (str,),
    "session": (str,),
    "digest": (str,),
    "approver": (int,),
    "reason": (str,),
    "created": (int, float),
}

OPTIONAL_FIELDS: Final[Mapping[str, tuple[type, ...]]] = {"flows": (list,)}
"""Fields that a file has only where they are needed."""

"""The fields of a file, and their exact types."""

BOUND: Final = ("fingerprint", "policy", "session", "digest")
"""The fields that an answer is bound to."""

MAX_TIME_SECONDS: Final = 1e11
"""Seconds; some years after 5000."""

SHA256: Final = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class PendingApproval:
    """A suspended call. An answer is accepted only if the tool, the policy, the session and the values are unchanged.

    Attributes:
        call: The tool's canonical name, and the exact values by name.
        fingerprint: SHA-256 of the tool's definition, in hexadecimal digits.
        policy: SHA-256 of what the host permits.
        session: The id of the session.
        digest: SHA-256 of the tool's definition and of the values.
        approver: Which approver suspended it; the others are asked as usual.
        reason: Why it was suspended, for the user who answers.
        created: When, in seconds since 1970-01-01 UTC.
        flows: What the call would send where, see `ApprovalRequest`. An answer is valid for nothing else.
    """

    call: ToolCall = attrs.field(repr=False)
    fingerprint: str
    policy: str
    session: str
    digest: str
    approver: int = attrs.field(default=0, kw_only=True)
    reason: str = attrs.field(default="", kw_only=True)
    created: float = attrs.field(factory=time.time, kw_only=True)
    flows: tuple[str, ...] = attrs.field(default=(), kw_only=True)

    def __attrs_post_init__(self) -> None:
        texts = dict.fromkeys((*BOUND, "reason"), STRING)
        require_fields(SUBJECT, self, call=CALL, approver=WHOLE, created=DURATION, flows=STRINGS, **texts)

    @classmethod
    def of(cls, request: ApprovalRequest, *, reason: str = "", created: float | None = None) -> PendingApproval:
        """Return what to store for a request.

        Args:
            created: The time by the host's clock; None means the system's.

        Raises:
            SpecError: Some of its arguments are secret; they must not be stored.
        """
        parts = {"request": (request, REQUEST), "reason": (reason, STRING), "created": (created, optional(DURATION))}
        require(SUBJECT, **parts)
        secret_names = [
            name for name, value in request.arguments.items() if name in request.secrets and value is not None
        ]
        if secret_names:
            raise _unfit(f"{quote_untrusted(name)} is secret and must not be stored" for name in secret_names)
        bound = [getattr(request, name) for name in BOUND]
        when = time.time() if created is None else created
        call = ToolCall(request.tool, dict(request.arguments))
        return cls(call, *bound, approver=request.approver, reason=reason, created=when, flows=request.flows)

    @property
    def tool(self) -> str:
        """The canonical name of the tool."""
        return self.call.name

    def agrees(self, fingerprint: str, policy: str, session: str, digest: str) -> tuple[str, ...]:
        """Return the names of the parts that have changed; none if an answer is valid.

        Args:
            fingerprint: The fingerprint of the tool as it is now.
            policy: The digest of what the host permits now.
            session: The id of the session that resumes the call.
            digest: The digest of the tool and of the exact values, bound once more.
        """
        now = {"fingerprint": fingerprint, "policy": policy, "session": session, "digest": digest}
        require(SUBJECT, **{name: (value, STRING) for name, value in now.items()})
        return tuple(name for name, value in now.items() if getattr(self, name) != value)

    def save(self, place: str | os.PathLike[str]) -> Path:
        """Atomically write a new file that only its owner can read, and return its path.

        Args:
            place: A directory, in which the file gets a unique name, or the path of a file that does not exist yet.

        Raises:
            SpecError: Arguments could not be read back exactly, such as a time, an embedding or a map whose keys are
                not strings; or they are too large.
            FileExistsError: A file with this name exists.
            OSError: It cannot be written.
        """
        import json

        require(SUBJECT, place=(place, PATH))
        if faults := [*_inexact(self.call)]:
            raise _unfit(faults)
        data = json.dumps(_data(self), allow_nan=False).encode("ascii")
        if len(data) > MAX_FILE_BYTES:
            raise _unfit([f"its file would have more than {MAX_FILE_BYTES} bytes"])
        path = Path(place)
        if path.is_dir():
            path /= _file_name(self)
        write_private(path, data)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PendingApproval:
        """Return the suspended call that a file contains.

        Raises:
            SpecError: With every problem: other users can read or change the file, it belongs to another user, it is a
                link, not a regular file or too large, or its content is not a suspended call.
            OSError: It cannot be opened, for example because it does not exist.
        """
        require(SUBJECT, path=(path, PATH))
        data = _parsed(read_private(Path(path), SUBJECT, MAX_FILE_BYTES))
        if faults := [*_faults(data)]:
            raise _unfit(faults)
        arguments = {name: from_plain(value) for name, value in data["arguments"].items()}
        bound = [data[name] for name in BOUND]
        rest = {"approver": data["approver"], "reason": data["reason"], "created": float(data["created"])}
        return cls(ToolCall(data["tool"], arguments), *bound, **rest, flows=tuple(data.get("flows", ())))


class FileApprover:
    """An approver that writes each request into a directory and suspends the call.

    A request that cannot be written is rejected. The reason of the answer contains the name of the file, but not its
    path.

    Args:
        directory: The directory; it is created on the first request, and only its owner can access it.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        require("FileApprover", directory=(directory, PATH))
        self._directory = Path(directory)

    def __call__(self, request: ApprovalRequest) -> Approval:
        """Store a request and return the answer that suspends its call, or a rejection with the reason."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return Approval.suspend(f"saved in {PendingApproval.of(request).save(self._directory).name}")
        except SpecError as error:
            return Approval.reject(f"it cannot wait for approval: {'; '.join(error.problems)}")
        except OSError as error:
            return Approval.reject(f"it cannot wait for approval: its file cannot be written ({type_name(error)})")


def _unfit(faults: Iterable[str]) -> SpecError:
    return SpecError(SUBJECT, [*faults])


def _data(pending: PendingApproval) -> dict[str, Any]:
    arguments = {name: to_plain(value) for name, value in _arguments_by_name(pending.call).items()}
    rest = {name: getattr(pending, name) for name in FIELDS if name not in ("version", "arguments")}
    flows = {"flows": [*pending.flows]} if pending.flows else {}
    return {"version": VERSION, **rest, **flows, "arguments": arguments}


def _file_name(pending: PendingApproval) -> str:
    """Return a unique name that contains the name of the tool."""
    tool = re.sub(r"[^a-z0-9_.]", "_", pending.tool)[:64]
    return f"{tool}-{os.urandom(8).hex()}.json"


def _arguments_by_name(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a call, which are by name, as those of a request are."""
    if not isinstance(call.arguments, Mapping):
        raise _unfit(["the arguments of its call must be by name"])
    return call.arguments


def _inexact(call: ToolCall) -> Iterator[str]:
    """Yield a sentence for each argument that would not be the same when it is read again."""
    for name, value in _arguments_by_name(call).items():
        if not _comes_back(value):
            yield f"{quote_untrusted(name)} cannot be stored and read back exactly ({type_name(value)})"


def _comes_back(value: Any) -> bool:
    import json

    try:
        again = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
        return canonical_text(again) == canonical_text(value)
    except (TypeError, ValueError, RecursionError):
        return False


def _parsed(content: bytes) -> Any:
    try:
        return parse_json(content.decode("utf-8"))
    except NotJSON as error:
        raise _unfit([error.hint]) from None
    except UnicodeDecodeError:
        raise _unfit(["it is not UTF-8"]) from None


def _faults(data: Any) -> Iterator[str]:
    """Yield everything that is wrong with the content of a file."""
    if type(data) is not dict:
        yield f"expected an object, got {type_name(data)}"
        return
    yield from (f"{name} is missing" for name in FIELDS if name not in data)
    known = {**FIELDS, **OPTIONAL_FIELDS}
    yield from (f"{quote_untrusted(name)} is unknown" for name in data if name not in known)
    for name in [name for name in known if name in data]:
        if type(data[name]) not in known[name]:
            yield f"{name} must be {' or '.join(kind.__name__ for kind in known[name])}, not {type_name(data[name])}"
        else:
            yield from _fault(name, data[name])


def _fault(name: str, value: Any) -> Iterator[str]:
    match name:
        case "version" if value != VERSION:
            yield f"version must be {VERSION}; the file was written by another release"
        case "tool" if not value:
            yield "tool must not be empty"
        case "fingerprint" | "policy" | "digest" if SHA256.fullmatch(value) is None:
            yield f"{name} must be 64 hexadecimal digits"
        case "approver" if value < 0:
            yield "approver must be 0 or more"
        case "created" if not 0 <= value < MAX_TIME_SECONDS:
            yield "created must be seconds since 1970"
        case "flows" if not (value and all(type(each) is str for each in value)):
            yield "flows must be strings, at least one"
        case "arguments":
            yield from (
                f"arguments: {quote_untrusted(each)} holds what no call can" for each in value if _spoilt(value[each])
            )


def _spoilt(data: Any) -> bool:
    """Return whether `save` cannot have written this: bad base64, an infinite number, too deep nesting."""
    try:
        value = from_plain(data)
        walk = CoercionPass(LAX)
        walk.limited(coerce_value, ArgType.ANY, value, ROOT)
        return bool(walk.noted) or not _comes_back(value)
    except RecursionError:
        return True
