r"""Capabilities that tools need and grants that hosts give, as strings and as data.

The syntax is ``resource:verb[,verb][:scope[,scope]]``. A backslash in a scope makes the next character literal. A scope
of a need may contain globs written by its author. Each single need must be covered by one grant; grants do not combine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from neuroscript.coercion.parameters import STRING, Form, field_problems, instance, require, sequence
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.scopes import SURROGATE, WHOLE, Covers, InvalidScope, Key, covers, key_of, literal

WORD: Final = re.compile(r"[a-z][a-z0-9_]*")
SCOPE: Final = re.compile(r"(?:\\.|\{[^{}]*\}|[^\\,{}])+", re.DOTALL)
"""One scope; braces enclose the name of an argument."""

PLAIN: Final = re.compile(r"(?:\\.|[^\\,{}])+", re.DOTALL)
"""One scope without argument names."""

_set: Final = object.__setattr__

WORDS: Final = sequence(STRING, "strings")
HOW: Final = "write resource:verb[,verb][:scope[,scope]], such as fs:read:data/a.txt"
TEXT: Final = Form(STRING.words, STRING.accepts, hint=HOW)
BROKEN: Final = r"a scope is empty or contains an unescaped comma, brace or backslash; write \, \{ \} \\"


@attrs.frozen
class Capability:
    """A need: what a tool does, and to which part of which resource.

    Two verbs or two scopes mean two single needs. Without a scope the need is for the whole resource.

    >>> str(Capability.parse("FS:read,write:data/a.txt"))
    'fs:read,write:data/a.txt'

    Attributes:
        resource: The name of the resource, such as ``fs``; converted to lower case.
        verbs: Names of operations, such as ``read``; converted to lower case.
        scopes: Parts of the resource, as written in the string.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.
    """

    resource: str
    verbs: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        _settle(self, "capability", wild=False)

    @classmethod
    def parse(cls, text: str) -> Capability:
        """Parse a capability string, or raise a `SpecError` that says what to write."""
        return cls(*parts(text))

    @classmethod
    def literal(cls, resource: str, verb: str, scope: str) -> Capability:
        r"""Return the need for one exact item, with special characters in its name escaped.

        >>> print(Capability.literal("fs", "read", "a*b"))
        fs:read:a\*b
        """
        if not type(resource) is type(verb) is type(scope) is str:
            require("capability", resource=(resource, STRING), verb=(verb, STRING), scope=(scope, STRING))
        return single(resource, verb, (literal(scope),))

    def __str__(self) -> str:
        return _text(self)


NEED: Final = instance(Capability)


@attrs.frozen
class Grant:
    """A permission granted by the host. It is written like a need, with patterns, and covers every need that matches.

    >>> Grant.parse("fs:read:data/**").covers(Capability.parse("fs:read:data/a/b.txt"))
    True

    Attributes:
        resource: The name of the resource, or ``*`` for every resource.
        verbs: Names of operations, or ``*`` for every operation.
        scopes: At least one pattern; ``*`` alone means the whole resource.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.
    """

    resource: str
    verbs: tuple[str, ...]
    scopes: tuple[str, ...]
    _tests: dict[str, tuple[Covers, ...]] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _settle(self, "grant", wild=True)
        kinds = ("fs", "net", "*") if self.resource == "*" else (self.resource,)
        _set(self, "_tests", {kind: tuple(self._compiled(kind)) for kind in kinds})

    def _compiled(self, kind: str) -> Iterator[Covers]:
        for scope in self.scopes:
            try:
                yield covers(kind, key_of(kind, scope))
            except InvalidScope as error:
                if kind == self.resource:
                    raise SpecError(
                        "grant", [f"{quote_untrusted(scope)} is not a valid scope for {kind}: {error}"]
                    ) from None

    @classmethod
    def parse(cls, text: str) -> Grant:
        """Parse a grant string, or raise a `SpecError` that says what to write."""
        return cls(*parts(text))

    @classmethod
    def of(cls, need: Capability) -> Grant:
        """Return the narrowest grant that covers a need. Literals stay literal; no scope means the whole resource.

        Raises:
            SpecError: If the need has a scope that no grant can cover.
        """
        if type(need) is not Capability:
            require("grant", need=(need, NEED))
        try:
            return cls(need.resource, need.verbs, need.scopes or ("*",))
        except SpecError:  # its message quotes the scope, which may be an argument value
            raise SpecError("grant", ["the need has a scope that no grant can cover"]) from None

    def covers(self, need: Capability) -> bool:
        """Return whether this grant alone covers every single need in *need*."""
        if type(need) is not Capability:
            require("grant", need=(need, NEED))
        return first_uncovered([need], [self]) is None

    def admits(self, resource: str, verb: str, key: Key) -> bool:
        """Return whether this grant covers a single need whose scope is already a key."""
        if resource != self.resource and self.resource != "*":
            return False
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        tests = self._tests[resource if resource in self._tests else "*"]
        return any(test(key) for test in tests)

    def __str__(self) -> str:
        return _text(self)


def split_need(need: Capability) -> tuple[Capability, ...]:
    """Return the single needs of a need: one for each combination of verb and scope."""
    if len(need.verbs) == 1 and len(need.scopes) < 2:
        return (need,)
    scopes: list[tuple[str, ...]] = [(scope,) for scope in need.scopes] or [()]
    return tuple(single(need.resource, verb, scope) for scope in scopes for verb in need.verbs)


def single(resource: str, verb: str, scopes: tuple[str, ...]) -> Capability:
    """Return a need from parts that are known to be valid, without validating them again."""
    need = object.__new__(Capability)
    _set(need, "resource", resource)
    _set(need, "verbs", (verb,))
    _set(need, "scopes", scopes)
    return need


def first_uncovered(needs: Iterable[Capability], grants: Sequence[Grant]) -> Capability | None:
    """Return the first single need that none of *grants* covers, or None.

    A need with an invalid scope, such as a path that leaves the sandbox, is never covered.
    """
    for need in needs:
        for each in split_need(need):
            key = scope_key(each)
            if key is None or not any(grant.admits(each.resource, each.verbs[0], key) for grant in grants):
                return each
    return None


def scope_key(need: Capability) -> Key | None:
    """Return the normal form of a single need's scope, or None if the scope is invalid."""
    try:
        return key_of(need.resource, need.scopes[0]) if need.scopes else WHOLE
    except InvalidScope:
        return None


