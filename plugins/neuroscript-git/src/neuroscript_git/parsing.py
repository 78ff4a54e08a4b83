"""Parsers for the machine-readable output of git: NUL-terminated records with fields in a fixed order.

The formats are those of ``git help status`` (porcelain version 2), ``git help diff-format`` and ``git help push``
(``--porcelain``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

CHANGES: Final = {
    "A": "added",
    "C": "copied",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "type_changed",
    "U": "unmerged",
    ".": "unchanged",
    "?": "untracked",
}

LOG_FORMAT: Final = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%s%x00%b%x00"
LOG_FIELDS: Final = 7
BRANCH_FORMAT: Final = "%(refname)%00%(objectname)%00%(HEAD)%00%(upstream:short)%00%(symref)%00%(contents:subject)"


def status(text: str) -> dict[str, Any]:
    """Parse the output of ``status --porcelain=v2 --branch -z``."""
    found: dict[str, Any] = {"branch": None, "commit": None, "upstream": None, "ahead": 0, "behind": 0}
    files: list[dict[str, Any]] = []
    records = iter(text.split("\0")[:-1])
    for record in records:
        if record.startswith("# "):
            _header(found, record[2:])
        elif record:
            files.append(_changed(record, records))
    return {**found, "clean": not files, "files": files}


def _header(found: dict[str, Any], text: str) -> None:
    match text.split(" "):
        case ["branch.oid", digest] if digest != "(initial)":
            found["commit"] = digest
        case ["branch.head", name] if name != "(detached)":
            found["branch"] = name
        case ["branch.upstream", name]:
            found["upstream"] = name
        case ["branch.ab", ahead, behind]:
            found["ahead"], found["behind"] = int(ahead), -int(behind)


def _changed(record: str, records: Iterator[str]) -> dict[str, Any]:
    match record[0]:
        case "1":
            *_, path = record.split(" ", 8)
            return _file(path, record[2], record[3])
        case "2":
            *_, path = record.split(" ", 9)
            return _file(path, record[2], record[3], next(records))
        case "u":
            *_, path = record.split(" ", 10)
            return _file(path, "U", "U")
        case _:
            return _file(record[2:], "?", "?")


def _file(path: str, index: str, worktree: str, old: str | None = None) -> dict[str, Any]:
    return {"path": path, "old_path": old, "index": CHANGES[index], "worktree": CHANGES[worktree]}


def changes(text: str) -> list[dict[str, Any]]:
    """Return the files in the output of ``diff --raw --numstat -z``, in its order."""
    found: dict[str, dict[str, Any]] = {}
    fields = iter(text.split("\0"))
    for field in fields:
        if field.startswith(":"):
            _raw(found, field, fields)
        elif field:
            _counted(found, field, fields)
    return list(found.values())


def _raw(found: dict[str, dict[str, Any]], field: str, fields: Iterator[str]) -> None:
    letter = field.rpartition(" ")[2][0]
    first = next(fields)
    path, old = (next(fields), first) if letter in "RC" else (first, None)
    found[path] = {
        "path": path,
        "old_path": old,
        "change": CHANGES.get(letter, "unknown"),
        "added": 0,
        "deleted": 0,
        "binary": False,
    }


def _counted(found: dict[str, dict[str, Any]], field: str, fields: Iterator[str]) -> None:
    added, deleted, path = field.split("\t", 2)
    if not path:
        next(fields)
        path = next(fields)
    counts = {"binary": True} if added == "-" else {"added": int(added), "deleted": int(deleted)}
    found.setdefault(path, {"path": path, "old_path": None, "change": "unmerged", "binary": False}).update(counts)


def log(text: str) -> list[dict[str, Any]]:
    """Return the commits in the output of ``log -z`` by `LOG_FORMAT`, in its order."""
    fields = text.split("\0")
    step = LOG_FIELDS + 1  # -z adds one more NUL to each
    return [_logged(fields[at : at + LOG_FIELDS]) for at in range(0, len(fields) - LOG_FIELDS, step)]


def _logged(fields: list[str]) -> dict[str, Any]:
    digest, parents, name, email, moment, subject, body = fields
    return {
        "commit": digest,
        "parents": parents.split(),
        "author": name,
        "email": email,
        "time": moment,
        "subject": subject,
        "body": body.rstrip("\n"),
    }


def branches(text: str) -> list[dict[str, Any]]:
    """Return the branches in the output of ``for-each-ref`` by `BRANCH_FORMAT`, without symbolic refs."""
    lines = [line.split("\0") for line in text.split("\n") if line]
    return [_branch(fields) for fields in lines if not fields[4]]


def _branch(fields: list[str]) -> dict[str, Any]:
    name, digest, head, upstream, _, subject = fields
    return {
        "name": name.removeprefix("refs/heads/").removeprefix("refs/remotes/"),
        "commit": digest,
        "current": head == "*",
        "remote": name.startswith("refs/remotes/"),
        "upstream": upstream or None,
        "subject": subject,
    }


def push_result(text: str) -> str:
    """Return the result for one ref in the output of ``push --porcelain``: pushed, new, up_to_date or rejected."""
    words = {" ": "pushed", "+": "pushed", "*": "new", "=": "up_to_date"}
    flags = [line[0] for line in text.split("\n") if line[1:2] == "\t"]
    return words.get(flags[0], "rejected") if flags else "rejected"


def default_branch(text: str) -> tuple[str, str]:
    """Return the branch and the commit in the output of ``ls-remote --symref``, or ``""`` for a missing one."""
    branch = digest = ""
    for line in text.split("\n"):
        target, _, name = line.partition("\t")
        if name == "HEAD" and target.startswith("ref: refs/heads/"):
            branch = target.removeprefix("ref: refs/heads/")
        elif name == "HEAD":
            digest = target
    return branch, digest
