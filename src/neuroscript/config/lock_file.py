"""Lock files: the distributions that a host has reviewed, their versions, and the definition of each tool.

The format is JSON, because definitions contain None, which TOML cannot represent. It is pure ASCII, so that no
character can pass for another. All problems are reported at once, each with its path. The contents of the file and the
installed distributions are compared as `Pinned` values.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import (
    FLAG,
    PATH,
    STRING,
    STRINGS,
    as_tuple,
    collection,
    instance,
    require,
    require_fields,
)
from neuroscript.config.pinned import Pinned, PinnedTool, compare, summarise
from neuroscript.discovery.catalog import DistributionOffer
from neuroscript.discovery.installed import Distribution, installed_distributions, normalize_name
from neuroscript.errors import PluginError, SpecError
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import NotJSON, parse_json, quote_path, quote_untrusted
from neuroscript.io.text_files import read_text_file, write_atomically
from neuroscript.io.toml import Place
from neuroscript.io.toml_errors import place_name
from neuroscript.tools.fingerprints import digest_of

FILE: Final = "neuroscript.lock"
"""The default name of a lock file."""

SCHEMA: Final = 1
"""The version of the format. Other versions are refused."""

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a file in bytes."""


PINNED: Final = collection(instance(Pinned), "Pinned distributions")


def _in_order(distributions: Iterable[Pinned]) -> tuple[Pinned, ...]:
    found = as_tuple(distributions)
    require("lock", distributions=(found, PINNED))
    return tuple(sorted(found, key=lambda each: each.key))


