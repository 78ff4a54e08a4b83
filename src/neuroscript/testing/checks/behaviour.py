"""Contract checks of a tool's behaviour, by calls through a real engine."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Final

from neuroscript.errors import UNSET, CallError, CallTimeout, ReturnError
from neuroscript.policy.labels import covers
from neuroscript.testing.checks.check_case import ContractCheck
from neuroscript.testing.checks.contract import is_refused
from neuroscript.testing.checks.samples import CANARY
from neuroscript.testing.checks.setup import World
from neuroscript.testing.checks.trials import ENTRY_POINTS, Bench, Log, Trial, exact, run_trial
from neuroscript.tools.tool import ToolImplementation

THREADS: Final = 8

WAITING: Final = 30.0
"""Seconds that a thread waits for the others to begin."""

EFFECTS: Final = {
    "now": ("clock",),
    "random": ("random",),
    "prompt_user": ("prompts",),
    "llm": ("model",),
    "get_var": ("reads",),
    "set_var": ("writes",),
    "update_var": ("writes",),
    "secret": ("reads",),
}
"""The effects that may declare the use of each member of the Runtime."""

READING: Final = frozenset({"read_bytes", "read_text", "hash"})
"""Methods of ``rt.fs`` that read the content of a file."""

WRITING: Final = frozenset({"write_bytes", "write_text", "append", "mkdir", "delete", "move"})
"""Methods of ``rt.fs`` that change files."""

PATHS: Final = "sandbox."
"""Codes of errors that may contain a path inside the sandbox, the only argument value permitted in errors."""

HARMLESS: Final = frozenset({"cancelled", "deadline", "progress", "logger", "spend"})
"""Members of the Runtime that a pure tool may use, because they do not affect its result."""


def _examples(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for example, trial in bench.examples(tool):
        code = "" if trial.error is None else trial.error.code
        if example.error and code != example.error:
            yield f"{trial.what} declares the error {example.error}, but it {_outcome_text(code)}"
        elif not example.error and code:
            yield f"{trial.what} {_outcome_text(code)}"
        elif example.result is not UNSET and repr(exact(example.result)) != trial.came:
            yield f"{trial.what} returns a different result from the one it declares"


def _outcome_text(code: str) -> str:
    return f"fails with {code}" if code else "succeeds"


def _in_time(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    most = bench.setup.seconds
    for _, trial in bench.examples(tool):
        if trial.seconds > most or isinstance(trial.error, CallTimeout):
            yield f"{trial.what} takes longer than {most:g} seconds"


def _crashes(bench: Bench, tool: ToolImplementation, kind: str) -> Iterator[str]:
    crashes = {f"{trial.what} raises {trial.crash}" for trial in bench.varied(tool, kind) if trial.crash}
    yield from sorted(crashes)


def _common(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from _crashes(bench, tool, "common")


def _hard(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from _crashes(bench, tool, "hard")


def _choices(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from _crashes(bench, tool, "choices")


def _none(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from _crashes(bench, tool, "none")


def _omitted(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from _crashes(bench, tool, "omitted")


def _typed(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    wrong = {f"{trial.what}: {trial.error}" for trial in bench.all_trials(tool) if isinstance(trial.error, ReturnError)}
    yield from sorted(wrong)


def _discreet(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for trial in bench.all_trials(tool):
        if trial.error is None or trial.error.code.startswith(PATHS):
            continue
        if CANARY in f"{trial.error} {trial.error.args!r}":
            yield f"{trial.what} is repeated in the error {trial.error.code}"


def _unchanged_arguments(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    changed = (trial for trial in bench.all_trials(tool) if trial.seen is not None and trial.seen.changed)
    yield from sorted({f"{trial.what}: the function changes an argument" for trial in changed})


def _released(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if any(trial.kept for _, trial in bench.examples(tool)):
        yield "its Runtime is still referenced after the call has ended"


def _deterministic(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" in tool.policy.effects:
        for first, second in bench.twice(tool):
            if first.came != second.came:
                yield f"it is declared pure, but {first.what} returns a different result the second time"


def _alone(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" in tool.policy.effects:
        used = {name for trial in bench.all_trials(tool) if trial.seen for name in trial.seen.members} - HARMLESS
        yield from (f"it is declared pure, but uses rt.{name}" for name in sorted(used))


def _idempotent(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "idempotent" in tool.policy.effects and "pure" not in tool.policy.effects:
        for first, second in bench.twice(tool):
            if first.state != second.state:
                yield f"it is declared idempotent, but a second {first.what} changes files or variables again"


def _threads(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" not in tool.policy.effects:
        return
    for index, example in enumerate(tool.spec.examples, 1):
        with bench.setup.world(bench.tools) as world:
            args = bench.prepared(world, tool, example.args)
            alone = run_trial(world, Log(), tool, args, "").came
            if set(_at_once(world, tool, args)) != {alone}:
                yield f"example {index} returns a different result when {THREADS} threads call it at once"


def _at_once(world: World, tool: ToolImplementation, args: Any) -> Iterator[str]:
    """Yield the outcome of a call on each of several threads that start together."""
    barrier = Barrier(THREADS)

    def one(_: int) -> str:
        barrier.wait(WAITING)
        return run_trial(world, Log(), tool, args, "").came

    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(one, range(THREADS))


def _entry_points(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    first = bench.examples(tool)
    for method in ENTRY_POINTS:
        for (example, one), (_, other) in zip(first, bench.examples(tool, method), strict=True):
            is_known = example.result is not UNSET or "pure" in tool.policy.effects
            if _compared(one, is_known) != _compared(other, is_known):
                yield f"{one.what} behaves differently through {method} than through call"


def _compared(trial: Trial, is_known: bool) -> str:
    """Return what has to be equal: the outcome if only arguments and setup determine it, otherwise its type."""
    if trial.error is not None or is_known:
        return trial.came
    return type(trial.value).__name__


def _streams(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if not tool.spec.stream or is_refused(tool) or tool.is_coroutine:
        return
    for index, example in enumerate(tool.spec.examples, 1):
        if example.error:
            continue
        with bench.setup.world(bench.with_watch(tool)) as world:
            items = world.engine.stream(tool.name, bench.prepared(world, tool, example.args))
            for _ in items:
                break
            if not _ends(items, bench.last_source()):
                yield f"example {index}: its generator continues after it was closed"


def _ends(items: Any, source: object) -> bool:
    """Close a stream, and return whether its generator has ended."""
    try:
        items.close()
    except CallError:
        return False
    return not inspect.isgenerator(source) or source.gi_frame is None


def _undeclared_effects(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" in tool.policy.effects:
        return
    used = {name for trial in bench.all_trials(tool) if trial.seen for name in trial.seen.members}
    for name in sorted(used & EFFECTS.keys()):
        if not set(EFFECTS[name]).intersection(tool.policy.effects):
            yield f"it uses rt.{name}, but its effects do not include {' or '.join(EFFECTS[name])}"


def _undeclared_labels(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    policy = tool.policy
    used = {name for trial in bench.all_trials(tool) if trial.seen for name in trial.seen.files}
    sources = None if policy.sources is None else (*policy.sources, *policy.declassifies)
    for methods, field, labels, needed in (
        (READING, "sources", sources, "private"),
        (WRITING, "sinks", policy.sinks, "storage"),
    ):
        if labels is not None and not any(covers(needed, each) for each in labels):
            yield from (
                f"it uses rt.fs.{name}, but its {field} do not include {needed}" for name in sorted(used & methods)
            )


BEHAVES: Final = ("examples-correct", "examples-finish")

CHECKS: Final = (
    ContractCheck("examples-finish", "Each example ends within the time limit.", _in_time),
    ContractCheck(
        "examples-correct",
        "Each example returns the result or the error that it declares.",
        _examples,
        ("examples-finish",),
    ),
    ContractCheck("result-type", "The function always returns a value of the declared type.", _typed),
    ContractCheck(
        "values-accepted", "Every common value of a declared type leads to a result or a deliberate failure.", _common
    ),
    ContractCheck(
        "rare-values-accepted", "Every rare value does too, such as NUL, the largest numbers and deep lists.", _hard
    ),
    ContractCheck(
        "choices-accepted", "Every choice of an argument leads to a result or a deliberate failure.", _choices
    ),
    ContractCheck(
        "none-accepted", "None leads to a result or a deliberate failure if the argument is nullable.", _none
    ),
    ContractCheck(
        "omitted-accepted", "Omitting an optional argument leads to a result or a deliberate failure.", _omitted
    ),
    ContractCheck(
        "errors-redacted",
        "Errors contain no argument values, except paths in the sandbox and shortened names.",
        _discreet,
    ),
    ContractCheck("arguments-unchanged", "The function does not change its arguments.", _unchanged_arguments),
    ContractCheck("runtime-released", "The Runtime is not referenced after the call has ended.", _released),
    ContractCheck(
        "deterministic",
        "A pure tool returns the same result for the same arguments.",
        _deterministic,
        ("pure-isolated",),
    ),
    ContractCheck("pure-isolated", "A pure tool uses no part of the Runtime that reads or changes anything.", _alone),
    ContractCheck("idempotent", "A second call of an idempotent tool changes nothing.", _idempotent),
    ContractCheck(
        "thread-safe",
        "A pure tool returns the same result when eight threads call it at once.",
        _threads,
        ("deterministic", *BEHAVES),
    ),
    ContractCheck(
        "entry-points-agree",
        "`call`, `acall` and `execute` behave the same.",
        _entry_points,
        ("deterministic", "examples-finish"),
    ),
    ContractCheck("streams-close", "The generator of a stream ends when its reader stops.", _streams),
    ContractCheck(
        "effects-declared", "The effects of a tool declare what it does with the Runtime.", _undeclared_effects
    ),
    ContractCheck(
        "labels-declared", "Declared sources and sinks include what a tool does with files.", _undeclared_labels
    ),
)
