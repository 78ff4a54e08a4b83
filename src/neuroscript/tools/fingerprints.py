"""Digests for comparing tool definitions, policies and call arguments.

The text that is hashed is ASCII and identical on every Python version: Python literals, with maps sorted by key, so
that ``1``, ``1.0``, ``True`` and ``"1"`` have different digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.scalars import AnyContent, Handle
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.tools.serialization import policy_to_data, spec_to_data
from neuroscript.tools.tool import ToolImplementation

KEY_BYTES: Final = 32
DIGEST_BYTES: Final = 16

PLAIN: Final = frozenset({int, float, str, bool, bytes, type(None)})
"""Types whose ``ascii()`` form is canonical; a tuple of them is written in one step."""


def fingerprint(tool: ToolImplementation) -> str:
    """Return the SHA-256 of a tool's complete definition, its spec and policy, in hexadecimal."""
    return digest_of({"spec": spec_to_data(tool.spec), "policy": policy_to_data(tool.policy)})


def digest_of(definition: Mapping[str, Any]) -> str:
    """Return the fingerprint of a tool from the plain data under ``spec`` and ``policy``."""
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def policy_digest(policy: ExecutionPolicy) -> str:
    """Return the SHA-256 of what a policy permits, in hexadecimal. The approver is not included."""
    parts: list[Any] = []
    each: ExecutionPolicy | None = policy
    while each is not None:
        limits = None if each.limits is None else attrs.asdict(each.limits)
        grants = sorted(map(str, each.grants))
        part = [sorted(each.allow), sorted(each.deny), grants, each.trusted, sorted(each.preapproved), limits]
        if each.flow or each.labels or each.trust_textless or each.otherwise != "refuse":
            labels = [attrs.astuple(label) for label in each.labels]
            part += [each.otherwise, [str(rule) for rule in each.flow], labels, each.trust_textless]
        if each.isolate is not None:
            part.append(attrs.asdict(each.isolate, filter=lambda field, _: field.init))
        parts.append(part)
        each = each.within
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def call_digest(tool: str, values: Sequence[Any]) -> str:
    """Return the SHA-256 of one call, computed from the tool's fingerprint and the exact argument values."""
    return hashlib.sha256(f"{tool}\n{canonical_text(tuple(values))}".encode()).hexdigest()


class ArgumentDigests:
    """Keyed digests of arguments, so that a short value cannot be guessed from its digest.

    Args:
        key: A secret of `KEY_BYTES` bytes. Records made with the same key can be compared.
    """

    def __init__(self, key: bytes) -> None:
        self.start = hashlib.blake2b(key=key[:64], digest_size=DIGEST_BYTES)
        """The initial state; copy it, never update it."""

    def of(self, values: tuple[Any, ...]) -> bytes:
        """Return the digest of exact values."""
        digest = self.start.copy()
        digest.update(canonical_text(values).encode("ascii"))
        return digest.digest()


def canonical_text(value: Any) -> str:
    """Return the canonical text of an exact value.

    >>> canonical_text(({"b": 1, "a": "é"}, 1.0, True))
    "({'a': '\\\\xe9', 'b': 1}, 1.0, True)"
    """
    if isinstance(value, tuple) and PLAIN.issuperset(map(type, value)):
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
        case AnyContent():
            return f"Content({canonical_text(value.data)})"
        case _:
            return ascii(value)
