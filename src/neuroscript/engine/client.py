"""Tools as attributes: ``client(engine).math.add(2, 3)`` calls ``math.add``.

``neuroscript stubs`` writes their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import instance, require
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, Problem
from neuroscript.formats.python_names import attribute, parameters, word
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.binding import by_name
from neuroscript.spec.tool_spec import ToolSpec

SESSION: Final = instance(Session, "an Engine is one")


@attrs.frozen
class CallMethods:
    """The methods of a session that call tools: with arguments in order, by name, and for the items of a stream."""

    in_order: Callable[..., Any]
    by_name: Callable[..., Any]
    stream: Callable[..., Any]


def client(session: Session) -> Any:
    """Return the tools of a session as attributes that can be called as functions.

    ``client(session).group.name(1, 2, key=3)`` calls ``session.call`` with the arguments in order, or ``call_named`` if
    some are passed by name; for a stream it calls ``session.stream``. An argument or a segment of a name that is a
    Python keyword ends in ``_`` (``import_``). Which tools exist and may be called is decided when a tool is called.

    Args:
        session: An `Engine`, or a session of it.

    Raises:
        CallError: A call fails as a call of the session does.
    """
    require("client", session=(session, SESSION))
    return Client(session, CallMethods(session.call, session.call_named, session.stream))


def aclient(session: Session) -> Any:
    """Return what `client` returns, for calls that are awaited: ``await aclient(session).math.add(2, 3)``.

    For a stream the call returns an async iterator, and is not awaited itself.
    """
    require("aclient", session=(session, SESSION))
    return Client(session, CallMethods(session.acall, session.acall_named, session.astream))


class Client:
    """A group of tools, or a tool. Its own names begin with ``_``, so they hide no tool."""

    __slots__ = ("_methods", "_path", "_session")

    def __init__(self, session: Session, methods: CallMethods, path: str = "") -> None:
        self._session = session
        self._methods = methods
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"no tool or group is named {quote_untrusted(name)}", name=name, obj=self)
        return Client(self._session, self._methods, f"{self._path}.{word(name)}" if self._path else word(name))

    def __dir__(self) -> list[str]:
        """Return the tools that may be called, and their groups."""
        above = f"{self._path}." if self._path else ""
        names = [name.removeprefix(above) for name in self._session.infos if name.startswith(above)]
        return sorted({attribute(name.partition(".")[0]) for name in names})

    def __repr__(self) -> str:
        return f"<tools {quote_untrusted(self._path)}>" if self._path else "<tools>"

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Call the tool."""
        spec = _spec(self._session, self._path)
        given = _given(spec, args, named)
        if spec.stream is True:
            return self._methods.stream(self._path, given)
        call = self._methods.by_name if isinstance(given, dict) else self._methods.in_order
        return call(self._path, given)


def _spec(session: Session, path: str) -> ToolSpec:
    """Return the spec of a tool, if it may be called; otherwise the session raises its own error."""
    return session._entry(path).pipeline.tool.spec


def _given(spec: ToolSpec, args: tuple[Any, ...], named: Mapping[str, Any]) -> Sequence[Any] | dict[str, Any]:
    """Return arguments as one sequence, or as one dict by the names that the spec has for them.

    Raises:
        ArgumentError: An argument is passed twice.
    """
    given = by_name(spec, args) if named else None
    if given is None:  # or there are too many arguments, which the call will report
        return args
    names = parameters(spec)
    twice: list[str] = []
    for name, value in named.items():
        meant = names.get(name, name)
        twice.extend([meant] if meant in given else [])
        given[meant] = value
    if twice:
        raise ArgumentError([Problem(name, "arg.duplicate", "one value", "2 values") for name in twice], spec.full_name)
    return given
