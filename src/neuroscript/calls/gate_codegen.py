"""Generated code for the checks and observers around a function, as statements of its compiled pipeline.

The statements do what `Gate.enter` and `Gate.leave` do. A pipeline that records the content of its calls calls these
methods instead. The tests run every case both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, time
from typing import Final

from neuroscript.calls.codegen import CodeWriter
from neuroscript.calls.gate import NOTHING_SPENT, SIZED_TYPES, Gate
from neuroscript.coercion.types import BUILTINS
from neuroscript.runtime.records import CallRecord, labelled_record
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.fingerprints import PLAIN


def write_gated_call(
    source: CodeWriter,
    gate: Gate,
    instances: CodeWriter,
    call: CodeWriter,
    args: tuple[ArgSpec, ...],
    repairs: Callable[..., object],
) -> None:
    """Add a call of the function with what happens before and after it.

    Args:
        source: Receives the statements. The exact values are ``a0``, ``a1`` and so on, and the frame is ``frame``.
        instances: The statements that make instances of classes, after all checks.
        call: The statements of the call itself. They read its number from ``call`` and set ``result``, and ``own`` to
            the frame of this call alone, if it has one.
        args: The argument specs, one for each value.
        repairs: Returns what was converted, from the arguments and the exact values; called where ``changed`` is true,
            and where a limit refuses the call.
    """
    given = f"({''.join(f'a{index}, ' for index in range(len(args)))})"
    if gate.decides:
        source.add(f"{source.name(gate.decide)}(frame, {given})")
    source.add(*instances.lines)
    kinds = tuple(BUILTINS[arg.type] for arg in args if arg.type in BUILTINS and arg.required and not arg.nullable)
    static = len(kinds) == len(args)
    _add_digest(source, gate, given, static and PLAIN.issuperset(kinds))
    if gate.has_observers:
        plain_clock = gate.clock is time
        moment = source.name(gate.clock if plain_clock else gate.moment)
        source.add(f"time = {moment}({'' if plain_clock else f'frame, {given}'})")
    if gate.counts:
        source.head("begin, end, reserved = root.session.ledger.compiled(tool)")
        source.add(*COUNTING.splitlines())
        converted = f"{source.name(repairs)}(given, {given})"
        source.add(
            f"        raise {source.name(gate.refusal_before_start)}(frame, error, {given}, {converted}) from None"
        )
    source.add(f"call = {source.name(gate.next_number)}()", "own = None")
    if gate.has_observers:
        source.add(f"made = {source.name(repairs)}(given, {given}) if changed else ()")
        _add_beginning(source, gate, given, kinds if static else None)
        if gate.observes_starts:
            record, begun = _record(source, gate, "intent"), "begun" if gate.counts else "None"
            source.add(f"{source.name(gate.begin)}(frame, {record}, {begun}, {given})")
    source.add("try:")
    source.add(*call.lines, indent=1)
    source.add("except BaseException as error:")
    if gate.counts:
        source.add("    if end: end(frame)")
    if gate.tracks_flow:
        settle = source.name(gate.settle)
        source.add(f"    if own in flow.opened: {settle}(own, error)")
    if gate.has_observers:
        source.add(
            f"    {source.name(gate.failed)}(frame, error, own, call, time, types, sizes, digest, made, started)"
        )
    source.add("    raise")
    if gate.counts:
        source.add("if end: end(frame)")
    if gate.tracks_flow:
        source.add(f"labels = {settle}(own, None, result) if own in flow.opened else ()")
    if gate.has_observers:
        _add_record(source, gate)
    source.add("return result")


COUNTING: Final = """\
begun = None
counted = False
if reserved:
    try:
        counted = reserved.pop()
    except IndexError:
        pass
if not counted:
    try:
        begun = begin(frame, digest)
    except BaseException as error:"""
"""The beginning of a call under limits. If there is one sum of calls, most calls are counted in advance, and another
thread may make the last of these."""


def _add_digest(source: CodeWriter, gate: Gate, given: str, plain: bool) -> None:
    if not gate.needs_digest:
        source.add("digest = b''")
    elif plain:
        source.add(f"digest = {source.name(gate.digests.start.copy)}()", f"digest.update(ascii({given}).encode())")
        source.add("digest = digest.digest()")
    else:
        source.add(f"digest = {source.name(gate.digests.of)}({given})")


def _add_beginning(source: CodeWriter, gate: Gate, given: str, kinds: tuple[type, ...] | None) -> None:
    source.head("session = root.session.id")
    if kinds is None:
        source.add(f"types, sizes = {source.name(gate.types_and_sizes)}({given})")
    else:
        sizes = (f"len(a{index}), " if kind in SIZED_TYPES else "0, " for index, kind in enumerate(kinds))
        source.add(f"types = {source.name(kinds)}", f"sizes = ({''.join(sizes)})")
    source.add(f"started = {source.name(perf_counter)}()")


def _add_record(source: CodeWriter, gate: Gate) -> None:
    source.add(f"record = {_record(source, gate, 'outcome')}")
    if gate.tracks_flow:
        source.add(f"if labels: record = {source.name(labelled_record)}(record, labels)")
    for tell, lost in gate.listeners:
        source.add("try:", f"    {source.name(tell)}(record)", "except BaseException as error:")
        source.add(f"    {source.name(lost)}(error)")


def _record(source: CodeWriter, gate: Gate, kind: str) -> str:
    """Return the expression of a record: a plain tuple of its class, because calling the class costs 90 ns more."""
    nothing = source.name(NOTHING_SPENT)
    spent, code, seconds = nothing, "", "0.0"
    if kind == "outcome":
        spent, code, seconds = (
            f"{{**own.spent}} if own and own.spent else {nothing}",
            "ok",
            f"{source.name(perf_counter)}() - started",
        )
    shared = (gate.facts, gate.run, gate.policy_digest, gate.facts.rule)
    facts, run, policy, rule = (source.name(each) for each in shared)
    fields = (
        f"{kind!r}, {facts}, {run}, session, call, 0 if frame.parent is None else frame.parent.call, frame.depth",
        f"{policy}",
        f"time, {source.name(gate.needs)}(frame) if frame.needs else (), types, sizes, digest, made, {code!r}",
        f"{rule}, {spent}, {seconds}",
    )
    return f"{source.name(tuple.__new__)}({source.name(CallRecord)}, ({', '.join(fields)}))"
