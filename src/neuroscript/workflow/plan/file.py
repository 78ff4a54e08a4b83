"""Plans in TOML, JSON and plain data: parsed completely or rejected with every problem and its line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import STRING, require
from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, quote_untrusted
from neuroscript.io.text import parse_json as parsed_json
from neuroscript.io.text_files import read_text_file
from neuroscript.io.toml import TomlDocument, TomlError, parse_toml
from neuroscript.io.toml_errors import Faults, place_name
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.serialization import ARG_KEYS, spec_from_data, spec_to_data
from neuroscript.workflow.plan.model import Node, Plan, Retry

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""Maximum bytes of a plan file."""

PLAN: Final = ("name", "description", "inputs", "nodes", "output", "synthesis")
NODE: Final = tuple(field.name for field in attrs.fields(Node) if field.init and field.name != "name")
RETRY: Final = tuple(field.name for field in attrs.fields(Retry))


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan in a file: JSON if the name ends in ``.json``, otherwise TOML.

    Args:
        path: A UTF-8 file of at most `MAX_FILE_BYTES` bytes.

    Raises:
        SpecError: If the file cannot be read or the plan is invalid; for TOML, its ``lines`` name the lines.
    """
    name = Path(path).name or str(path)
    text = read_text_file(path, quote_untrusted(name), MAX_FILE_BYTES)
    return (plan_of_json if Path(path).suffix.lower() == ".json" else plan_of_toml)(text, source=name)


def plan_of_toml(text: str, *, source: str = "plan") -> Plan:
    """Return the plan in TOML text, or raise a `SpecError` with every problem.

    Args:
        source: The name to use in errors.

    >>> plan_of_toml('[nodes.a]\\ntool = "math.add"\\ninputs = { a = 1, b = 2 }').nodes[0].tool
    'math.add'
    """
    require("plan_of_toml", text=(text, STRING), source=(source, STRING))
    try:
        document = parse_toml(text)
    except TomlError as error:
        raise SpecError(quote_untrusted(source), [error.hint], [error.line]) from None
    return _plan(Faults(attrs.evolve(document, values=_with_floats(document.values))), source)


def plan_of_json(text: str, *, source: str = "plan") -> Plan:
    """Return the plan in JSON text, or raise a `SpecError` with every problem."""
    require("plan_of_json", text=(text, STRING), source=(source, STRING))
    try:
        data = parsed_json(text)
    except NotJSON as error:
        raise SpecError(quote_untrusted(source), [f"invalid JSON: {error.hint}"]) from None
    return plan_from_data(data, source=source)


def problem_lines(text: str, problems: Sequence[str]) -> tuple[int, ...]:
    """Return the line of each problem of `check` in the TOML text of a plan; 1 if its place is not in the text.

    >>> problem_lines('[nodes.a]\\ntool = "math.ad"\\n', ["nodes.a.tool: no such tool", "synthesis: needs a model"])
    (2, 1)
    """
    try:
        document = parse_toml(text)
    except TomlError:
        return (1,) * len(problems)
    nodes = document.values.get("nodes")
    indexes = {each.get("name"): index for index, each in enumerate(nodes)} if isinstance(nodes, list) else {}
    return tuple(_line_at(document, problem, indexes) for problem in problems)


def _line_at(document: TomlDocument, problem: str, indexes: Mapping[Any, int]) -> int:
    path: list[str | int] = [*problem.partition(":")[0].partition("[")[0].split(".")]
    if path[0] == "nodes" and len(path) > 1 and path[1] in indexes:
        path[1] = indexes[path[1]]
    return document.line(tuple(path))


def plan_from_data(data: Any, *, source: str = "plan") -> Plan:
    """Return the plan in plain data: tables by name as in TOML, or ``nodes`` as a list with names.

    Raises:
        SpecError: With every problem and its path.
    """
    if not isinstance(data, Mapping):
        raise SpecError(quote_untrusted(source), [f"expected a table, got {type_name(data)}"])
    return _plan(Faults(TomlDocument(dict(data), {})), source)


def plan_to_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON-compatible data; default values are left out."""
    data: dict[str, Any] = {name: getattr(plan, name) for name in ("name", "description") if getattr(plan, name)}
    if plan.inputs:
        args = spec_to_data(plan.signature)["args"]
        data["inputs"] = {arg["name"]: _input_data(arg) for arg in args}
    data["nodes"] = {node.name: _node_data(node) for node in plan.nodes}
    data |= {"output": to_plain(plan.output)} if plan.output is not None else {}
    return data | ({"synthesis": plan.synthesis} if plan.synthesis else {})


