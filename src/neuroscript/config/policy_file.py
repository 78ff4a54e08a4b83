"""Policy files: TOML with a table ``policy`` and, below it, profiles that replace parts of it.

Every problem is reported at once, with its line and its name. `ExecutionPolicy` and `Limits` validate the values; only
the structure is validated here. A file with any problem yields no policy and therefore permits nothing.

Tables ``mcp.NAME`` describe servers of tools; `load_servers` returns them and starts none. The tables ``gateway`` and
``client.NAME`` are settings of a gateway, see `neuroscript.config.gateway_file`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import PATH, STRING, optional, require
from neuroscript.config.mcp_servers import ServerTable, tables_in
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.io.text_files import read_text_file
from neuroscript.io.toml import Place, TomlError, parse_toml
from neuroscript.io.toml_errors import Faults, place_name, problems
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.flow_rules import FlowLabels, FlowRule
from neuroscript.policy.limits import Limits

MAX_FILE_BYTES: Final = 1024 * 1024
"""Maximum size of a file in bytes."""

LISTS: Final = ("allow", "deny", "grants", "preapproved")
SWITCHES: Final = ("trusted", "trust_textless")
KEYS: Final = (*LISTS, *SWITCHES, "otherwise", "limits", "flow", "labels", "isolation")
"""The keys of a profile; the table ``policy`` may also contain profiles."""

GATEWAY_TABLES: Final = ("gateway", "client")
"""The top-level tables that only a gateway uses."""

TABLES: Final = ("policy", "mcp", *GATEWAY_TABLES)
"""The top-level tables."""

COUNTS: Final = tuple(field.name for field in attrs.fields(Limits))
BY_NAME: Final = frozenset(field.name for field in attrs.fields(Limits) if isinstance(field.default, attrs.Factory))  # type: ignore[arg-type]
"""Limits that are tables: by tool, by pattern, or by currency."""

RULE_FIELDS: Final[Mapping[str, str]] = {"from": "labels", "to": "to", "then": "then", "by": "by"}
"""The keys of a table ``policy.flow``, and the fields of `FlowRule`; ``from`` is a keyword of Python."""

LABEL_KEYS: Final = ("sources", "sinks", "declassifies")
"""The keys of a table ``policy.labels`` besides ``tools``."""

ISOLATION_LISTS: Final = ("tools", "exclude", "plugins", "network", "require")
"""The keys of a table ``policy.isolation`` whose values are arrays of strings."""


def load_policy(path: str | os.PathLike[str], *, profile: str | None = None) -> ExecutionPolicy:
    """Load a policy from a file.

    Args:
        path: A TOML file in UTF-8 of at most `MAX_FILE_BYTES` bytes.
        profile: The profile that replaces parts of the policy, or None.

    Raises:
        SpecError: If the file cannot be read or is invalid; ``lines`` has the line of each problem.
    """
    require("load_policy", path=(path, PATH), profile=(profile, optional(STRING)))
    name = Path(path).name or str(path)
    return policy_of_toml(read_text_file(path, quote_untrusted(name), MAX_FILE_BYTES), source=name, profile=profile)


def load_profile(path: str | os.PathLike[str], profile: str) -> dict[str, Any]:
    """Load what a profile of a file permits, as keyword arguments of an `ExecutionPolicy`.

    Args:
        path: As for `load_policy`.

    Raises:
        SpecError: As for `load_policy`, or if the profile is unknown.
    """
    name = Path(path).name or str(path)
    text = read_text_file(path, quote_untrusted(name), MAX_FILE_BYTES)
    return policy_fields(_looked_at(text, name, profile, "")[0])


def profile_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of the profiles in a file, in order.

    Raises:
        SpecError: As for `load_policy`.
    """
    name = Path(path).name or str(path)
    text = read_text_file(path, quote_untrusted(name), MAX_FILE_BYTES)
    _looked_at(text, name, None, "")
    return tuple(parse_toml(text).values.get("policy", {}).get("profiles", {}))


def load_servers(path: str | os.PathLike[str]) -> tuple[ServerTable, ...]:
    """Load the MCP servers from a policy file, in order. No server is started or reached.

    Args:
        path: As for `load_policy`. Relative paths in the file start from its directory.

    Raises:
        SpecError: If the file cannot be read or is invalid, including its policy.
    """
    name = Path(path).name or str(path)
    text = read_text_file(path, quote_untrusted(name), MAX_FILE_BYTES)
    directory = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    return _looked_at(text, name, None, directory)[1]