@attrs.frozen
class Lock:
    """The distributions that a host has reviewed and accepted.

    Attributes:
        distributions: Sorted by name.
        source: The name of the file in errors.
    """

    distributions: tuple[Pinned, ...] = attrs.field(converter=_in_order)
    source: str = attrs.field(default=FILE, eq=False)

    def __attrs_post_init__(self) -> None:
        require_fields("lock", self, source=STRING)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Lock:
        """Read a lock file.

        Raises:
            SpecError: If the file cannot be read or is invalid. The error lists every problem.
        """
        require("lock", path=(path, PATH))
        name = quote_path(os.fspath(path))
        return cls.of_text(read_text_file(path, name, MAX_FILE_BYTES), name)

    @classmethod
    def of_text(cls, text: str, source: str = FILE) -> Lock:
        """Parse the text of a lock file, which errors refer to as *source*; raise errors as `read` does."""
        require("lock", text=(text, STRING), source=(source, STRING))
        try:
            data = parse_json(text)
        except NotJSON as error:
            raise SpecError(source, [error.hint]) from None
        reader = _Reader()
        found = reader.lock(data)
        if reader.faults:
            raise SpecError(source, reader.faults)
        return cls(found, source)

    @property
    def text(self) -> str:
        """The content of the file; equal locks have equal content."""
        import json

        found = {each.name: _data(each) for each in self.distributions}
        return f"{json.dumps({'lock': SCHEMA, 'distributions': found}, indent=1)}\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically.

        Raises:
            OSError: If it cannot be written. An existing file is then unchanged.
        """
        require("lock", path=(path, PATH))
        write_atomically(path, self.text)

    def of(self, name: str) -> Pinned | None:
        """Return the locked distribution with this name in any spelling, or None."""
        require("lock", name=(name, STRING))
        return next((each for each in self.distributions if each.key == normalize_name(name)), None)

    def admit(self, distribution: Distribution, is_isolated: bool) -> None:
        """Check, before it is imported, that a distribution is isolated if it is locked as isolated.

        Args:
            is_isolated: Whether the policy isolates all of its entry points.

        Raises:
            PluginError: If it is not.
        """
        require("lock", distribution=(distribution, instance(Distribution)), is_isolated=(is_isolated, FLAG))
        old = self.of(distribution.name)
        if old is None or not old.is_isolated or is_isolated:
            return
        name = quote_untrusted(distribution.name)
        text = (
            f"is isolated in {self.source}, but not by the policy; add --isolate-plugins {name}, "
            f"or add {name} to plugins in [policy.isolation]"
        )
        raise PluginError(str(distribution), text, code="plugin.locked")

    def check(self, offer: DistributionOffer) -> None:
        """Compare the contents of a distribution with what is locked.

        Raises:
            PluginError: If they differ.
        """
        require("lock", offer=(offer, instance(DistributionOffer)))
        error = self.refusal(Pinned.of(offer))
        if error is not None:
            raise error

    def refusal(self, found: Pinned) -> PluginError | None:
        """Return the error for an installed distribution that differs from the lock, or None if it matches."""
        require("lock", found=(found, instance(Pinned)))
        old = self.of(found.name)
        if old is None:
            return PluginError(str(found), f"is not in {self.source}", code="plugin.locked")
        differences = compare(old, found)
        if not differences:
            return None
        return PluginError(str(found), f"does not match {self.source}: {summarise(differences)}", code="plugin.locked")

    def missing(self, without: Iterable[str] = ()) -> tuple[PluginError, ...]:
        """Return an error for each locked distribution that is not installed, except for the names in *without*."""
        names = as_tuple(without)
        require("lock", without=(names, STRINGS))
        keys = {*(each.key for each in installed_distributions()), *map(normalize_name, names)}
        absent = (each for each in self.distributions if each.key not in keys)
        reason = f"is in {self.source} but not installed"
        return tuple(PluginError(str(each), reason, code="plugin.missing") for each in absent)


def _data(pinned: Pinned) -> dict[str, Any]:
    data: dict[str, Any] = {"version": pinned.version}
    if pinned.is_isolated:
        data["isolated"] = True
    if pinned.hooks:
        data["hooks"] = sorted(pinned.hooks)
    if pinned.aliases:
        data["aliases"] = dict(sorted(pinned.aliases.items()))
    tools = sorted(pinned.tools.items())
    data["tools"] = {name: {"fingerprint": tool.fingerprint, **tool.data} for name, tool in tools}
    return data


class _Reader:
    """A parser for the data of one file.

    Attributes:
        faults: The problems, each beginning with its path.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []

    def lock(self, data: object) -> tuple[Pinned, ...]:
        """Return the distributions of a file."""
        if not isinstance(data, dict):
            self.faults.append(f"must be a JSON object, not {type_name(data)}")
            return ()
        if type(data.get("lock")) is not int or data["lock"] != SCHEMA:
            self.faults.append(f"lock: must be {SCHEMA}, the supported version of the format")
            return ()
        self._check_keys((), data, ("lock", "distributions"))
        place: Place = ("distributions",)
        found = tuple(self._pinned((*place, name), name, each) for name, each in self._map(data, place).items())
        counted = Counter(each.key for each in found)
        for each in found:
            if counted[each.key] > 1:
                self._note((*place, each.name), "appears twice, in different spellings")
        return found

    def _pinned(self, place: Place, name: str, data: object) -> Pinned:
        table = self._table(place, data)
        self._check_keys(place, table, ("version", "isolated", "hooks", "aliases", "tools"))
        is_isolated = table.get("isolated", False)
        if not isinstance(is_isolated, bool):
            self._note((*place, "isolated"), "must be true or false")
        version = table.get("version")
        if not isinstance(version, str):
            self._note((*place, "version"), "must be a string")
        place_of_tools = (*place, "tools")
        tools = {
            each: self._tool((*place_of_tools, each), each, tool)
            for each, tool in self._map(table, place_of_tools).items()
        }
        aliases = self._aliases((*place, "aliases"), table.get("aliases", {}), tools)
        hooks = self._hooks((*place, "hooks"), table.get("hooks", []))
        return Pinned(name, str(version), tools, aliases, hooks, is_isolated is True)

    def _tool(self, place: Place, name: str, data: object) -> PinnedTool:
        table = self._table(place, data)
        self._check_keys(place, table, ("fingerprint", "spec", "policy"))
        tool = PinnedTool(str(table.get("fingerprint")), {key: table.get(key) for key in ("spec", "policy")})
        try:
            definition = tool.definition
        except (SpecError, RecursionError) as error:
            for problem in error.problems if isinstance(error, SpecError) else ["nests too deeply"]:
                self._note(place, problem)
            return tool
        if definition.spec.full_name != name:
            self._note(place, "contains the definition of another tool")
        elif tool.fingerprint != digest_of(tool.data):
            self._note(place, "the fingerprint does not match the definition; one of them was edited")
        return tool

    def _aliases(self, place: Place, data: object, tools: Mapping[str, PinnedTool]) -> dict[str, str]:
        table = self._table(place, data)
        for name, target in table.items():
            if not isinstance(target, str) or target not in tools:
                self._note((*place, name), "must be the name of a tool of this distribution")
        return {name: str(target) for name, target in table.items()}

    def _hooks(self, place: Place, data: object) -> tuple[str, ...]:
        if not isinstance(data, list) or not all(isinstance(each, str) for each in data) or len({*data}) != len(data):
            self._note(place, "must be an array of unique strings")
            return ()
        return tuple(data)

    def _map(self, data: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
        """Return a required table."""
        return self._table(place, data.get(str(place[-1])))

    def _table(self, place: Place, data: object) -> Mapping[str, Any]:
        if isinstance(data, dict):
            return data
        self._note(place, "must be a JSON object")
        return {}

    def _check_keys(self, place: Place, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in data:
            if key not in known:
                self._note((*place, key), f"unknown key{did_you_mean(key, known)}")

    def _note(self, place: Place, text: str) -> None:
        self.faults.append(f"{place_name(place)}: {text}")
