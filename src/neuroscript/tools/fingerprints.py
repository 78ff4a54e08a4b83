"""Digests that tell whether two things are the same: definitions of tools, what a host permits, arguments of a call.

The text under a digest is ASCII and the same on every Python: values as Python writes them, maps sorted by their keys,
so that ``1``, ``1.0``, ``True`` and ``"1"`` differ.

Source: contract section 5; peers.md part 2, rows 2 and 5.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.scalars import Handle
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.tools.serialization import policy_to_data, spec_to_data
from neuroscript.tools.tool import ToolImplementation

KEY_BYTES: Final = 32
DIGEST_BYTES: Final = 16

PLAIN: Final = frozenset({int, float, str, bool, bytes, type(None)})
"""Types whose values Python writes in ASCII as they stand under a digest; a tuple of them is written as a whole."""


def fingerprint(tool: ToolImplementation) -> str:
    """Return the SHA-256 of the whole definition of a tool, its spec and its policy, as hexadecimal digits."""
    return digest_of({"spec": spec_to_data(tool.spec), "policy": policy_to_data(tool.policy)})


def digest_of(definition: Mapping[str, Any]) -> str:
    """Return the fingerprint of the tool whose spec and policy are these plain data, under ``spec`` and ``policy``."""
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def policy_digest(policy: ExecutionPolicy) -> str:
    """Return the SHA-256 of what a host permits, as hexadecimal digits; who is asked for approvals is not in it."""
    parts: list[Any] = []
    each: ExecutionPolicy | None = policy
    while each is not None:
        limits = None if each.limits is None else attrs.asdict(each.limits)
        grants = sorted(map(str, each.grants))
        parts.append([sorted(each.allow), sorted(each.deny), grants, each.trusted, sorted(each.preapproved), limits])
        each = each.within
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def call_digest(tool: str, values: Sequence[Any]) -> str:
    """Return the SHA-256 that stands for one call: the fingerprint of its tool, and the exact values it would get."""
    return hashlib.sha256(f"{tool}\n{canonical_text(tuple(values))}".encode()).hexdigest()


class ArgumentDigests:
    """Keyed digests of arguments, so that nobody can guess a short value from its digest.

    Args:
        key: `KEY_BYTES` bytes, to be kept as a secret; records made with one key can be compared.
    """

    def __init__(self, key: bytes) -> None:
        self.start = hashlib.blake2b(key=key[:64], digest_size=DIGEST_BYTES)
        """The state before the text; to be copied, never updated."""

    def of(self, values: tuple[Any, ...]) -> bytes:
        """Return the digest of exact values."""
        digest = self.start.copy()
        digest.update(canonical_text(values).encode("ascii"))
        return digest.digest()


def canonical_text(value: Any) -> str:
    """Return the one text of an exact value.

    >>> canonical_text(({"b": 1, "a": "é"}, 1.0, True))
    "({'a': '\\\\xe9', 'b': 1}, 1.0, True)"
    """
    if type(value) is tuple and PLAIN.issuperset(map(type, value)):
        return ascii(value)
    match value:
        case dict():
            pairs = sorted((canonical_text(key), canonical_text(each)) for key, each in value.items())
            return f"{{{', '.join(f'{key}: {each}' for key, each in pairs)}}}"
        case list():
            return f"[{', '.join(map(canonical_text, value))}]"
        case tuple():
            return f"({', '.join(map(canonical_text, value))})"
        case Handle():
            return f"Handle({value.id!a})"
        case _:
            return ascii(value)
