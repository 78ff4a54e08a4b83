"""The definition of a tool, its spec and its policy, and what changed between two of them.

Two sides are looked at. Whoever calls the tool: may every call be made as before, and is every result one that could
come before? And the host: does the tool need no more than before, and is nothing taken away that held it back? What
models read about a tool never breaks a call, but is always told: a text can be changed to mislead them.

Source: contract sections 1 and 5; issue "Plugins", lock file; reliability.md part 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.types import NOTHING, ArgType, gives_no_more
from neuroscript.config.spec_diff import TOLD, Change, argument_changes, breaking, compatible, judged
from neuroscript.io.text import shown
from neuroscript.policy.capabilities import parts
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import MAYBE, ToolSpec
from neuroscript.tools.fingerprints import digest_of
from neuroscript.tools.serialization import policy_from_data, policy_to_data, spec_from_data, spec_to_data

READ: Final = ("description", "when_to_use", "return_help", "category", "error_conditions")
"""Fields of a spec that people and models read, and nothing else."""

PROMISES: Final = frozenset({"pure", "idempotent"})
"""Effects that are a promise: it is their loss that breaks something."""


@attrs.frozen
class Definition:
    """What a tool says of itself.

    Attributes:
        spec: What it takes and returns.
        policy: What it needs.
    """

    spec: ToolSpec
    policy: ToolPolicy

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Definition:
        """Return what plain data under ``spec`` and ``policy`` describe.

        Raises:
            SpecError: With everything that is wrong with one of the two.
        """
        return cls(spec_from_data(data["spec"]), policy_from_data(data["policy"]))

    @property
    def data(self) -> dict[str, Any]:
        """It as plain data that JSON can hold."""
        return {"spec": spec_to_data(self.spec), "policy": policy_to_data(self.policy)}


def changes(old: Definition, new: Definition) -> tuple[Change, ...]:
    """Return what changed from one definition to another; none where they have one fingerprint, and else some.

    >>> old = Definition(ToolSpec("ping", "net", return_type="int"), ToolPolicy())
    >>> new = Definition(ToolSpec("ping", "net", return_type="string"), ToolPolicy(effects=("net",)))
    >>> for change in changes(old, new):
    ...     print(change.kind, change)
    breaking return_type: is string, and was int
    breaking effects: has the effect net too
    """
    if digest_of(old.data) == digest_of(new.data):
        return ()
    found = (*_spec_changes(old.spec, new.spec), *_policy_changes(old.policy, new.policy))
    if found:
        return found
    text = "is written in another way" if old == new else "differs in a way that is not known here"
    return (judged(old == new, "", text),)


def _spec_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    if old.full_name != new.full_name:
        yield compatible("fullname", f"is called {shown(new.full_name)} now")
    yield from argument_changes(old, new)
    yield from _result_changes(old, new)
    for name in READ:
        if getattr(old, name) != getattr(new, name):
            yield compatible(name, TOLD)
    if old.examples != new.examples:
        yield compatible("examples", TOLD)
    if old.schema != new.schema:
        yield judged(not new.schema, "schema", _SCHEMA[bool(old.schema), bool(new.schema)])
    if old.deprecated != new.deprecated:
        yield compatible("deprecated", _DEPRECATED[bool(old.deprecated), bool(new.deprecated)])


_SCHEMA: Final = {
    (False, True): "asks more of the arguments now",
    (True, False): "asks no more than the arguments say",
    (True, True): "asks something else of the arguments",
}

_DEPRECATED: Final = {
    (False, True): "is deprecated now",
    (True, False): "is not deprecated any more",
    (True, True): TOLD,
}


_STREAMS: Final[Mapping[bool | str, str]] = {
    True: "gives its result in parts now",
    False: "gives its result at once now",
    MAYBE: "gives its result in parts or at once now",
}


def _result_changes(old: ToolSpec, new: ToolSpec) -> Iterator[Change]:
    if old.return_type is not new.return_type:
        goes_on = gives_no_more(new.return_type, old.return_type)
        yield judged(goes_on, "return_type", f"is {new.return_type}, and was {old.return_type}")
    if old.return_nullable != new.return_nullable:
        text = "may be None now" if new.return_nullable else "is never None any more"
        yield judged(_may_be_none(old) or not new.return_nullable, "return_nullable", text)
    if old.stream != new.stream:
        yield breaking("stream", _STREAMS[new.stream])


def _may_be_none(spec: ToolSpec) -> bool:
    return spec.return_nullable or spec.return_type in NOTHING | {ArgType.ANY}


def _policy_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    for name, gained, lost in _GUARDS:
        if getattr(old, name) != getattr(new, name):
            yield breaking(name, gained if getattr(new, name) else lost)
    yield from _need_changes(old, new)
    yield from _effect_changes(old, new)
    if old.timeout != new.timeout:
        looser = new.timeout is None or (old.timeout is not None and new.timeout > old.timeout)
        yield judged(looser, "timeout", "calls are given more time" if looser else "calls are given less time")
    if old.blocking != new.blocking:
        yield compatible("blocking", "what acall does while it runs is another")


_GUARDS: Final = (
    ("requires_trust", "runs for hosts alone that trust it", "runs for hosts that do not trust it now"),
    ("requires_approval", "each call has to be approved now", "no call has to be approved any more"),
)
"""Both ways break something: calls are refused that ran, or calls run that were held back."""


def _need_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    before, after = ({*_singles(policy)} for policy in (old, new))
    found: list[Change] = []
    for need in sorted(after - before):
        if need[:2] not in {each[:2] for each in before if not each[2]}:
            found.append(breaking("capabilities", f"needs {_written(need)} too"))
        elif (*need[:2], "") not in after:
            found.append(compatible("capabilities", f"needs no more than {_written(need)} of what it needed"))
    for need in sorted(before - after):
        rest = {each[2] for each in after if each[:2] == need[:2]}
        if "" not in rest and (need[2] or not rest):
            found.append(compatible("capabilities", f"does not need {_written(need)} any more"))
    if not found and old.capabilities != new.capabilities:
        found.append(compatible("capabilities", "the needs are written in another way"))
    yield from found


def _singles(policy: ToolPolicy) -> Iterator[tuple[str, str, str]]:
    """Yield each need of one verb and one scope, as it is written; ``""`` is the whole resource."""
    for text in policy.capabilities:
        resource, verbs, scopes = parts(text)
        for verb in verbs:
            for scope in scopes or ("",):
                yield resource, verb, scope


def _written(need: tuple[str, str, str]) -> str:
    return shown(":".join(filter(None, need)))


def _effect_changes(old: ToolPolicy, new: ToolPolicy) -> Iterator[Change]:
    before, after = {*old.effects}, {*new.effects}
    for word in sorted(after ^ before):
        is_promise, is_new = word in PROMISES, word in after
        yield judged(is_promise is is_new, "effects", _EFFECT[is_promise, is_new].format(word))
    if before == after and old.effects != new.effects:
        yield compatible("effects", "the effects stand in another order")


_EFFECT: Final = {
    (True, True): "is {} now",
    (True, False): "is not {} any more",
    (False, True): "has the effect {} too",
    (False, False): "has the effect {} no more",
}
"""By whether it is a promise, and whether it is there now."""
