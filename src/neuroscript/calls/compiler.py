"""Compilation of a call pipeline to one generated function, for tools whose function is called directly.

The function does what `CallPipeline.steps` does. If an argument is not obviously valid, it calls the steps.
Handwritten code around `bind_arguments` would cost 180 ns more per call. The tests run every case both ways.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from neuroscript.calls.codegen import GLOBALS, CodeWriter, write_named_binding, write_positional_binding
from neuroscript.calls.pipeline import CallPipeline
from neuroscript.calls.steps import CallFrame, report_failure
from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.types import EXACT
from neuroscript.errors import ArgumentError
from neuroscript.spec.binding import bind_arguments
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.tool import WithoutRuntime

if TYPE_CHECKING:
    from neuroscript.calls.gate import Gate

FILE: Final = "<neuroscript call>"
"""The file name of compiled functions, in tracebacks and on stacks."""

FALLBACK: Final = "return fallback(given, frame)"
STOP: Final = "return undecided"
INDENT: Final = "    "

UNDECIDED: Final = object()
"""Returned instead of a result by a function that runs only calls without repairs; nothing has happened then."""

CompiledCall = Callable[..., Any]
"""``(given, frame)`` in, the result out; without a frame the call comes from outside."""


def compile_pipeline(
    pipeline: CallPipeline, fallback: CompiledCall, by_name: bool
) -> Callable[[CallFrame], CompiledCall]:
    """Return a factory of the pipeline as one function; the factory takes the frame of calls from outside.

    Args:
        fallback: Runs the same call through `CallPipeline.steps`; used also if nothing can be compiled.
        by_name: Whether the arguments are a dict.
    """
    write = write_named_binding if by_name else write_positional_binding
    mark = "changed = True" if _reports_repairs(pipeline) else "pass"
    return _compiled(pipeline, write, FALLBACK, mark, {"fallback": fallback})


def compile_exact(pipeline: CallPipeline) -> Callable[[CallFrame], CompiledCall]:
    """Return a factory of the pipeline for arguments by name that need no repair.

    For all other arguments the function returns `UNDECIDED` before any check or record of the call.
    """
    return _compiled(pipeline, write_named_binding, STOP, STOP, {"undecided": UNDECIDED})


def _reports_repairs(pipeline: CallPipeline) -> bool:
    return pipeline.gate is not None and pipeline.gate.has_observers


def _compiled(
    pipeline: CallPipeline, write: Callable[..., bool], doubt: str, mark: str, names: dict[str, object]
) -> Callable[[CallFrame], CompiledCall]:
    """Return a factory of the pipeline as one function.

    Args:
        write: Adds the statements that bind the arguments.
        doubt: The statement to execute where the general path must decide.
        mark: The statement to execute where a value was converted.
        names: What *doubt* refers to, by name.
    """
    source = CodeWriter()
    statements = source.inner()
    if pipeline.tracks_flow:  # only calls without labels are compiled
        source.head("flow = root.session.memory.flow")
        statements.add("if flow.is_labelled or frame.parent is not None:", f"    {doubt}")
    if write(pipeline.tool.spec, pipeline.coercion, statements, doubt, mark):
        _add_body(statements, pipeline)
    else:
        statements.add(doubt)
    source.add("def compiled(given, frame=root):", *["    changed = False"] * _reports_repairs(pipeline))
    source.add(*statements.lines, indent=1)
    return _made(source, {**names, "failed": report_failure, "tool": pipeline.tool.name})


def compile_binder(spec: ToolSpec, coercion: CoercionSettings) -> Callable[[object], tuple[Any, ...]]:
    """Return a compiled function that returns the exact values of arguments by name, as `bind_arguments` does."""

    def fallback(given: object, _: object = None) -> tuple[Any, ...]:
        return bind_arguments(spec, coercion, given, by_name=True)

    source = CodeWriter()
    statements = source.inner()
    if not write_named_binding(spec, coercion, statements, FALLBACK):
        return fallback
    statements.add(f"return ({''.join(f'a{index}, ' for index in range(len(spec.args)))})")
    source.add("def compiled(given, frame=root):")
    source.add(*statements.lines, indent=1)
    made: Callable[[object], tuple[Any, ...]] = _made(source, {"fallback": fallback})(None)  # type: ignore[arg-type]
    return made


def _add_body(source: CodeWriter, pipeline: CallPipeline) -> None:
    values = [f"a{index}" for index in range(len(pipeline.tool.spec.args))]
    if pipeline.is_secret:
        source.add(f"{source.name(pipeline.register_secrets)}(frame, ({''.join(f'{value}, ' for value in values)}))")
    if pipeline.tool.templates:
        source.add(f"frame = {source.name(pipeline.authorize)}({', '.join(['frame', *values])})")
    instances = source.inner()
    handed = _add_instances(instances, pipeline, values)
    if pipeline.gate is None:
        source.add(*instances.lines)
        _add_call(source, pipeline, handed)
        source.add("return result")
    else:
        _add_gated_call(source, pipeline, pipeline.gate, values, instances, handed)


def _add_instances(source: CodeWriter, pipeline: CallPipeline, values: list[str]) -> list[str]:
    """Add the statements that make instances of classes, and return the names of what the function receives."""
    handed = [*values]
    if not pipeline.makers:
        return handed
    from neuroscript.calls.instance_codegen import is_made_in_place, write_instances

    spec, classes = pipeline.tool.spec, pipeline.tool.classes
    is_kept = pipeline.gate is not None or pipeline.tool.templates  # something else reads the exact values
    in_place = [
        index
        for index, _ in pipeline.makers
        if not is_kept and spec.args[index].name not in classes and is_made_in_place(spec.args[index])
    ]
    others = [(index, maker) for index, maker in pipeline.makers if index not in in_place]
    if others:
        source.add("try:")
        for index, maker in others:
            handed[index] = f"m{index}"
            source.add(f"    m{index} = {source.name(maker)}({values[index]})")
        exact = "".join(f"{value}, " for value in values)
        source.add(f"except {source.name(ArgumentError)} as error:")
        source.add(f"    raise {source.name(pipeline.refused)}(frame, error, ({exact})) from error.__cause__")
    for index in in_place:
        write_instances(values[index], spec.args[index], source)
    return handed


def _add_gated_call(
    source: CodeWriter, pipeline: CallPipeline, gate: Gate, values: list[str], instances: CodeWriter, handed: list[str]
) -> None:
    call = source.inner()
    _add_call(call, pipeline, handed)
    if gate.is_plain:
        from neuroscript.calls.gate_codegen import write_gated_call

        write_gated_call(source, gate, instances, call, pipeline.tool.spec.args, pipeline.repaired)
        return
    source.add(f"values = ({''.join(f'{value}, ' for value in values)})")
    if gate.decides:
        source.add(f"{source.name(gate.decide)}(frame, values)")
    source.add(*instances.lines)
    made = f"{source.name(pipeline.repairs)}(given, values) if changed else ()" if gate.has_observers else "()"
    source.add(f"frame = {source.name(gate.enter)}(frame, values, {made})")
    leave = source.name(gate.leave)
    source.add("try:")
    source.add(*call.lines, indent=1)
    source.add("except BaseException as error:", f"    {leave}(frame, error)", "    raise")
    source.add(f"{leave}(frame, None, result)", "return result")


def _add_call(source: CodeWriter, pipeline: CallPipeline, values: list[str]) -> None:
    """Add the statements from exact values to the exact result, stored in ``result``."""
    if isinstance(pipeline.tool.func, WithoutRuntime):
        call, before, after = source.name(pipeline.tool.func.func), [], []
    else:
        call, values = source.name(pipeline.tool.func), ["rt", *values]
        before = [f"rt = {source.name(pipeline.runtime)}()", "rt._frame = frame"]
        after = ["finally:", "    rt._frame = None"]
        if pipeline.gate is not None and pipeline.gate.is_plain:
            before.append("rt._call = call")
            after.insert(1, "    own = rt._frame")
    source.add(*before, "try:", f"    result = {call}({', '.join(values)})", "except BaseException as error:")
    source.add("    raise failed(error, frame)", *after)
    has_exact_type = pipeline.max_result_bytes is None and pipeline.tool.spec.returns is None
    test = EXACT.get(pipeline.tool.spec.return_type, "False").format("result") if has_exact_type else "False"
    source.add(f"if not ({test}):", f"    result = {source.name(pipeline.check_result)}(result, frame)")


def _made(source: CodeWriter, names: dict[str, object]) -> Callable[[CallFrame], CompiledCall]:
    """Return the factory of the function that a source describes; identical sources are compiled once."""
    parameters = [*names, *(f"k{index}" for index in range(len(source.objects))), "root"]
    lines = [*source.heads, *source.lines, "return compiled"]
    text = "\n".join([f"def make({', '.join(parameters)}):", *(f"{INDENT}{each}" for each in lines)])
    namespace: dict[str, Any] = dict(GLOBALS)
    exec(_code(text), namespace)
    return functools.partial(namespace["make"], *names.values(), *source.objects)


@functools.lru_cache(maxsize=1024)
def _code(text: str) -> CodeType:
    return compile(text, FILE, "exec")
