"""Laws of what a tool does when it is called, each through a real engine.

Source: issue "Plugins", the publisher's kit; contract sections 3, 4 and 6.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Final

from neuroscript.errors import UNSET, CallError, CallTimeout, ReturnError
from neuroscript.testing.checks.check_case import Law
from neuroscript.testing.checks.contract import is_refused
from neuroscript.testing.checks.samples import CANARY
from neuroscript.testing.checks.setup import World
from neuroscript.testing.checks.trials import DOORS, Bench, Log, Trial, exact, tried
from neuroscript.tools.tool import ToolImplementation

THREADS: Final = 8

WAITING: Final = 30.0
"""Seconds until a thread gives up waiting for the others to begin."""

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
"""What a tool does that uses this member of the Runtime."""

PATHS: Final = "sandbox."
"""The group of errors that may name a path below the sandbox, which is the one value that an error may hold."""

HARMLESS: Final = frozenset({"cancelled", "deadline", "progress", "logger", "spend"})
"""Members of the Runtime that a pure tool may use, for they change nothing that it gives."""


def _examples(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for example, trial in bench.examples(tool):
        code = "" if trial.error is None else trial.error.code
        if example.error and code != example.error:
            yield f"{trial.what} says that it fails with {example.error}, and it {_went(code)}"
        elif not example.error and code:
            yield f"{trial.what} {_went(code)}"
        elif example.result is not UNSET and repr(exact(example.result)) != trial.came:
            yield f"{trial.what} gives another result than it says"


def _went(code: str) -> str:
    return f"fails with {code}" if code else "goes well"


def _in_time(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    most = bench.setup.seconds
    for _, trial in bench.examples(tool):
        if trial.seconds > most or isinstance(trial.error, CallTimeout):
            yield f"{trial.what} takes longer than {most:g} seconds"


def _crashes(bench: Bench, tool: ToolImplementation, kind: str) -> Iterator[str]:
    crashes = {f"{trial.what} ends in a {trial.crash}" for trial in bench.varied(tool, kind) if trial.crash}
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
            yield f"{trial.what} is repeated in the text of the error {trial.error.code}"


def _kept(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    changed = (trial for trial in bench.all_trials(tool) if trial.seen is not None and trial.seen.changed)
    yield from sorted({f"{trial.what}: the function changes an argument" for trial in changed})


def _released(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if any(trial.kept for _, trial in bench.examples(tool)):
        yield "somebody still holds its Runtime when the call has ended"


def _deterministic(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" in tool.policy.effects:
        for first, second in bench.twice(tool):
            if first.came != second.came:
                yield f"it says that it is pure, and {first.what} gives something else the second time"


def _alone(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" in tool.policy.effects:
        used = {name for trial in bench.all_trials(tool) if trial.seen for name in trial.seen.members} - HARMLESS
        yield from (f"it says that it is pure, and uses rt.{name}" for name in sorted(used))


def _idempotent(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "idempotent" in tool.policy.effects and "pure" not in tool.policy.effects:
        for first, second in bench.twice(tool):
            if first.state != second.state:
                yield f"it says that it is idempotent, and a second {first.what} changes files or variables again"


def _threads(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" not in tool.policy.effects:
        return
    for index, example in enumerate(tool.spec.examples, 1):
        with bench.setup.world(bench.tools) as world:
            args = bench.prepared(world, tool, example.args)
            alone = tried(world, Log(), tool, args, "").came
            if set(_at_once(world, tool, args)) != {alone}:
                yield f"example {index} gives something else when {THREADS} threads call it at once"


def _at_once(world: World, tool: ToolImplementation, args: Any) -> Iterator[str]:
    """Yield what comes of a call on each of several threads, which begin together."""
    barrier = Barrier(THREADS)

    def one(_: int) -> str:
        barrier.wait(WAITING)
        return tried(world, Log(), tool, args, "").came

    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(one, range(THREADS))


def _doors(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    first = bench.examples(tool)
    for door in DOORS:
        for (example, one), (_, other) in zip(first, bench.examples(tool, door), strict=True):
            is_known = example.result is not UNSET or "pure" in tool.policy.effects
            if _compared(one, is_known) != _compared(other, is_known):
                yield f"{one.what} goes otherwise by {door} than by call"


def _compared(trial: Trial, is_known: bool) -> str:
    """Return what has to be alike: all of it where nobody but the arguments and the world decides, else its type."""
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
                yield f"example {index}: its generator goes on after it was closed"


def _ends(items: Any, source: object) -> bool:
    """Close a stream, and tell whether the generator behind it has ended."""
    try:
        items.close()
    except CallError:
        return False
    return not inspect.isgenerator(source) or source.gi_frame is None


def _told(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "pure" in tool.policy.effects:
        return
    used = {name for trial in bench.all_trials(tool) if trial.seen for name in trial.seen.members}
    for name in sorted(used & EFFECTS.keys()):
        if not set(EFFECTS[name]).intersection(tool.policy.effects):
            yield f"it uses rt.{name}, and {' or '.join(EFFECTS[name])} is not among its effects"


BEHAVES: Final = ("examples-true", "examples-end")

LAWS: Final = (
    Law("examples-end", "Each example ends in time.", _in_time),
    Law("examples-true", "Each example gives the result or the error that it says.", _examples, ("examples-end",)),
    Law("result-typed", "What the function gives is of the declared type, whatever it is called with.", _typed),
    Law("values-taken", "Every common value of a declared type ends in a result, or in a failure on purpose.", _common),
    Law("hard-values-taken", "So does a value that is seldom met: NUL, the largest numbers, deep lists.", _hard),
    Law("choices-taken", "So does each choice of an argument.", _choices),
    Law("none-taken", "So does None, where an argument is nullable.", _none),
    Law("omitted-taken", "So does a call without an optional argument.", _omitted),
    Law(
        "errors-discreet",
        "No error repeats a value of the call; names are cut, and paths of the sandbox may be named.",
        _discreet,
    ),
    Law("arguments-kept", "The function changes no argument.", _kept),
    Law("runtime-released", "Nothing holds the Runtime when the call has ended.", _released),
    Law("deterministic", "A pure tool gives the same for the same arguments.", _deterministic, ("pure-alone",)),
    Law("pure-alone", "A pure tool uses no part of the Runtime that reads or changes anything.", _alone),
    Law("idempotent", "A second call of an idempotent tool changes nothing more.", _idempotent),
    Law("thread-safe", "A pure tool gives the same to eight threads at once.", _threads, ("deterministic", *BEHAVES)),
    Law(
        "doors-agree",
        "A call, an awaited call and that of a model go alike.",
        _doors,
        ("deterministic", "examples-end"),
    ),
    Law("streams-close", "The generator of a stream ends when its reader stops.", _streams),
    Law("effects-told", "What a tool does with the Runtime is among its effects.", _told),
)
