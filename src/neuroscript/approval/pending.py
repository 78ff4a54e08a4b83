"""A call that waits for its approval in a file, until somebody answers and the call is resumed.

Source: contract section 5; reliability.md T20.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.context import LAX, ROOT, Walk, type_name
from neuroscript.coercion.parameters import DURATION, PATH, STRING, WHOLE, instance, optional, require, require_fields
from neuroscript.coercion.plain_data import plain, restored
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import exact
from neuroscript.errors import SpecError
from neuroscript.io.private_files import read_private, write_private
from neuroscript.io.text import NotJSON, parsed, shown
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.tools.fingerprints import canonical_text

WHERE: Final = "pending approval"
CALL: Final = instance(ToolCall)
REQUEST: Final = instance(ApprovalRequest)
VERSION: Final = 1
LARGEST: Final = 64 * 1024 * 1024
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
"""What stands in a file, and the exact types of it."""

BOUND: Final = ("fingerprint", "policy", "session", "digest")
"""What an answer is good for, and nothing else."""

LATEST: Final = 1e11
"""Seconds; some years after 5000."""

SHA256: Final = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class PendingApproval:
    """A call that was put aside; an answer to it counts only if nothing of what it was bound to has changed.

    Attributes:
        call: The tool's canonical name, and the exact values by name.
        fingerprint: SHA-256 of the tool's definition, in hexadecimal digits.
        policy: SHA-256 of what the host permits.
        session: The id of the session.
        digest: SHA-256 of the tool's definition and of the values.
        approver: Which approver put it aside; the others are asked as ever.
        reason: Why it was put aside, for whoever answers.
        created: When, in seconds since 1970-01-01 UTC.
    """

    call: ToolCall = attrs.field(repr=False)
    fingerprint: str
    policy: str
    session: str
    digest: str
    approver: int = attrs.field(default=0, kw_only=True)
    reason: str = attrs.field(default="", kw_only=True)
    created: float = attrs.field(factory=time.time, kw_only=True)

    def __attrs_post_init__(self) -> None:
        texts = dict.fromkeys((*BOUND, "reason"), STRING)
        require_fields(WHERE, self, call=CALL, approver=WHOLE, created=DURATION, **texts)

    @classmethod
    def of(cls, request: ApprovalRequest, *, reason: str = "", created: float | None = None) -> PendingApproval:
        """Return what is to be kept of a request.

        Args:
            created: The time by the host's clock; None is the system's.

        Raises:
            SpecError: Arguments of it are secret: they are not to be written down.
        """
        parts = {"request": (request, REQUEST), "reason": (reason, STRING), "created": (created, optional(DURATION))}
        require(WHERE, **parts)
        given = [name for name, value in request.arguments.items() if name in request.secrets and value is not None]
        if given:
            raise _unfit(f"{shown(name)} is secret, and is not written down" for name in given)
        bound = [getattr(request, name) for name in BOUND]
        when = time.time() if created is None else created
        call = ToolCall(request.tool, dict(request.arguments))
        return cls(call, *bound, approver=request.approver, reason=reason, created=when)

    @property
    def tool(self) -> str:
        """The canonical name of the tool."""
        return self.call.name

    def agrees(self, fingerprint: str, policy: str, session: str, digest: str) -> tuple[str, ...]:
        """Return the names of what no longer agrees, none where an answer counts.

        Args:
            fingerprint: That of the tool as it is now.
            policy: The digest of what the host permits now.
            session: The id of the session that resumes the call.
            digest: That of the tool and the exact values, bound once more.
        """
        now = {"fingerprint": fingerprint, "policy": policy, "session": session, "digest": digest}
        require(WHERE, **{name: (value, STRING) for name, value in now.items()})
        return tuple(name for name, value in now.items() if getattr(self, name) != value)

    def save(self, place: str | os.PathLike[str]) -> Path:
        """Write a new file that nobody else may read, whole or not at all, and return its path.

        Args:
            place: A directory, in which the file has a name of its own, or the path of a file that is not there yet.

        Raises:
            SpecError: Arguments would not come back exactly, such as a time, an embedding or a map whose keys are no
                texts; or they are too large.
            FileExistsError: There is a file of this name.
            OSError: It can not be written.
        """
        import json

        require(WHERE, place=(place, PATH))
        if faults := [*_inexact(self.call)]:
            raise _unfit(faults)
        data = json.dumps(_data(self), allow_nan=False).encode("ascii")
        if len(data) > LARGEST:
            raise _unfit([f"its file would have more than {LARGEST} bytes"])
        path = Path(place)
        if path.is_dir():
            path /= _file_name(self)
        write_private(path, data)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PendingApproval:
        """Return what a file holds.

        Raises:
            SpecError: With everything that is wrong with the file: others may read or change it, it belongs to another
                user, it is a link, no file or too large, or what stands in it is no pending approval.
            OSError: It can not be opened, for example because it is not there.
        """
        require(WHERE, path=(path, PATH))
        data = _parsed(read_private(Path(path), WHERE, LARGEST))
        if faults := [*_faults(data)]:
            raise _unfit(faults)
        arguments = {name: restored(value) for name, value in data["arguments"].items()}
        bound = [data[name] for name in BOUND]
        rest = {"approver": data["approver"], "reason": data["reason"], "created": float(data["created"])}
        return cls(ToolCall(data["tool"], arguments), *bound, **rest)


def suspending(directory: str | os.PathLike[str]) -> Callable[[ApprovalRequest], Approval]:
    """Return an approver that writes each request into *directory* and suspends the call.

    Args:
        directory: Made, for its owner alone, when the first request comes.

    What can not be written is rejected. The reason of the answer holds the name of the file and nothing of its path.
    """
    require("suspending", directory=(directory, PATH))
    folder = Path(directory)

    def suspend(request: ApprovalRequest) -> Approval:
        """Put a request aside."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return Approval.suspend(f"it waits for an approval in {PendingApproval.of(request).save(folder).name}")
        except SpecError as error:
            return Approval.reject(f"it can not wait for an approval: {'; '.join(error.problems)}")
        except OSError as error:
            return Approval.reject(f"it can not wait for an approval: its file can not be written ({type_name(error)})")

    return suspend


