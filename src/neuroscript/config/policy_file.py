"""What a host permits, as a file of TOML: the table ``policy``, and under it profiles that replace parts of it.

Whatever is wrong is said at once, each with its line and its name. `ExecutionPolicy` and `Limits` judge the values;
what is asked here is the shape alone. A file that is wrong in part permits nothing: there is no policy then.

The tables ``mcp.NAME`` beside it name servers of tools; `load_servers` tells of them, and starts none.

Source: contract section 5; issue "Authority", policy as a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import PATH, STRING, optional, require
from neuroscript.config.mcp_servers import ServerTable, tables_in
from neuroscript.errors import SpecError
from neuroscript.io.text import shown
from neuroscript.io.text_files import text_of
from neuroscript.io.toml import NotTOML, Place, parsed
from neuroscript.io.toml_errors import Faults, named, problems
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.limits import Limits

LONGEST: Final = 1024 * 1024
"""How many bytes a file may have."""

LISTS: Final = ("allow", "deny", "grants", "preapproved")
KEYS: Final = (*LISTS, "trusted", "limits")
"""What a profile may state; the table ``policy`` may hold profiles too."""

TABLES: Final = ("policy", "mcp")
"""The outermost tables."""

COUNTS: Final = tuple(field.name for field in attrs.fields(Limits))
BY_NAME: Final = frozenset(field.name for field in attrs.fields(Limits) if isinstance(field.default, attrs.Factory))  # type: ignore[arg-type]
"""Limits that are values by name: of a tool, a pattern, a currency."""


def load_policy(path: str | os.PathLike[str], *, profile: str | None = None) -> ExecutionPolicy:
    """Return what the file *path* permits.

    Args:
        path: A file of TOML in UTF-8, at most `LONGEST` bytes.
        profile: Which of its profiles replaces parts of it; None is none.

    Raises:
        SpecError: The file can not be read, or something in it is wrong; its ``lines`` say where.

    Source: issue "Authority", policy as a file.
    """
    require("load_policy", path=(path, PATH), profile=(profile, optional(STRING)))
    name = Path(path).name or str(path)
    return policy_of_toml(text_of(path, shown(name), LONGEST), source=name, profile=profile)


def load_servers(path: str | os.PathLike[str]) -> tuple[ServerTable, ...]:
    """Return the servers that the file *path* names, in order. Nothing is started or reached.

    Args:
        path: As for `load_policy`; its directory is where relative paths in it begin.

    Raises:
        SpecError: The file can not be read, or something in it is wrong, in its policy too.

    Source: issue "MCP", ``[mcp.NAME]`` in the configuration.
    """
    name = Path(path).name or str(path)
    text = text_of(path, shown(name), LONGEST)
    directory = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    return _looked_at(text, name, None, directory)[1]


def policy_of_toml(text: str, *, source: str = "policy", profile: str | None = None) -> ExecutionPolicy:
    """Return what a text of TOML permits.

    Args:
        source: What errors call it.
        profile: Which of its profiles replaces parts of it; None is none.

    Raises:
        SpecError: With everything that is wrong with it.

    >>> policy_of_toml('policy.deny = ["*.delete"]').deny
    ('*.delete',)
    """
    stated, _ = _looked_at(text, source, profile, "")
    limits = stated.pop("limits", None)
    return ExecutionPolicy(**stated, limits=Limits(**limits) if limits else None)


def _looked_at(
    text: str, source: str, profile: str | None, directory: str
) -> tuple[dict[str, Any], tuple[ServerTable, ...]]:
    """Return what a text states of a policy, and the servers that it names; or raise all that is wrong with it."""
    try:
        document = parsed(text)
    except NotTOML as error:
        raise SpecError(shown(source), [error.hint], [error.line]) from None
    faults = Faults(document)
    faults.only((), document.values, TABLES)
    stated = _stated(faults, profile)
    servers = tables_in(faults, ("mcp",), document.values.get("mcp", {}), directory)
    if faults.found:
        raise faults.error(source)
    return stated, servers


def _stated(faults: Faults, profile: str | None) -> dict[str, Any]:
    """Return what the document states, as the profile replaces it."""
    place = ("policy",)
    table = faults.table(place, faults.document.values.get("policy", {}))
    base = _section(faults, place, table, (*KEYS, "profiles"))
    profiles = _profiles(faults, (*place, "profiles"), table.get("profiles", {}))
    if profile is None:
        return base
    if profile not in profiles:
        faults.unknown((*place, "profiles", profile), profiles, "there is no such profile")
        return base
    chosen = profiles[profile]
    limits = {**base.get("limits", {}), **chosen.get("limits", {})}
    return {**base, **chosen, "limits": limits}


def _profiles(faults: Faults, place: Place, value: object) -> dict[str, dict[str, Any]]:
    table = faults.table(place, value)
    return {
        name: _section(faults, (*place, name), faults.table((*place, name), each), KEYS) for name, each in table.items()
    }


def _section(faults: Faults, place: Place, table: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Return what a table states, as keywords of a policy and of its limits."""
    stated: dict[str, Any] = {}
    for key, value in table.items():
        here = (*place, key)
        if key in LISTS:
            stated[key] = tuple(_texts(faults, here, value))
        elif key == "trusted":
            stated[key] = value
            if not isinstance(value, bool):
                faults.note(here, "must be true or false")
        elif key == "limits":
            stated[key] = _limits(faults, here, faults.table(here, value))
        elif key not in known and key in COUNTS:
            faults.note(here, f"is a limit; write it under [{named((*place, 'limits'))}]")
        elif key not in known:
            faults.unknown(here, known)
    return stated


def _texts(faults: Faults, place: Place, value: object) -> Iterator[str]:
    """Yield the texts of an array; what the policy has against one of them is told on its line."""
    key = str(place[-1])
    if not isinstance(value, list):
        faults.note(place, "must be an array of texts, in brackets")
        return
    texts = [each for each in value if isinstance(each, str)]
    is_right = not problems(ExecutionPolicy, key, texts)  # as nearly all are, and then none is looked at alone
    for index, each in enumerate(value):
        here = (*place, index)
        if not isinstance(each, str):
            faults.note(here, "must be a text, in quotes")
        elif is_right or faults.judge(here, ExecutionPolicy, key, (each,)):
            yield each


def _limits(faults: Faults, place: Place, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits, each of which `Limits` has looked at."""
    for key, value in table.items():
        here = (*place, key)
        if key not in COUNTS:
            faults.unknown(here, COUNTS)
        elif key in BY_NAME:
            _by_name(faults, here, faults.table(here, value))
        else:
            faults.judge(here, Limits, key, value)
    return dict(table)


def _by_name(faults: Faults, place: Place, table: Mapping[str, Any]) -> None:
    key = str(place[-1])
    for name, value in table.items():
        here = (*place, name)
        if isinstance(value, dict):
            faults.note(
                here, f'holds names itself; a name with a dot stands in quotes, "{shown(_dotted(name, value))}"'
            )
        else:
            faults.judge(here, Limits, key, {name: value}, f"{key}[{shown(name)!r}]")


def _dotted(name: str, value: object) -> str:
    """Return the name that somebody wrote without quotes, as far as it leads to one value."""
    while isinstance(value, dict) and value:
        further, value = next(iter(value.items()))
        name = f"{name}.{further}"
    return name
