"""Capability templates: needs that name arguments in braces and are filled in for each call.

``fs:read:{path}`` needs the path that a call passes. A string fills in as one literal scope, a list as one need per
element, None as the whole resource, and ``{url.host}`` as the host and port of a URL. ``{order.path}`` is a key of a
map, and of a list of maps, the key of each. An empty string restricts nothing, so it means the whole resource too.
Parsing decides everything in advance; filling only looks at values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.coercion.types import BUILTINS, ELEMENTS, ArgType
from neuroscript.errors import ArgumentError, Problem, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.capabilities import Capability, Grant, parts, single, split_need
from neuroscript.policy.scopes import InvalidScope, key_of, literal, literal_host

if TYPE_CHECKING:
    from neuroscript.coercion.rule_text import Rule

Values = Sequence[Any]
"""One coerced value for each argument, in order; the further values of a variadic tool follow."""

Fill = Callable[[Values], tuple[Capability, ...]]
"""Function from argument values to the single needs of that call."""

Texts = Callable[[Values], Iterable[str | None]]
"""Function from argument values to strings, each a scope or a piece of one; None means the whole resource."""

PIECE: Final = re.compile(r"((?:\\.|[^\\{}])+)|\{([^{}]*)\}", re.DOTALL)
URL: Final = re.compile(
    r"([a-z][a-z0-9+.-]*)://(?:[^\s\\/?#@]*@)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{0,5}))?(?:[/?#][^\s\\]*)?",
    re.IGNORECASE | re.ASCII,
)
"""A URL that every client interprets alike: at most one ``@``, an ASCII host, no blanks, no backslashes."""

PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}

MAX_SCOPE_CHARS: Final = 8 * 1024 * 1024
"""Maximum number of characters in the needs of one call, for scopes that combine several arguments."""

_SCOPE_TEXTS: Final[Mapping[type, Callable[[Any], str]]] = {
    str: literal,
    int: str,
    bool: lambda value: "true" if value else "false",
}
SCOPE_TYPES: Final = {kind: _SCOPE_TEXTS[builtin] for kind, builtin in BUILTINS.items() if builtin in _SCOPE_TEXTS}
"""The types that can fill a scope, and the string form of a value of each."""


@attrs.frozen(eq=False)
class Template:
    """A need of a tool that is filled in from the arguments of a call.

    Attributes:
        text: The template as written, with resource and verbs in lower case.
        fill: Takes one coerced value for each argument, in order, and returns the single needs of that call. Raises an
            `ArgumentError` if a URL has no usable host and port.
    """

    text: str
    fill: Fill = attrs.field(repr=False)

    @classmethod
    def parse(cls, text: str, types: Mapping[str, ArgType | Rule], *, variadic: bool = False) -> Template:
        """Parse a template.

        Args:
            types: The type or the spec of each argument of the tool by name, in order.
            variadic: Whether the last type applies to every further value.

        Raises:
            SpecError: If *text* is not a capability, or names an unknown argument or one that cannot fill a scope.

        >>> template = Template.parse("fs:read:data/{name}", {"name": ArgType.STRING})
        >>> [str(need) for need in template.fill(["a.txt"])]
        ['fs:read:data/a.txt']
        """
        need = _shape(text)
        arguments = _arguments(types, variadic)
        scopes = parts(text)[2]
        faults = [fault for scope in scopes for fault in _faults(need.resource, scope, arguments)]
        if faults:
            raise SpecError(quote_untrusted(text), faults)
        return cls(normal(text), _filler(need, scopes, arguments))


def normal(text: str) -> str:
    """Return a template in normal form: resource and verbs in lower case, scopes unchanged.

    Raises:
        SpecError: If *text* is not a capability. The names of arguments are not validated.
    """
    need = _shape(text)
    return ":".join(filter(None, (need.resource, ",".join(need.verbs), ",".join(parts(text)[2]))))


def may_cover(grant: Grant, text: str) -> bool:
    """Return whether a grant can cover any need that a template may produce."""
    need = _shape(text)
    if grant.resource not in ("*", need.resource) or not {"*", *need.verbs}.intersection(grant.verbs):
        return False
    if any(name is not None for scope in parts(text)[2] for _, name in slots(scope)):
        return True
    return any(grant.covers(each) for each in split_need(need))


def needs_filled_by(names: Collection[str], templates: Iterable[Template], values: Values) -> frozenset[Capability]:
    """Return the needs of a call that are filled from at least one of the arguments *names*.

    Args:
        values: One coerced value for each argument, in order.
    """
    chosen = (each for each in templates if names and not named_in(each.text).isdisjoint(names))
    return frozenset(need for each in chosen for need in each.fill(values))


def named_in(text: str) -> frozenset[str]:
    """Return the names in braces in a template, which may be names of arguments.

    >>> sorted(named_in("fs:read:{path},{url.host}"))
    ['path', 'url', 'url.host']
    """
    names = (name for scope in parts(text)[2] for _, name in slots(scope) if name is not None)
    return frozenset(prefix for name in names for prefix in accumulate(name.split("."), "{}.{}".format))


def argument_in(name: str, known: Collection[str]) -> str:
    """Return the argument that a placeholder such as ``order.url.host`` refers to; its name may contain dots."""
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name


def key_paths(text: str, argument: str, known: Collection[str]) -> list[tuple[str, ...]]:
    """Return the keys within an argument that the placeholders of a template name, each as a path.

    >>> key_paths("fs:read:{order.file},{url.host}", "order", ("order", "url"))
    [('file',)]
    """
    names = {name for scope in parts(text)[2] for _, name in slots(scope) if name is not None}
    found = sorted(name for name in names if argument_in(name, known) == argument)
    return [tuple(name[len(argument) + 1 :].split(".")) if name != argument else () for name in found]


def repeated_names(types: Mapping[str, ArgType | Rule], variadic: bool) -> tuple[str, ...]:
    """Return the names that placeholders can use for arguments and keys with any number of values."""
    return tuple(name for name, each in _arguments(types, variadic).items() if each.is_many)


def scope_texts(name: str, types: Mapping[str, ArgType | Rule], variadic: bool, values: Values) -> list[str | None]:
    """Return the strings that a placeholder produces for some values.

    Raises:
        ArgumentError: If a URL has no usable host and port.
    """
    return [*_piece("", name, _arguments(types, variadic))(values)]


def _shape(text: str) -> Capability:
    """Return a template with ``x`` in place of each argument."""
    resource, verbs, scopes = parts(text)
    return Capability(resource, verbs, tuple(PIECE.sub(lambda found: found[1] or "x", scope) for scope in scopes))


def host_scope(url: str) -> str:
    """Return the scope ``host:port`` of the server that a client of *url* connects to.

    Raises:
        Unfit: If clients could interpret the host differently, or the port is missing and unknown for the scheme.

    >>> host_scope("http://good.example@EVIL.example./path")
    'evil.example:80'
    """
    found = URL.fullmatch(url)
    if found is None or not url.isprintable():
        raise InvalidScope(NO_PLACE)
    scheme, host, port = found.groups()
    number = int(port or PORTS.get(scheme.lower(), -1))
    if not 0 <= number <= 65535:
        raise InvalidScope(NO_PLACE)
    return f"{literal_host(host)}:{number}"


NO_PLACE: Final = "a URL with an ASCII host and an explicit or well-known port"


@attrs.frozen(eq=False, repr=False)
class _Argument:
    """An argument, or a key within one, that can fill a scope.

    Attributes:
        path: The keys from the argument to the value.
        is_listed: Whether one of the maps on this path is in a list.
    """

    name: str
    type: ArgType
    index: int
    variadic: bool
    path: tuple[str, ...] = ()
    is_listed: bool = False

    @property
    def is_many(self) -> bool:
        return self.variadic or self.is_listed or self.type in ELEMENTS

    @property
    def is_text(self) -> bool:
        return not self.is_many and not self.path and SCOPE_TYPES[self.type] is literal

    def where(self, index: int) -> str:
        """Return the place of a value in an error.

        Args:
            index: The position of the value in `items`; it is not that of a map, so it is omitted for maps in a list.
        """
        keys = "".join(f"[{key!r}]" for key in self.path)
        name = self.name.removesuffix("".join(f".{key}" for key in self.path))
        if self.is_listed:
            return name
        if self.variadic:
            return f"{name}[{index}]{keys}"
        return f"{name}{keys}[{index}]" if self.is_many else f"{name}{keys}"

    @property
    def element(self) -> ArgType:
        return ELEMENTS.get(self.type, self.type)

    def items(self, values: Values) -> Iterable[Any]:
        """Return the values that each fill a scope; a single None if the argument is None."""
        if self.path:
            return self._inner_items(values)
        if self.variadic:
            return values[self.index :]
        value = values[self.index]
        return value if self.is_many and value is not None else (value,)

    def _inner_items(self, values: Values) -> list[Any]:
        found = [*values[self.index :]] if self.variadic else [values[self.index]]
        for key in self.path:
            maps = (one for each in found for one in (each if type(each) is list else (each,)))
            found = [None if one is None else one.get(key) for one in maps]
        if self.type not in ELEMENTS:
            return found
        return [one for each in found for one in (each if type(each) is list else (each,))]


_Arguments = Mapping[str, _Argument]


def _arguments(types: Mapping[str, ArgType | Rule], variadic: bool) -> _Arguments:
    """Return what placeholders can name. The name of an argument takes precedence over that of a key."""
    last = len(types) - 1
    found: dict[str, _Argument] = {}
    for index, (name, rule) in enumerate(types.items()):
        kind = rule if isinstance(rule, ArgType) else rule.type
        found[name] = _Argument(name, kind, index, variadic and index == last)
    for name, rule in types.items():
        if not isinstance(rule, ArgType):
            for each in _keys(found[name], rule):
                found.setdefault(each.name, each)
    return found


def _keys(outer: _Argument, rule: Rule) -> Iterator[_Argument]:
    """Yield the keys of a map, or of the maps in a list, and theirs; not those of lists within lists."""
    if rule.type in ELEMENTS and (outer.variadic or outer.is_listed):
        return
    maps = rule.items if rule.items is not None and rule.items.keys and rule.items.type not in ELEMENTS else rule
    for key in maps.keys:
        path, is_listed = (*outer.path, key.name), outer.is_listed or rule.type in ELEMENTS
        inner = _Argument(f"{outer.name}.{key.name}", key.type, outer.index, outer.variadic, path, is_listed)
        yield inner
        yield from _keys(inner, key)


_Piece = tuple[str, str | None]
"""A literal piece and None, or ``""`` and the contents of a pair of braces."""


def slots(scope: str) -> list[_Piece]:
    """Return the pieces of a scope: literals, and the contents of braces."""
    return [(found[1] or "", found[2]) for found in PIECE.finditer(scope)]


def _split(name: str, arguments: _Arguments) -> tuple[str, str]:
    """Split ``argument.attribute`` into its two names; the name of an argument may itself contain a dot."""
    if name in arguments or "." not in name:
        return name, ""
    argument, _, attribute = name.rpartition(".")
    return argument, attribute


def _faults(resource: str, scope: str, arguments: _Arguments) -> Iterator[str]:
    pieces = slots(scope)
    names = [name for _, name in pieces if name is not None]
    if not names:
        yield from _literal_faults(resource, scope)
    for name in names:
        yield from (f"{{{quote_untrusted(name)}}} {fault}" for fault in _slot_faults(name, len(pieces) == 1, arguments))
    found = [arguments[_split(name, arguments)[0]] for name in names if _split(name, arguments)[0] in arguments]
    if sum(each.is_many for each in found) > 1:
        yield f"{quote_untrusted(scope)} can contain at most one list"


def _literal_faults(resource: str, scope: str) -> Iterator[str]:
    try:
        key_of(resource, scope)
    except InvalidScope as error:
        yield f"{quote_untrusted(scope)} is not a valid scope for {resource}: {error}"


def _slot_faults(name: str, alone: bool, arguments: _Arguments) -> Iterator[str]:
    argument, attribute = _split(name, arguments)
    found = arguments.get(argument)
    if found is None:
        yield "is not an argument of the tool"
    elif attribute not in ("", "host"):
        yield "has an unknown attribute; only .host is supported"
    elif attribute and (found.element is not ArgType.STRING or not alone):
        yield "is the host of a URL, so it must be a string and fill the whole scope"
    elif found.element not in SCOPE_TYPES or ((found.variadic or found.is_listed) and found.type in ELEMENTS):
        yield f"is {found.type}; only strings, integers, booleans and lists of them can fill a scope"


def _filler(need: Capability, scopes: Sequence[str], arguments: _Arguments) -> Fill:
    """Return the function that fills a template, as simple as the template allows."""
    resource, verbs = need.resource, need.verbs
    pieces = [slots(scope) for scope in scopes]
    if all(name is None for scope in pieces for _, name in scope):
        fixed = split_need(need)
        return lambda values: fixed
    match pieces, verbs:
        case [[(_, str(name))]], (verb,) if name in arguments and arguments[name].is_text:
            return _of_one_text(resource, verb, arguments[name].index)
    texts = [_scope(scope, arguments) for scope in pieces]
    return lambda values: tuple(
        single(resource, verb, (text,) if text else ()) for each in texts for text in each(values) for verb in verbs
    )


def _of_one_text(resource: str, verb: str, index: int) -> Fill:
    """Return the fill function for the most common form of template."""

    def fill(values: Values) -> tuple[Capability, ...]:
        text = values[index]
        return (single(resource, verb, (literal(text),) if text else ()),)

    return fill


def _scope(scope: Sequence[_Piece], arguments: _Arguments) -> Texts:
    """Return the function that produces the strings of one scope."""
    pieces = [(_piece(text, name, arguments), name or "") for text, name in scope]
    if len(pieces) == 1:
        return pieces[0][0]

    def joined(values: Values) -> list[str | None]:
        texts: list[str | None] = [""]
        for piece, name in pieces:
            added = tuple(piece(values))
            _require_room(texts, added, name)
            texts = [None if None in (text, each) else f"{text}{each}" for text in texts for each in added]
        return texts

    return joined


def _require_room(texts: Sequence[str | None], added: Sequence[str | None], name: str) -> None:
    """Raise an `ArgumentError` if the combined scopes would be too long.

    Only one argument of a scope may be a list, but a long string beside it is repeated for each item.
    """
    if _chars(texts) * len(added) + _chars(added) * len(texts) > MAX_SCOPE_CHARS:
        expected = f"at most {MAX_SCOPE_CHARS} characters in the capability scopes of one call"
        raise ArgumentError([Problem(name, "limit.text", expected, "more")])


def _chars(texts: Iterable[str | None]) -> int:
    return sum(len(text) for text in texts if text)


def _piece(text: str, name: str | None, arguments: _Arguments) -> Texts:
    if name is None:
        return lambda values: (text,)
    argument = arguments[_split(name, arguments)[0]]
    if name != argument.name:
        return lambda values: _places(argument, values)
    written = SCOPE_TYPES[argument.element]
    return lambda values: [None if each is None else written(each) for each in argument.items(values)]


def _places(argument: _Argument, values: Values) -> Iterator[str | None]:
    for index, url in enumerate(argument.items(values)):
        try:
            yield None if url is None else host_scope(url)
        except InvalidScope:
            raise ArgumentError([Problem(argument.where(index), "arg.url", NO_PLACE, "str")]) from None
