r"""What a tool needs and what a host grants, as text and as data.

``resource:verb[,verb][:scope[,scope]]``: a backslash in a scope makes the character behind it literal, and a scope of a
need may hold globs that its author wrote. One grant must cover one need alone.

Source: contract section 5; upstream ``capability/builder.go`` and ``matcher.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from neuroscript.coercion.parameters import STRING, Form, field_problems, instance, require, sequence
from neuroscript.errors import SpecError
from neuroscript.io.text import shown
from neuroscript.policy.scopes import SURROGATE, WHOLE, Covers, Key, Unfit, covers, key_of, literal

WORD: Final = re.compile(r"[a-z][a-z0-9_]*")
SCOPE: Final = re.compile(r"(?:\\.|\{[^{}]*\}|[^\\,{}])+", re.DOTALL)
"""One scope; what stands in braces is the name of an argument."""

PLAIN: Final = re.compile(r"(?:\\.|[^\\,{}])+", re.DOTALL)
"""One scope without arguments."""

_set: Final = object.__setattr__

WORDS: Final = sequence(STRING, "strings")
HOW: Final = "write resource:verb[,verb][:scope[,scope]], such as fs:read:data/a.txt"
TEXT: Final = Form(STRING.words, STRING.accepts, hint=HOW)
BROKEN: Final = r"a scope is empty, or has a comma, a brace or a backslash by itself; write \, \{ \} \\"


@attrs.frozen
class Capability:
    """A need: what a tool does to the world, and to which part of it.

    Two verbs or two scopes are as many needs, and no scope is the whole resource.

    >>> str(Capability.parse("FS:read,write:data/a.txt"))
    'fs:read,write:data/a.txt'

    Attributes:
        resource: One word, such as ``fs``; another case is lowered.
        verbs: Words, such as ``read``; another case is lowered.
        scopes: Parts of the resource, as they are written in the text.

    Raises:
        SpecError: With everything that is wrong with it.
    """

    resource: str
    verbs: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        _settle(self, "capability", wild=False)

    @classmethod
    def parse(cls, text: str) -> Capability:
        """Return the need that a text describes, or raise a `SpecError` that says what to write."""
        return cls(*parts(text))

    @classmethod
    def literal(cls, resource: str, verb: str, scope: str) -> Capability:
        r"""Return the need of one thing, whatever characters its name has.

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
    """What a host permits: a need with patterns, which covers every need within it.

    >>> Grant.parse("fs:read:data/**").covers(Capability.parse("fs:read:data/a/b.txt"))
    True

    Attributes:
        resource: One word, or ``*`` for every resource.
        verbs: Words, or ``*`` for every verb.
        scopes: Patterns; ``*`` alone is the whole resource. There is always one.

    Raises:
        SpecError: With everything that is wrong with it.
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
            except Unfit as error:
                if kind == self.resource:
                    raise SpecError("grant", [f"{shown(scope)} is no scope of {kind}: {error}"]) from None

    @classmethod
    def parse(cls, text: str) -> Grant:
        """Return the grant that a text describes, or raise a `SpecError` that says what to write."""
        return cls(*parts(text))

    @classmethod
    def of(cls, need: Capability) -> Grant:
        """Return the grant of a need and no more: what is literal stays literal, and no scope is the whole resource.

        Raises:
            SpecError: The need has a scope that nothing covers.
        """
        if type(need) is not Capability:
            require("grant", need=(need, NEED))
        try:
            return cls(need.resource, need.verbs, need.scopes or ("*",))
        except SpecError:  # whose text tells the scope, which may be a value of a call
            raise SpecError("grant", ["the need has a scope that nothing covers"]) from None

    def covers(self, need: Capability) -> bool:
        """Tell whether this grant alone covers each of the needs that *need* stands for."""
        if type(need) is not Capability:
            require("grant", need=(need, NEED))
        return uncovered([need], [self]) is None

    def admits(self, resource: str, verb: str, key: Key) -> bool:
        """Tell whether this grant covers a single need, whose scope is given as its key."""
        if resource != self.resource and self.resource != "*":
            return False
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        tests = self._tests[resource if resource in self._tests else "*"]
        return any(test(key) for test in tests)

    def __str__(self) -> str:
        return _text(self)


def singles(need: Capability) -> tuple[Capability, ...]:
    """Return the single needs, of one verb and at most one scope each, that a need stands for."""
    if len(need.verbs) == 1 and len(need.scopes) < 2:
        return (need,)
    scopes: list[tuple[str, ...]] = [(scope,) for scope in need.scopes] or [()]
    return tuple(single(need.resource, verb, scope) for scope in scopes for verb in need.verbs)


def single(resource: str, verb: str, scopes: tuple[str, ...]) -> Capability:
    """Return a need of parts that are known to be right, without the cost of a second look at them."""
    need = object.__new__(Capability)
    _set(need, "resource", resource)
    _set(need, "verbs", (verb,))
    _set(need, "scopes", scopes)
    return need


def uncovered(needs: Iterable[Capability], grants: Sequence[Grant]) -> Capability | None:
    """Return the first single need that none of *grants* covers, or None.

    A need whose scope means nothing, such as a path that leaves the sandbox, is covered by nothing at all.
    """
    for need in needs:
        for each in singles(need):
            key = scope_key(each)
            if key is None or not any(grant.admits(each.resource, each.verbs[0], key) for grant in grants):
                return each
    return None


def scope_key(need: Capability) -> Key | None:
    """Return the scope of a single need in its normal form, or None where it has one that means nothing."""
    try:
        return key_of(need.resource, need.scopes[0]) if need.scopes else WHOLE
    except Unfit:
        return None


def normal(need: Capability) -> Capability:
    """Return a single need as whoever decides about it is to see it: of a path the one spelling that the sandbox opens.

    >>> print(normal(Capability.parse("fs:read:data/./x")))
    fs:read:data/x
    """
    key = scope_key(need)
    if need.resource != "fs" or not need.scopes or key is None or SURROGATE.search(key):
        return need
    return Capability.literal("fs", need.verbs[0], key.removesuffix("/") or ".")


def parts(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the resource, the verbs and the scopes that a text names; a scope keeps its escapes and its braces.

    Raises:
        SpecError: It is no such text; what the parts are is not looked at.
    """
    require("capability", text=(text, TEXT))
    resource, *rest = text.split(":", 2)
    if not rest or not all(WORD.fullmatch(word) or word == "*" for word in (resource.lower(), *_words(rest[0]))):
        raise SpecError("capability", [f"{shown(text)} is not a capability; {HOW}"])
    return resource.lower(), _words(rest[0]), scopes_of(rest[1]) if len(rest) == 2 else ()


