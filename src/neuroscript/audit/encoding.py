"""Encoding of records as compact JSON; parts that many records share are encoded once and cached."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from json.encoder import encode_basestring_ascii as quoted
from math import isfinite
from typing import Any, Final

from neuroscript.coercion.context import name_of, type_name
from neuroscript.errors import AuditError
from neuroscript.runtime.records import CallRecord, ToolFacts
from neuroscript.spec.binding import Repair

MAX_CACHED_FORMS: Final = 4096
"""Maximum number of cached tools and of cached combinations of types; the cache is then cleared."""


def _plain(value: object) -> Any:
    match value:
        case Mapping():
            return dict(value)
        case Decimal():
            return str(value)
        case _:
            return type_name(value)


_written: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain).encode


class Forms:
    """A thread-safe cache of the encoded parts of tools and types."""

    def __init__(self) -> None:
        self._facts: dict[int, tuple[ToolFacts, str]] = {}
        self._types: dict[tuple[type, ...], str] = {}

    def text(self, record: CallRecord) -> str:
        """Return the members of a record as JSON, without braces. For a call that begins, only the known members."""
        (kind, about, run, session, call, parent, depth, policy, time) = record[:9]
        (needs, types, sizes, digest, repairs, code, rule, spent, seconds) = record[9:]
        text = (
            f'"kind":"{kind}","time":{number_text(time)},"run":{quoted(run)},"session":{quoted(session)},"call":{call:d},'
            f'"parent":{parent:d},"depth":{depth:d},{self.facts_text(about)},"policy":{quoted(policy)},'
            f'"rule":{quoted(rule)},"needs":{list_text(needs)},"types":{self.types_text(types)},'
            f'"sizes":{sizes_text(sizes)},"digest":"{digest.hex()}","repairs":{repairs_text(repairs)}'
        )
        if record.labels:
            text = f'{text},"labels":{list_text(record.labels)}'
        if kind == "intent":
            return text
        return f'{text},"code":{quoted(code)},"spent":{spent_text(spent)},"seconds":{number_text(seconds)}'

    def facts_text(self, about: ToolFacts) -> str:
        """Return the members that all records of a tool share."""
        cached = self._facts.get(id(about))
        if cached is not None and cached[0] is about:
            return cached[1]
        text = (
            f'"tool":{quoted(about.tool)},"fingerprint":{quoted(about.fingerprint)},'
            f'"distribution":{quoted(about.distribution)},"version":{quoted(about.version)},'
            f'"effects":{list_text(about.effects)}'
        )
        if about.injected:
            text = f'{text},"injected":{list_text(about.injected)}'
        if len(self._facts) >= MAX_CACHED_FORMS:
            self._facts.clear()
        self._facts[id(about)] = (about, text)
        return text

    def types_text(self, types: tuple[type, ...]) -> str:
        """Return the names of types as a JSON array."""
        text = self._types.get(types)
        if text is None:
            text = list_text(tuple(map(name_of, types)))
            if len(self._types) >= MAX_CACHED_FORMS:
                self._types.clear()
            self._types[types] = text
        return text


def number_text(value: float) -> str:
    """Return a number of seconds as JSON.

    Raises:
        AuditError: If it is not a finite number, because the clock is wrong.
    """
    if type(value) not in (float, int) or not isfinite(value):
        raise AuditError("a time in a record is not a finite number of seconds")
    return repr(value)


def list_text(strings: tuple[str, ...]) -> str:
    """Return strings as a JSON array."""
    return f"[{','.join(map(quoted, strings))}]" if strings else "[]"


def sizes_text(sizes: tuple[int, ...]) -> str:
    """Return integers as a JSON array.

    >>> sizes_text((5, 0))
    '[5,0]'
    """
    return f"[{','.join(map(str, sizes))}]"


def repairs_text(repairs: tuple[Repair, ...]) -> str:
    """Return conversions as a JSON array of ``{"where", "got", "became"}``."""
    if not repairs:
        return "[]"
    return _written([{"where": each.where, "got": each.got, "became": each.became} for each in repairs])


def spent_text(spent: Mapping[str, Any]) -> str:
    """Return usage of limits as a JSON object; decimals become strings.

    >>> spent_text({"calls": 1, "money": {"EUR": Decimal("0.10")}})
    '{"calls":1,"money":{"EUR":"0.10"}}'
    """
    return _written(dict(spent)) if spent else "{}"