def _unfit(faults: Iterable[str]) -> SpecError:
    return SpecError(WHERE, [*faults])


def _data(pending: PendingApproval) -> dict[str, Any]:
    arguments = {name: plain(value) for name, value in _named(pending.call).items()}
    rest = {name: getattr(pending, name) for name in FIELDS if name not in ("version", "arguments")}
    return {"version": VERSION, **rest, "arguments": arguments}


def _file_name(pending: PendingApproval) -> str:
    """Return a name that tells the tool, and that no other request has."""
    tool = re.sub(r"[^a-z0-9_.]", "_", pending.tool)[:64]
    return f"{tool}-{os.urandom(8).hex()}.json"


def _named(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a call, which are those of a request: by name."""
    if not isinstance(call.arguments, Mapping):
        raise _unfit(["the arguments of its call must be by name"])
    return call.arguments


def _inexact(call: ToolCall) -> Iterator[str]:
    """Yield a sentence for each argument that would not be the same when it is read again."""
    for name, value in _named(call).items():
        if not _comes_back(value):
            yield f"{shown(name)} can not be written so that it comes back exactly ({type_name(value)})"


def _comes_back(value: Any) -> bool:
    import json

    try:
        again = restored(json.loads(json.dumps(plain(value), allow_nan=False)))
        return canonical_text(again) == canonical_text(value)
    except (TypeError, ValueError, RecursionError):
        return False


def _parsed(content: bytes) -> Any:
    try:
        return parsed(content.decode("utf-8"))
    except NotJSON as error:
        raise _unfit([error.hint]) from None
    except UnicodeDecodeError:
        raise _unfit(["it is not UTF-8"]) from None


def _faults(data: Any) -> Iterator[str]:
    """Yield everything that is wrong with what stands in a file."""
    if type(data) is not dict:
        yield f"expected an object, got {type_name(data)}"
        return
    yield from (f"{name} is missing" for name in FIELDS if name not in data)
    yield from (f"{shown(name)} is unknown" for name in data if name not in FIELDS)
    for name in [name for name in FIELDS if name in data]:
        if type(data[name]) not in FIELDS[name]:
            yield f"{name} must be {' or '.join(kind.__name__ for kind in FIELDS[name])}, not {type_name(data[name])}"
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
        case "created" if not 0 <= value < LATEST:
            yield "created must be seconds since 1970"
        case "arguments":
            yield from (f"arguments: {shown(each)} holds what no call can" for each in value if _spoilt(value[each]))


def _spoilt(data: Any) -> bool:
    """Tell whether `PendingApproval.save` writes no such thing: bad base64, a number without end, too much nesting."""
    try:
        value = restored(data)
        walk = Walk(LAX)
        walk.limited(exact, ArgType.ANY, value, ROOT)
        return bool(walk.noted) or not _comes_back(value)
    except RecursionError:
        return True