def normal(need: Capability) -> Capability:
    """Return a single need as approvers see it, with a path in the exact spelling that the sandbox opens.

    >>> print(normal(Capability.parse("fs:read:data/./x")))
    fs:read:data/x
    """
    key = scope_key(need)
    if need.resource != "fs" or not need.scopes or key is None or SURROGATE.search(key):
        return need
    return Capability.literal("fs", need.verbs[0], key.removesuffix("/") or ".")


def parts(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Split a capability string into resource, verbs and scopes; scopes keep their escapes and braces.

    Raises:
        SpecError: If *text* does not have the form of a capability. The parts themselves are not validated.
    """
    require("capability", text=(text, TEXT))
    resource, *rest = text.split(":", 2)
    if not rest or not all(WORD.fullmatch(word) or word == "*" for word in (resource.lower(), *_words(rest[0]))):
        raise SpecError("capability", [f"{quote_untrusted(text)} is not a capability; {HOW}"])
    return resource.lower(), _words(rest[0]), scopes_of(rest[1]) if len(rest) == 2 else ()


def scopes_of(text: str) -> tuple[str, ...]:
    """Split a comma-separated string of scopes, or raise a `SpecError`."""
    scopes = tuple(SCOPE.findall(text))
    if not scopes or ",".join(scopes) != text:
        raise SpecError("capability", [f"{quote_untrusted(text)}: {BROKEN}"])
    return scopes


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.lower().split(",")))


def _text(thing: Capability | Grant) -> str:
    words = f"{thing.resource}:{','.join(thing.verbs)}"
    return f"{words}:{','.join(thing.scopes)}" if thing.scopes else words


def _settle(thing: Capability | Grant, subject: str, *, wild: bool) -> None:
    faults = list(_faults(thing, subject, wild))
    if faults:
        raise SpecError(subject, faults)


def _faults(thing: Capability | Grant, subject: str, wild: bool) -> Iterator[str]:
    """Normalise the fields, and yield a message for each one that is invalid."""
    faults = [*field_problems(thing, resource=STRING, verbs=WORDS, scopes=WORDS)]
    if faults:
        yield from (f"{fault}; {HOW}" for fault in faults)
        return
    _set(thing, "resource", thing.resource.lower())
    _set(thing, "verbs", tuple(dict.fromkeys(verb.lower() for verb in thing.verbs)))
    _set(thing, "scopes", tuple(thing.scopes))
    for word in (thing.resource, *thing.verbs):
        if WORD.fullmatch(word) is None and not (wild and word == "*"):
            yield f"{quote_untrusted(word)} is not a valid resource or verb; {HOW}"
    if not thing.verbs:
        yield f"a {subject} needs at least one verb; {HOW}"
    if wild and not thing.scopes:
        yield f"a grant needs a scope; write {quote_untrusted(_text(thing))}:* for the whole resource"
    yield from (f"{quote_untrusted(scope)}: {BROKEN}" for scope in thing.scopes if PLAIN.fullmatch(scope) is None)