def scopes_of(text: str) -> tuple[str, ...]:
    """Return the scopes that stand in *text* with commas between them, or raise a `SpecError`."""
    scopes = tuple(SCOPE.findall(text))
    if not scopes or ",".join(scopes) != text:
        raise SpecError("capability", [f"{shown(text)}: {BROKEN}"])
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
    """Bring the fields into their exact form, and yield a sentence for each that can not be."""
    faults = [*field_problems(thing, resource=STRING, verbs=WORDS, scopes=WORDS)]
    if faults:
        yield from (f"{fault}; {HOW}" for fault in faults)
        return
    _set(thing, "resource", thing.resource.lower())
    _set(thing, "verbs", tuple(dict.fromkeys(verb.lower() for verb in thing.verbs)))
    _set(thing, "scopes", tuple(thing.scopes))
    for word in (thing.resource, *thing.verbs):
        if WORD.fullmatch(word) is None and not (wild and word == "*"):
            yield f"{shown(word)} is not a word; {HOW}"
    if not thing.verbs:
        yield f"a {subject} has a verb; {HOW}"
    if wild and not thing.scopes:
        yield f"a grant has a scope; write {shown(_text(thing))}:* for the whole resource"
    yield from (f"{shown(scope)}: {BROKEN}" for scope in thing.scopes if PLAIN.fullmatch(scope) is None)
