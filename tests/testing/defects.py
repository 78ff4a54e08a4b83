"""Toolsets with one tool each, which fails exactly the contract check that the toolset is named after."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript.testing import Setup

PURE = ToolPolicy(effects=("pure",))
READS = ToolPolicy(effects=("reads",))
NOTHING = ToolPolicy()
TEXT = ArgSpec("text", ArgType.STRING, description="What is shouted.")
WRONG = Example((5,), error="coercion.type")


def spec(*args: ArgSpec, examples: tuple[Example, ...] = (), **changes: Any) -> ToolSpec:
    """Return a spec that passes every contract check, with changes."""
    good = {
        "name": "shout",
        "group": "acme",
        "return_type": ArgType.STRING,
        "description": "Say something in capitals.",
        "when_to_use": "To be received.",
        "return_help": "The text in capitals.",
        "examples": examples or (Example(("a",), "A"), WRONG),
    }
    return ToolSpec(args=args or (TEXT,), **{**good, **changes})


def shout(rt: Runtime, text: str) -> str:
    return text.upper()


def of(made: ToolSpec, func: Callable[..., Any] = shout, policy: ToolPolicy = PURE) -> Toolset:
    """Return a toolset of one tool."""
    toolset = Toolset("acme")
    toolset.add(made, func, policy)
    return toolset


good = of(spec())


# What a tool says

name_fits = of(spec(name="s" * 70))
described = of(spec(description="says something in capitals"))
arguments_described = of(spec(attrs.evolve(TEXT, description="")))


def shout_map(rt: Runtime, options: dict[str, Any]) -> str:
    return str(options["text"]).upper()


keys_described = of(
    spec(
        ArgSpec("options", ArgType.MAP, description="What to do.", keys=(attrs.evolve(TEXT, description=""),)),
        examples=(Example(({"text": "a"},), "A"), WRONG),
    ),
    shout_map,
)
result_described = of(spec(return_help=""))
when_to_use = of(spec(when_to_use=""))
others_exist = of(spec(when_to_use="To be received; acme.whisper says it quietly."))
distinct = of(spec())
distinct.add(spec(name="cry", when_to_use="To be pitied."), shout, PURE)
success_shown = of(spec(examples=(WRONG,)))
failure_shown = of(spec(examples=(Example(("a",), "A"),)))
results_shown = of(spec(examples=(Example(("a",)), WRONG)))


def shout_some(rt: Runtime, text: str) -> str:
    if not text:
        raise ToolFailed("there is nothing to shout", code="acme.empty", retry="model")
    return text.upper()


failures_described = of(spec(examples=(Example(("a",), "A"), Example(("",), error="acme.empty"))), shout_some)


def shout_password(rt: Runtime, password: str) -> str:
    return str(len(password))


secrets_marked = of(
    spec(ArgSpec("password", ArgType.STRING, description="It."), examples=(Example(("a",), "1"), WRONG)),
    shout_password,
)
effects_of_needs = of(spec(), policy=ToolPolicy(capabilities=("model:use",)))


def shout_untyped(rt: Runtime, text: str) -> str:
    return str(type(text).__name__)


types_agree = of(
    spec(
        ArgSpec("text", ArgType.ANY, description="What is shouted."),
        examples=(Example(("a",), "str"), Example((1, 2), error="arg.count")),
    ),
    shout_untyped,
)

# What it does


def shout_late(rt: Runtime, text: str) -> str:
    if text == "late":
        time.sleep(0.4)
    return text.upper()


examples_end = of(spec(examples=(Example(("a",), "A"), Example(("late",), "LATE"), WRONG)), shout_late)
examples_true = of(spec(examples=(Example(("a",), "B"), WRONG)))


def shout_or_not(rt: Runtime, text: str) -> Any:
    return text.upper() if text != "two words" else None


result_typed = of(spec(), shout_or_not)


def shout_first(rt: Runtime, text: str) -> str:
    return text[0].upper() + text[1:].upper()


values_taken = of(spec(), shout_first)


def shout_ascii(rt: Runtime, text: str) -> str:
    if "\x00" in text:
        raise ValueError("NUL")
    return text.upper()


hard_values_taken = of(spec(), shout_ascii)


def shout_as(rt: Runtime, text: str, how: str) -> str:
    return {"loud": text.upper(), "louder": text.upper() + "!"}[how]


HOW = ArgSpec("how", ArgType.STRING, choices=("loud", "louder", "loudest"), description="How loud it is.")
choices_taken = of(
    spec(TEXT, HOW, examples=(Example(("a", "loud"), "A"), Example((5, "loud"), error="coercion.type"))), shout_as
)


def shout_nullable(rt: Runtime, text: str | None) -> str:
    return text.upper()  # type: ignore[union-attr]


none_taken = of(spec(attrs.evolve(TEXT, nullable=True)), shout_nullable)


def shout_times(rt: Runtime, text: str, times: int | None) -> str:
    return text.upper() * times  # type: ignore[operator]


TIMES = ArgSpec("times", ArgType.INT, required=False, description="How often.", maximum=5)
omitted_taken = of(spec(TEXT, TIMES, examples=(Example(("a", 2), "AA"), WRONG)), shout_times)


def shout_telling(rt: Runtime, text: str) -> str:
    if len(text) > 70:
        raise ToolFailed(f"cannot shout {text}", code="acme.long", retry="model")
    return text.upper()


errors_discreet = of(spec(), shout_telling)


def shout_popping(rt: Runtime, texts: list[str]) -> str:
    return texts.pop().upper() if texts else ""


arguments_kept = of(
    spec(
        ArgSpec("texts", ArgType.SLICE_STRING, description="What is shouted."),
        examples=(Example((["a"],), "A"), WRONG),
    ),
    shout_popping,
)

KEPT: list[Any] = []


def shout_keeping(rt: Runtime, text: str) -> str:
    KEPT[:] = [rt]
    return text.upper()


runtime_released = of(spec(), shout_keeping)

COUNTED: list[int] = []


def shout_counting(rt: Runtime, text: str) -> str:
    COUNTED.append(1)
    return text.upper() + "!" * (len(COUNTED) % 2)


deterministic = of(spec(examples=(Example(("a",), "A!"), WRONG)), shout_counting)


def shout_aloud(rt: Runtime, text: str) -> str:
    rt.println(text)
    return text.upper()


pure_alone = of(spec(), shout_aloud)


def shout_longer(rt: Runtime, text: str) -> str:
    rt.update_var("shouts", lambda shouts: (shouts or 0) + 1)
    return text.upper()


idempotent = of(spec(), shout_longer, ToolPolicy(effects=("idempotent", "writes")))

BUSY: list[int] = []


def shout_busy(rt: Runtime, text: str) -> str:
    if BUSY:
        raise ToolFailed("another caller is shouting", code="acme.busy", retry="later")
    BUSY.append(1)
    time.sleep(0.05)
    BUSY.clear()
    return text.upper()


thread_safe = of(spec(), shout_busy)


def shout_at_once(rt: Runtime, text: str) -> str:
    caller = sys._getframe()
    while caller is not None:
        if caller.f_code.co_name == "run_forever":
            raise ToolFailed("not while a loop runs", code="acme.loop", retry="never")
        caller = caller.f_back  # type: ignore[assignment]
    return text.upper()


doors_agree = of(spec(), shout_at_once)


def shout_letters(rt: Runtime, text: str) -> Iterator[str]:
    for letter in [*text, ".", "."]:
        try:
            yield letter.upper()
        except GeneratorExit:
            yield "!"


streams_close = of(spec(examples=(Example(("a",)), WRONG), stream=True), shout_letters, NOTHING)


def shout_hourly(rt: Runtime, text: str) -> str:
    return text.upper() if rt.now() else ""


effects_told = of(spec(), shout_hourly, NOTHING)


labels_match = of(spec(), shout, ToolPolicy(effects=("net",), sources=(), sinks=()))


def shout_to_file(rt: Runtime, text: str) -> str:
    rt.fs.write_text("said.txt", text)
    return text.upper()


labels_declared = of(
    spec(),
    shout_to_file,
    ToolPolicy(capabilities=("fs:write:said.txt",), effects=("writes",), sources=(), sinks=("people",)),
)


def shout_from_file(rt: Runtime, text: str) -> str:
    with Path("/etc/passwd").open() as file:
        return text.upper() if file.read(1) else ""


needs_cover = of(spec(), shout_from_file, READS)


def shout_out(rt: Runtime, text: str) -> str:
    print(text)
    return text.upper()


prints_by_runtime = of(spec(), shout_out)


def importable() -> Toolset:
    """Return a toolset that is not in a module."""
    return of(spec())


QUICK = Setup(seconds=0.3)

DEFECTS: dict[str, Toolset] = {
    "wire-name-length": name_fits,
    "described": described,
    "arguments-described": arguments_described,
    "keys-described": keys_described,
    "result-described": result_described,
    "when-to-use": when_to_use,
    "mentioned-tools-exist": others_exist,
    "distinct": distinct,
    "success-example": success_shown,
    "failure-example": failure_shown,
    "results-declared": results_shown,
    "failures-described": failures_described,
    "secrets-marked": secrets_marked,
    "effects-match-capabilities": effects_of_needs,
    "labels-match": labels_match,
    "types-match": types_agree,
    "examples-finish": examples_end,
    "examples-correct": examples_true,
    "result-type": result_typed,
    "values-accepted": values_taken,
    "rare-values-accepted": hard_values_taken,
    "choices-accepted": choices_taken,
    "none-accepted": none_taken,
    "omitted-accepted": omitted_taken,
    "errors-redacted": errors_discreet,
    "arguments-unchanged": arguments_kept,
    "runtime-released": runtime_released,
    "deterministic": deterministic,
    "pure-isolated": pure_alone,
    "idempotent": idempotent,
    "thread-safe": thread_safe,
    "entry-points-agree": doors_agree,
    "streams-close": streams_close,
    "effects-declared": effects_told,
    "labels-declared": labels_declared,
    "capabilities-complete": needs_cover,
    "prints-with-runtime": prints_by_runtime,
    "importable": importable(),
}
