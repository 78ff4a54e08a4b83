"""Tool definitions, each a spec and a policy, and the changes between two of them.

Changes are judged from two sides. For callers: does every call work as before, and is every result one that was
possible before? For the host: does the tool need nothing new, and do all restrictions remain? Descriptions for
models never break a call, but changes in them are always reported, because a description can be changed to mislead
models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.types import NONE_TYPES, ArgType
from neuroscript.config.change import NEW_DESCRIPTION, Change, breaking_change, change_of, compatible
from neuroscript.config.result_diff import is_narrower, result_of
from neuroscript.config.spec_diff import argument_changes
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.capabilities import parts
from neuroscript.policy.labels import sinks_of, sources_of
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import MAYBE, ToolSpec
from neuroscript.tools.fingerprints import digest_of
from neuroscript.tools.serialization import policy_from_data, policy_to_data, spec_from_data, spec_to_data

DESCRIPTION_FIELDS: Final = (
    *("description", "when_to_use", "return_help", "category", "error_conditions", "definition"),
)
"""Fields of a spec that only people and models read."""

PROMISE_EFFECTS: Final = frozenset({"pure", "idempotent"})
"""Effects that are promises, so losing one is breaking."""


@attrs.frozen
class Definition:
    """The definition of a tool.

    Attributes:
        spec: What it accepts and returns.
        policy: What it needs from the host.
    """

    spec: ToolSpec
    policy: ToolPolicy

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Definition:
        """Return the definition for plain data under ``spec`` and ``policy``.

        Raises:
            SpecError: If either is invalid. The error lists every problem.
        """
        return cls(spec_from_data(data["spec"]), policy_from_data(data["policy"]))

    @property
    def data(self) -> dict[str, Any]:
        """The definition as plain data that JSON can represent."""
        return {"spec": spec_to_data(self.spec), "policy": policy_to_data(self.policy)}


def changes(old: Definition, new: Definition) -> tuple[Change, ...]:
    """Return the changes between two definitions; empty if and only if their fingerprints are equal.

    >>> old = Definition(ToolSpec("ping", "net", return_type="int"), ToolPolicy())
    >>> new = Definition(ToolSpec("ping", "net", return_type="string"), ToolPolicy(effects=("net",)))
    >>> for change in changes(old, new):
    ...     print(change.kind, change)
    breaking return_type: changed from int to string
    breaking effects: now has the effect net
    """
    if digest_of(old.data) == digest_of(new.data):
        return ()
    found = (*_spec_changes(old.spec, new.spec), *_policy_changes(old.policy, new.policy))
    if found:
        return found
    text = "is written differently" if old == new else "differs in an unknown way"
    return (change_of(old == new, "", text),)


def _spec_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    if old.full_name != new.full_name:
        yield compatible("fullname", f"was renamed to {quote_untrusted(new.full_name)}")
    yield from argument_changes(old, new)
    yield from _result_changes(old, new)
    for name in DESCRIPTION_FIELDS:
        if getattr(old, name) != getattr(new, name):
            yield compatible(name, NEW_DESCRIPTION)
    if old.examples != new.examples:
        yield compatible("examples", NEW_DESCRIPTION)
    if old.schema != new.schema:
        yield change_of(not new.schema, "schema", _SCHEMA[bool(old.schema), bool(new.schema)])
    if old.deprecated != new.deprecated:
        yield compatible("deprecated", _DEPRECATED[bool(old.deprecated), bool(new.deprecated)])
    for name in ("resource", "prompt"):
        if getattr(old, name) != getattr(new, name):
            is_new = getattr(old, name) is None
            yield change_of(is_new, name, f"is now served as a {name}" if is_new else f"the {name} changed")


_SCHEMA: Final = {
    (False, True): "now has additional constraints on the arguments",
    (True, False): "no longer has additional constraints on the arguments",
    (True, True): "has different additional constraints on the arguments",
}

_DEPRECATED: Final = {
    (False, True): "is now deprecated",
    (True, False): "is no longer deprecated",
    (True, True): NEW_DESCRIPTION,
}


_STREAMS: Final[Mapping[bool | str, str]] = {
    True: "now streams its result",
    False: "no longer streams its result",
    MAYBE: "may now stream its result",
}


def _result_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    before, after = (attrs.evolve(result_of(spec), nullable=False) for spec in (old, new))
    if old.return_type is not new.return_type:
        goes_on = is_narrower(after, before) and (new.return_type not in NONE_TYPES or old.return_type in NONE_TYPES)
        yield change_of(goes_on, "return_type", f"changed from {old.return_type} to {new.return_type}")
    elif before != after:
        goes_on = is_narrower(after, before)
        text = "describes fewer results, or the same" if goes_on else "describes other results"
        yield change_of(goes_on, "returns", text)
    if old.return_nullable != new.return_nullable:
        text = "may now be None" if new.return_nullable else "can no longer be None"
        yield change_of(_may_be_none(old) or not new.return_nullable, "return_nullable", text)
    if old.stream != new.stream:
        yield breaking_change("stream", _STREAMS[new.stream])


def _may_be_none(spec: ToolSpec) -> bool:
    is_any = spec.return_type is ArgType.ANY and (spec.returns is None or not spec.returns.any_of)
    return spec.return_nullable or is_any or spec.return_type in NONE_TYPES


def _policy_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    for name, gained, lost in _GUARDS:
        if getattr(old, name) != getattr(new, name):
            yield breaking_change(name, gained if getattr(new, name) else lost)
    yield from _need_changes(old, new)
    yield from _effect_changes(old, new)
    yield from _label_changes(old, new)
    if old.timeout != new.timeout:
        looser = new.timeout is None or (old.timeout is not None and new.timeout > old.timeout)
        yield change_of(looser, "timeout", "the timeout is longer" if looser else "the timeout is shorter")
    if old.raw_files != new.raw_files:
        text = "now opens granted files by path" if new.raw_files else "no longer opens files by path"
        yield change_of(old.raw_files, "raw_files", text)
    if old.blocking != new.blocking:
        yield compatible("blocking", "acall runs it in a different way")


_GUARDS: Final = (
    ("requires_trust", "now requires a trusted host", "no longer requires a trusted host"),
    ("requires_approval", "now requires approval of each call", "no longer requires approval"),
)
"""Both directions are breaking: calls are refused that used to run, or calls run that used to be refused."""


def _need_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    before, after = ({*_singles(policy)} for policy in (old, new))
    found: list[Change] = []
    for need in sorted(after - before):
        if need[:2] not in {each[:2] for each in before if not each[2]}:
            found.append(breaking_change("capabilities", f"now also needs {_format_need(need)}"))
        elif (*need[:2], "") not in after:
            found.append(compatible("capabilities", f"now needs only {_format_need(need)}"))
    for need in sorted(before - after):
        rest = {each[2] for each in after if each[:2] == need[:2]}
        if "" not in rest and (need[2] or not rest):
            found.append(compatible("capabilities", f"no longer needs {_format_need(need)}"))
    if not found and old.capabilities != new.capabilities:
        found.append(compatible("capabilities", "the capabilities are written differently"))
    yield from found


def _singles(policy: ToolPolicy) -> Iterator[tuple[str, str, str]]:
    """Yield each need of one verb and one scope, as written; ``""`` is the whole resource."""
    for text in policy.capabilities:
        resource, verbs, scopes = parts(text)
        for verb in verbs:
            for scope in scopes or ("",):
                yield resource, verb, scope


def _format_need(need: tuple[str, str, str]) -> str:
    return quote_untrusted(":".join(filter(None, need)))


def _effect_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    before, after = {*old.effects}, {*new.effects}
    for word in sorted(after ^ before):
        is_promise, is_new = word in PROMISE_EFFECTS, word in after
        yield change_of(is_promise is is_new, "effects", _EFFECT[is_promise, is_new].format(word))
    if before == after and old.effects != new.effects:
        yield compatible("effects", "the order of effects changed")


_EFFECT: Final = {
    (True, True): "is now {}",
    (True, False): "is no longer {}",
    (False, True): "now has the effect {}",
    (False, False): "no longer has the effect {}",
}
"""Keyed by whether the effect is a promise, and whether it is now present."""


def _label_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    """Yield the changes of declared labels, compared with what the effects imply where nothing is declared."""
    for name, labels_of in _LABELS.items():
        if getattr(old, name) == getattr(new, name):
            continue
        before, after = {*labels_of(old)}, {*labels_of(new)}
        for label in sorted(after ^ before):
            yield breaking_change(name, _LABEL[name][label in after].format(label))
        if before == after:
            yield compatible(name, "the same labels are written differently")


_LABELS: Final[Mapping[str, Callable[[ToolPolicy], Iterable[str]]]] = {
    "sources": sources_of,
    "sinks": sinks_of,
    "declassifies": lambda policy: policy.declassifies,
}

_LABEL: Final = {
    "sources": ("results no longer carry {}", "results now carry {}"),
    "sinks": ("no longer sends arguments to {}", "now sends arguments to {}"),
    "declassifies": ("no longer declassifies {}", "now declassifies {}"),
}
"""Both directions are breaking: flow rules refuse calls that used to run, or no longer see what they used to refuse."""