def policy_of_toml(text: str, *, source: str = "policy", profile: str | None = None) -> ExecutionPolicy:
    """Parse a policy from TOML text.

    Args:
        source: The name of the text in errors.
        profile: The profile that replaces parts of the policy, or None.

    Raises:
        SpecError: If the text is invalid. The error lists every problem.

    >>> policy_of_toml('policy.deny = ["*.delete"]').deny
    ('*.delete',)
    """
    stated, _ = _looked_at(text, source, profile, "")
    return ExecutionPolicy(**policy_fields(stated))


def policy_fields(stated: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a table as keyword arguments of a policy, with objects for its limits and isolation."""
    fields = {key: value for key, value in stated.items() if key not in ("limits", "isolation")}
    if stated.get("isolation"):
        from neuroscript.policy.isolation import Isolation

        fields["isolate"] = Isolation(**stated["isolation"])
    if stated.get("limits"):
        fields["limits"] = Limits(**stated["limits"])
    return fields


def _looked_at(
    text: str, source: str, profile: str | None, directory: str
) -> tuple[dict[str, Any], tuple[ServerTable, ...]]:
    """Return the settings and the servers in the text of a policy file; raise an error that lists every problem."""
    faults = faults_of(text, source)
    stated, servers = read_tables(faults, profile, directory)
    if not faults.document.values.keys().isdisjoint(GATEWAY_TABLES):
        from neuroscript.config.gateway_file import read_gateway

        read_gateway(faults, servers, directory)
    if faults.found:
        raise faults.error(source)
    return stated, servers


def faults_of(text: str, source: str) -> Faults:
    """Return the parsed text of a policy file, with its unknown tables as problems.

    Raises:
        SpecError: The text is not valid TOML.
    """
    try:
        document = parse_toml(text)
    except TomlError as error:
        raise SpecError(quote_untrusted(source), [error.hint], [error.line]) from None
    faults = Faults(document)
    faults.only((), document.values, TABLES)
    return faults


def read_tables(faults: Faults, profile: str | None, directory: str) -> tuple[dict[str, Any], tuple[ServerTable, ...]]:
    """Return the settings of the policy and the servers in a file, and note every problem.

    Args:
        directory: The directory of the file, which relative paths start from.
    """
    stated = _stated(faults, profile)
    return stated, tables_in(faults, ("mcp",), faults.document.values.get("mcp", {}), directory)


def _stated(faults: Faults, profile: str | None) -> dict[str, Any]:
    """Return the settings of the document, with parts replaced by the profile."""
    place = ("policy",)
    table = faults.table(place, faults.document.values.get("policy", {}))
    base = policy_section(faults, place, table, (*KEYS, "profiles"))
    profiles = _profiles(faults, (*place, "profiles"), table.get("profiles", {}))
    if profile is None:
        return base
    if profile not in profiles:
        faults.unknown((*place, "profiles", profile), profiles, "unknown profile")
        return base
    chosen = profiles[profile]
    merged = {key: {**base.get(key, {}), **chosen.get(key, {})} for key in ("limits", "isolation")}
    return {**base, **chosen, **merged}


def _profiles(faults: Faults, place: Place, value: object) -> dict[str, dict[str, Any]]:
    table = faults.table(place, value)
    return {
        name: policy_section(faults, (*place, name), faults.table((*place, name), each), KEYS)
        for name, each in table.items()
    }


def policy_section(faults: Faults, place: Place, table: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of a table, as keyword arguments of a policy, of its limits and of its isolation.

    Args:
        known: The keys of the table. Those that are not settings of a policy are left out.
    """
    stated: dict[str, Any] = {}
    for key, value in table.items():
        here = (*place, key)
        if key in LISTS:
            stated[key] = tuple(_texts(faults, here, value))
        elif key in SWITCHES:
            stated[key] = value
            if not isinstance(value, bool):
                faults.note(here, "must be true or false")
        elif key == "otherwise":
            stated[key] = value
            faults.judge(here, ExecutionPolicy, key, value)
        elif key == "flow":
            stated[key] = _flow(faults, here, value)
        elif key == "labels":
            stated[key] = tuple(_labels(faults, here, value))
        elif key == "limits":
            stated[key] = _limits(faults, here, faults.table(here, value))
        elif key == "isolation":
            stated[key] = _isolation(faults, here, faults.table(here, value))
        elif key not in known and key in COUNTS:
            faults.note(here, f"is a limit; write it under [{place_name((*place, 'limits'))}]")
        elif key not in known:
            faults.unknown(here, known)
    return stated


def _texts(
    faults: Faults, place: Place, value: object, kind: Callable[..., object] = ExecutionPolicy, field: str = ""
) -> Iterator[str]:
    """Yield the strings of an array; problems that *kind* finds in one of them are reported on its line.

    Args:
        kind: What validates the strings.
        field: The name that *kind* has for the key.
    """
    key = field or str(place[-1])
    if not isinstance(value, list):
        faults.note(place, "must be an array of strings, in brackets")
        return
    texts = [each for each in value if isinstance(each, str)]
    is_right = not problems(kind, key, texts)  # the common case; strings are then not checked one by one
    for index, each in enumerate(value):
        here = (*place, index)
        if not isinstance(each, str):
            faults.note(here, "must be a string, in quotes")
        elif is_right or faults.judge(here, kind, key, (each,)):
            yield each
    if not value:
        faults.judge(place, kind, key, ())


# Information flow


def _flow(faults: Faults, place: Place, value: object) -> str | tuple[FlowRule, ...]:
    """Return the name of a built-in profile, or rules."""
    if isinstance(value, str):
        faults.judge(place, ExecutionPolicy, "flow", value)
        return value
    return tuple(_rules(faults, place, value))


def _rules(faults: Faults, place: Place, value: object) -> Iterator[FlowRule]:
    for here, table in _tables(faults, place, value, ", or the name of a profile, in quotes"):
        before = len(faults.found)
        faults.only(here, table, RULE_FIELDS)
        _require(faults, here, table, ("from", "to"))
        stated: dict[str, Any] = {}
        for key, field in RULE_FIELDS.items():
            if key in ("from", "to") and key in table:
                stated[field] = tuple(_texts(faults, (*here, key), table[key], _rule_of, field))
            elif key in table:
                stated[field] = table[key]
                faults.judge((*here, key), _rule_of, field, table[key])
        if len(faults.found) == before:
            yield FlowRule(**stated)


def _rule_of(**stated: Any) -> FlowRule:
    """Return a rule with one field of a table, which validates this field."""
    return FlowRule(**{"labels": ("*",), "to": ("*",), **stated})


def _labels(faults: Faults, place: Place, value: object) -> Iterator[FlowLabels]:
    """Yield the labels of each pattern; a single pattern needs no brackets."""
    for here, table in _tables(faults, place, value):
        before = len(faults.found)
        faults.only(here, table, ("tools", *LABEL_KEYS))
        _require(faults, here, table, ("tools",))
        patterns: tuple[str, ...] = ()
        if isinstance(tools := table.get("tools"), str):
            patterns = (tools,)
            faults.judge((*here, "tools"), FlowLabels, "tools", tools)
        elif "tools" in table:
            patterns = tuple(_texts(faults, (*here, "tools"), tools, _labels_of))
        stated = {
            key: tuple(_texts(faults, (*here, key), table[key], _labels_of)) for key in LABEL_KEYS if key in table
        }
        if len(faults.found) == before:
            yield from (FlowLabels(pattern, **stated) for pattern in patterns)


def _labels_of(tools: Sequence[str] = ("*",), **stated: Any) -> tuple[FlowLabels, ...]:
    """Return the labels of several patterns with one field of a table, which validates this field."""
    if not tools:
        raise SpecError("flow labels", ["tools is empty; write '*' for all"])
    return tuple(FlowLabels(pattern, **stated) for pattern in tools)


def _tables(faults: Faults, place: Place, value: object, others: str = "") -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the tables of an array, each with its place.

    Args:
        others: What else the value may be.
    """
    text = f"must be tables, [[{place_name(place)}]]{others}"
    if not isinstance(value, list):
        faults.note(place, text)
        return
    for index, each in enumerate(value):
        if isinstance(each, dict):
            yield (*place, index), each
        else:
            faults.note((*place, index), text)


def _require(faults: Faults, place: Place, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key not in table:
            faults.note(place, f"{key} is missing")


# Limits


def _limits(faults: Faults, place: Place, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits that `Limits` has validated."""
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
                here, f'contains names; put a name with a dot in quotes: "{quote_untrusted(_dotted(name, value))}"'
            )
        else:
            faults.judge(here, Limits, key, {name: value}, f"{key}[{quote_untrusted(name)!r}]")


def _dotted(name: str, value: object) -> str:
    """Return the dotted name that was probably meant, up to the first table with several keys."""
    while isinstance(value, dict) and value:
        further, value = next(iter(value.items()))
        name = f"{name}.{further}"
    return name


# Isolation


def _isolation(faults: Faults, place: Place, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that `Isolation` has validated."""
    from neuroscript.policy.isolation import Isolation  # other policies do not need it

    keys = tuple(field.name for field in attrs.fields(Isolation) if field.init)
    faults.only(place, table, keys)
    stated: dict[str, Any] = {}
    for key, value in table.items():
        here = (*place, key)
        if key in ISOLATION_LISTS:
            stated[key] = tuple(_texts(faults, here, value, Isolation))
        elif key in ("reuse", "programs") and not isinstance(value, bool):
            faults.note(here, "must be true or false")
        elif key in keys:
            stated[key] = float(value) if isinstance(value, Decimal) else value
            faults.judge(here, Isolation, key, stated[key])
    return stated