def _input_data(arg: Mapping[str, Any]) -> dict[str, Any]:
    words = {key: name for name, key in ARG_KEYS.items()}
    usual = ("name",) if arg["description"] else ("name", "description")
    return {words.get(key, key): value for key, value in arg.items() if key not in usual}


def _node_data(node: Node) -> dict[str, Any]:
    usual = Node(name=node.name, tool=node.tool)
    told = {name: getattr(node, name) for name in NODE if getattr(node, name) != getattr(usual, name)}
    if "retry" in told:
        told["retry"] = attrs.asdict(node.retry, filter=lambda field, value: value != field.default)
    data: dict[str, Any] = to_plain({"tool": node.tool, **told})
    return data


def _plan(faults: Faults, source: str) -> Plan:
    values = faults.document.values
    faults.only((), values, PLAN)
    texts = {key: _text(faults, key) for key in ("name", "description", "synthesis")}
    inputs = tuple(_inputs(faults))
    nodes = tuple(_nodes(faults))
    if not faults.found:
        try:
            return Plan(nodes=nodes, inputs=inputs, output=values.get("output"), **texts)
        except SpecError as error:
            for problem in error.problems:
                faults.found.append((_line_of(faults, problem), problem))
    raise faults.error(source, has_lines=bool(faults.document.lines))


def _line_of(faults: Faults, problem: str) -> int:
    """Return the line of the nearest table that a problem of the whole plan starts with."""
    path = problem.partition(":")[0].partition("[")[0].split(".")
    return faults.document.line(tuple(path))


def _text(faults: Faults, key: str) -> str:
    value = faults.document.values.get(key, "")
    if type(value) is str:
        return value
    faults.note((key,), f"expected a string, got {type_name(value)}")
    return ""


def _inputs(faults: Faults) -> Iterator[ArgSpec]:
    for name, table in faults.table(("inputs",), faults.document.values.get("inputs", {})).items():
        place = ("inputs", name)
        data = {"type": table} if type(table) is str else faults.table(place, table)
        try:
            options = {ARG_KEYS.get(key, key): value for key, value in data.items()}
            (arg,) = spec_from_data({"name": "inputs", "groupname": "plan", "args": [{**options, "name": name}]}).args
            yield arg
        except SpecError as error:
            for problem in error.problems:
                faults.note(place, problem.partition(" @ ")[0])


def _nodes(faults: Faults) -> Iterator[Node]:
    tables = faults.document.values.get("nodes", {})
    if isinstance(tables, list):
        for index, each in enumerate(tables):
            table = faults.table(("nodes", index), each)
            if table is each:
                yield from _node(faults, ("nodes", index), table.get("name"), _without_name(table))
        return
    for name, each in faults.table(("nodes",), tables).items():
        table = faults.table(("nodes", name), each)
        if table is each:
            yield from _node(faults, ("nodes", name), name, table)


def _without_name(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "name"}


def _node(faults: Faults, place: tuple[str | int, ...], name: Any, table: Mapping[str, Any]) -> Iterator[Node]:
    faults.only(place, table, NODE)
    known = {key: value for key, value in table.items() if key in NODE}
    known["tool"] = known.get("tool", "")
    if isinstance(known.get("depends_on"), list):
        known["depends_on"] = tuple(known["depends_on"])
    if "retry" in known:
        known["retry"] = _retry(faults, (*place, "retry"), known["retry"])
    try:
        yield Node(name=name, **known)
    except SpecError as error:
        for problem in error.problems:
            key = problem.partition(" ")[0].rstrip(":").partition(".")[0].partition("[")[0]
            at = (*place, key) if key in table else place
            text = f"{place_name(place)}.{problem}"
            faults.found.append((faults.document.line(at), text))


def _retry(faults: Faults, place: tuple[str | int, ...], told: Any) -> Retry:
    if type(told) is int:
        told = {"count": told}
    table = faults.table(place, told)
    faults.only(place, table, RETRY)
    known = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items() if key in RETRY}
    right: dict[str, Any] = {
        key: value for key, value in known.items() if faults.judge((*place, key), Retry, key, value)
    }
    return Retry(**right)


def _with_floats(value: Any) -> Any:
    """Return values with decimals converted to floats, because a plan needs no exact decimals."""
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {key: _with_floats(each) for key, each in value.items()}
        case list():
            return [_with_floats(each) for each in value]
        case _:
            return value
