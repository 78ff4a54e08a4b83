"""Policy refusals: a short message for the caller, and the grants to add for the host."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import CallError, PolicyError
from neuroscript.io.text import MAX_NAME_CHARS, quote_untrusted
from neuroscript.policy.capabilities import Capability, Grant, first_uncovered, normal, scope_key, split_need

LOGGER: Final = "refusal"
"""The child of the host's logger that receives refusals."""

ESCAPED: Final = re.compile(r"\\(.)")
CREDENTIALS: Final = re.compile(r"://[^/?#]*@|[?#]")
"""Parts of a URL that must not be shown: user info, query and fragment."""


class Refusal(str):
    """A refusal as it appears in the log.

    Attributes:
        error: The original error, for the host's log handlers.
    """

    error: CallError

    @classmethod
    def of(cls, error: CallError, redactor: Any = None) -> Refusal:
        """Return the log message of a refusal: its remedy, or only its code, because its message may quote values.

        Args:
            redactor: Replaces secrets; None if there are none.
        """
        text = error.remedy or f"{error.tool}: refused ({error.code})"
        if redactor is not None and redactor.text(text) != text:
            text = redactor.text(without_advice(text, getattr(error, "grants", ())))
        refusal = cls(text)
        refusal.error = error
        return refusal


def without_advice(remedy: str, grants: Sequence[str]) -> str:
    """Return a remedy without its suggested grants."""
    return remedy.removesuffix(_advice(grants))


def _advice(grants: Sequence[str]) -> str:
    return f"; grant it with grants={(*grants,)!r}"


def check_failed_error(tool: str, check: str, error: BaseException) -> PolicyError:
    """Return the refusal of a call because a check failed."""
    text = f"denied because a check failed ({check}, {type_name(error)})"
    failed = PolicyError(text, tool=tool, code="policy.check_failed", rule=check)
    failed.__cause__ = error
    return failed


@attrs.frozen
class MissingNeeds:
    """The needs of a call that are not met.

    Attributes:
        grants: The needs that a layer of the host's policy does not cover.
        declared: The needs that a tool in the chain of calls does not declare.
        tool: The name of that tool.
    """

    grants: tuple[Capability, ...]
    declared: tuple[Capability, ...] = ()
    tool: str = ""

    def __bool__(self) -> bool:
        return bool(self.grants or self.declared)


def find_missing_needs(
    needs: Iterable[Capability], layers: Sequence[Sequence[Grant]], above: Iterable[tuple[str, Sequence[Grant]]] = ()
) -> MissingNeeds:
    """Return the needs of a call that are not met.

    Args:
        layers: The grants of each layer of the host's policy.
        above: The tools in the chain of calls, innermost first, each with the needs that it declared for its call.
    """
    asked = [each for need in needs for each in split_need(need)]
    by_host = tuple(need for need in asked if any(first_uncovered((need,), grants) is not None for grants in layers))
    for tool, held in above:
        undeclared = tuple(need for need in asked if first_uncovered((need,), held) is not None)
        if undeclared:
            return MissingNeeds(by_host, undeclared, tool)
    return MissingNeeds(by_host)


def refusal(tool: str, lacks: MissingNeeds, hidden: Collection[Capability] = (), redactor: Any = None) -> PolicyError:
    """Return the refusal of a call that lacks a grant, or a declaration by a tool above it.

    The message names the first missing need without its scope, because the scope may be an argument value. The
    ``remedy``, which only the host sees, names every missing need with its scope, and the narrowest grants for them.

    Args:
        hidden: Needs whose scopes must not be shown, because secret arguments fill them.
        redactor: Replaces secrets; None if there are none. A scope that contains a secret is not shown either.
    """
    hidden = {*hidden, *(each for each in (*lacks.grants, *lacks.declared) if _holds_secret(each, redactor))}
    first = (*lacks.grants, *lacks.declared)[0]
    text = f"{first.resource}:{first.verbs[0]}" if first in hidden else need_text(first)
    if scope_key(first) is None:
        said = f"needs {text} for a scope that no grant can cover, such as a path that leaves the sandbox"
        return PolicyError(said, tool=tool, code="policy.capability", need=text, rule="grants", retry="model")
    error = PolicyError(f"needs {text}", tool=tool, code="policy.capability", need=text, rule="grants")
    wanted = lacks.declared or lacks.grants
    found = dict.fromkeys(_shown(need, need in hidden) for need in wanted if scope_key(need) is not None)
    error.needs = tuple(each.text for each in found)
    what = f"{tool}: needs {', '.join(each.plain for each in found)}"
    if lacks.declared:
        who = "this call does" if lacks.tool == tool else f"its caller {lacks.tool} does"
        error.remedy = f"{what}, which {who} not declare as a capability"
    elif all(each.grant for each in found):
        error.grants = tuple(each.grant for each in found)
        error.remedy = f"{what}{_advice(error.grants)}"
    else:
        error.remedy = what
    return error


def _holds_secret(need: Capability, redactor: Any) -> bool:
    """Return whether the full scope of a need contains a secret; a truncated scope could hide part of one."""
    if redactor is None or not need.scopes:
        return False
    scopes = {scope for each in (need, normal(need)) for scope in each.scopes}
    texts = scopes | {"".join(ESCAPED.split(scope)) for scope in scopes}
    return any(redactor.text(text) != text for text in texts)


def need_text(need: Capability) -> str:
    """Return a single need as errors show it: the resource and the verb.

    The scope may be an argument value, so only a path is shown, and only if it stays inside the sandbox.
    """
    text = f"{need.resource}:{need.verbs[0]}"
    if need.resource == "fs" and need.scopes and scope_key(need) is not None:
        return f"{text}:{quote_untrusted(need.scopes[0])}"
    return text


def filled_text(need: Capability, *, is_hidden: bool = False) -> str:
    """Return a single need with its scope, for the host: escaped, truncated, without secrets and credentials."""
    return _shown(need, is_hidden).plain


class ShownNeed(NamedTuple):
    """A single need as shown to the host.

    Attributes:
        text: The need in capability syntax.
        plain: The need without escapes, for people.
        grant: The grant that covers exactly this need, or ``""`` if its scope is not shown in full.
    """

    text: str
    plain: str
    grant: str


def _shown(need: Capability, is_hidden: bool) -> ShownNeed:
    head = f"{need.resource}:{need.verbs[0]}"
    if not need.scopes:
        return ShownNeed(head, head, f"{head}:*")
    if is_hidden:
        return ShownNeed(head, head, "")
    scope = normal(need).scopes[0]
    plain = "".join(ESCAPED.split(scope))
    if "://" in plain and CREDENTIALS.search(plain):
        url = f"{head}:{quote_untrusted(_without_credentials(plain))}"
        return ShownNeed(url, url, "")
    if len(scope) > MAX_NAME_CHARS or not scope.isprintable():
        cut = f"{head}:{quote_untrusted(plain)}"
        return ShownNeed(cut, cut, "")
    return ShownNeed(f"{head}:{scope}", f"{head}:{plain}", f"{head}:{scope}")


def _without_credentials(url: str) -> str:
    scheme, _, rest = url.partition("://")
    path = re.split("[?#]", rest, maxsplit=1)[0]
    host, slash, tail = path.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{tail}"
