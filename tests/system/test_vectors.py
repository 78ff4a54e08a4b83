"""Upstream's tests and the hostile values, run as data.

The table in ``docs/reference/departures.md`` lists each case that the contract overrules, with its id, our result and the
sentence that overrules it. Such a case is not skipped: its listed result is asserted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Any

import pytest
from tests.properties import same

from neuroscript import (
    ArgSpec,
    ArgumentError,
    CallError,
    Capability,
    CoercionError,
    Engine,
    ExecutionPolicy,
    Grant,
    LimitError,
    PolicyError,
    SpecError,
    ToolNotFound,
    ToolPolicy,
    Toolset,
    ToolSpec,
    bind,
    coerce,
)
from neuroscript.names import canonical, upstream_name
from neuroscript.policy.ledger import Ledger
from neuroscript.policy.limits import Limits
from neuroscript.policy.refusals import MissingNeeds, refusal

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors"
HOSTILE = json.loads((VECTORS / "values.json").read_text())
UPSTREAM = [
    *json.loads((VECTORS / "upstream.json").read_text()),
    *json.loads((VECTORS / "authority.json").read_text()),
]
ELSEWHERE = ("sandbox",)
"""Areas that `test_path_attacks` runs on both of its backends."""
NOT_OURS = ("policy-056",)
"""Checksums of tools, which upstream compares only if a host sets a fetcher; nothing sets one here."""
LATER_GROUPS = ("fs", "shell", "metadata")


def departures() -> dict[str, str]:
    """Return our result, by the id of the case."""
    text = (ROOT / "docs" / "reference" / "departures.md").read_text()
    rows = re.findall(r"^\| ([a-z_]+-\d+|V\d+) \| [^|]+ \| `(.+?)` \| .+ \|$", text, re.MULTILINE)
    return dict(rows)


DEPARTURES = departures()


def answer(run: Callable[[], Any]) -> Any:
    """Return the result of *run*, or the error that it raises."""
    try:
        return run()
    except (CallError, SpecError) as error:
        return error


def describe(answered: Any) -> str:
    """Return a result as the table shows it: a value as in Python, an error as its code."""
    if isinstance(answered, SpecError):
        return "SpecError"
    if isinstance(answered, CallError):
        assert answered.retry == ("host" if isinstance(answered, PolicyError) else "model")
        return answered.code
    return repr(answered)


NAMESPACE: dict[str, Any] = {}
exec(HOSTILE["prelude"], NAMESPACE)


@pytest.mark.parametrize("case", HOSTILE["cases"], ids=lambda case: case["id"])
def test_hostile_value_has_its_listed_outcome(case: Mapping[str, Any]) -> None:
    """Accepted values have the listed value and exact types; errors have the listed code and show no value."""
    value = eval(case["expr"], NAMESPACE)

    answered = answer(lambda: coerce(value, case["target"]))

    if case["expect"] == "accept":
        assert same(eval(case["expected"], NAMESPACE), answered)
    else:
        assert isinstance(answered, CoercionError)
        assert (case["error"], "model") == (answered.code, answered.retry)
    if case["id"] in DEPARTURES:
        assert DEPARTURES[case["id"]] == str(answered)
    elif "check" in case:
        assert eval(case["check"], {**NAMESPACE, "r": answered, "x": value, "err": str(answered)})


def in_a_slice(word: str) -> Callable[[Any], Any]:
    """Return a function that reads one element as a slice of that type does."""
    return lambda value: coerce([value], word)[0]


READERS: dict[str, Callable[[Any], Any]] = {
    "to_float64_strict": in_a_slice("slice_float"),
    "to_int64_lossy": in_a_slice("slice_int"),
    "to_slice_string": lambda value: coerce(value, "slice_string"),
    "to_slice_float": lambda value: coerce(value, "slice_float"),
    "to_slice_bool": lambda value: coerce(value, "slice_bool"),
    "to_slice_map": lambda value: coerce(value, "slice_map"),
    "lang_to_float64": lambda value: coerce(value, "float"),
}


def spec_of(args: list[dict[str, Any]]) -> ToolSpec:
    """Return a spec with upstream's arguments."""
    return ToolSpec(
        "probe", "test", tuple(ArgSpec(arg["name"], arg["type"], required=arg.get("required", False)) for arg in args)
    )


def execute_named(args: list[dict[str, Any]], given: dict[str, Any]) -> Any:
    """Call a tool with that spec by name; it returns "ok"."""
    toolset = Toolset("test")
    toolset.add(spec_of(args), lambda rt, *values: "ok")
    with Engine(toolsets=[toolset], plugins="none") as engine:
        return engine.call_named("test.probe", given)


def register(group: str, name: str) -> str:
    """Return upstream's spelling of a tool that is registered with that group and name."""
    return ToolSpec(name, group).upstream_name


def look_up(group: str, name: str, spelling: str) -> str:
    """Return upstream's spelling of the tool that *spelling* finds."""
    toolset = Toolset(group)
    toolset.add(ToolSpec(name, group), lambda rt: None)
    with Engine(toolsets=[toolset], plugins="none") as engine:
        engine.call(spelling)
        return engine.tools[canonical(spelling)].spec.upstream_name


def call_standard(name: str) -> Callable[..., Any]:
    """Return a function that calls a standard tool through an engine; upstream's ``ai`` is our ``shape``."""
    group, _, word = canonical(name).partition(".")

    def call(*args: Any) -> Any:
        options = [{"missing_ok": args[2]}] if group == "ai" and len(args) == 3 else args[2:]
        with Engine(plugins=["neuroscript-std"]) as engine:
            return engine.call(f"{'shape' if group == 'ai' else group}.{word}", [*args[:2], *options])

    return call


def satisfied(needs: list[str], grants: list[str]) -> bool:
    """Return whether these grants cover these needs."""
    return ExecutionPolicy(grants=grants).uncovered_need(map(Capability.parse, needs)) is None


def scope_match(resource: str, need: str, grant: str) -> bool:
    """Return whether one scope covers another."""
    return Grant.parse(f"{resource}:use:{grant}").covers(Capability.parse(f"{resource}:use:{need}"))


def parsed(text: str) -> list[Any]:
    """Return the parts of a need in upstream's form."""
    need = Capability.parse(text)
    return [need.resource, list(need.verbs), list(need.scopes) or None]


def can_call(host: dict[str, Any], tool: dict[str, Any]) -> bool:
    """Evaluate a policy like the pipeline: first the checks without arguments, then the needs."""
    policy = ExecutionPolicy(
        allow=host["allow"], deny=host["deny"], grants=host["grants"], trusted=host["context"] == "config"
    )
    needs = ToolPolicy(requires_trust=tool.get("trust", False), capabilities=tool.get("caps", ()))
    verdict = policy.precheck(tool["name"], needs)
    missing = policy.uncovered_need(map(Capability.parse, needs.capabilities))
    if verdict is None and missing is not None:
        verdict = refusal(tool["name"], MissingNeeds((missing,)))
    if verdict is not None:
        raise verdict
    return True


def look_up_integrity(tool: dict[str, Any]) -> Any:
    """Call a tool that is not registered."""
    with Engine(plugins="none") as engine:
        return engine.call(tool["name"])


EXCEEDED = {
    "limit.tool_calls": "ToolExceeded",
    "limit.net_bytes": "NetExceeded",
    "limit.net_calls": "NetExceeded",
    "limit.fs_bytes": "FSExceeded",
    "limit.money": "BudgetExceeded",
}


def count_script(limits: dict[str, Any], steps: list[list[Any]]) -> list[str]:
    """Return upstream's name for the outcome of each step, all counted by one ledger."""
    names = {"tool_max": "tool_calls", "per_call": "money_per_call", "per_run": "money"}
    ledger = Ledger(Limits(**{names.get(name, name): value for name, value in limits.items()}), time)
    answers = [answer(lambda: count_step(ledger, *step)) for step in steps]
    return [EXCEEDED[each.code] if isinstance(each, LimitError) else each for each in answers]


def count_step(ledger: Ledger, what: str, *args: Any) -> str:
    """Take one step: a call, or the usage of one call; a question about the cost of a call spends and settles it."""
    match what, *args:
        case "tool", str(name):
            ledger.begin(canonical(name), True)
        case "net", int(count):
            ledger.spend("net_calls", 1, "net.get")
            ledger.spend("net_bytes", count, "net.get")
        case "fs", int(count):
            ledger.spend("fs_bytes", count, "fs.read")
        case (("charge" | "percall"), str(currency), int(cents)):
            reserved = ledger.spend(currency, cents, "shop.buy", [{}])
            if what == "percall":
                reserved.settle(0)
        case _:
            raise AssertionError(f"no such step: {what}")
    return "ok"


REFUSALS = {
    "Trust": {"policy.trust"},
    "Policy": {"policy.denied", "policy.not_allowed"},
    "Capability": {"policy.capability"},
}


def run_of(case: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function that runs a case."""
    what = case["tool_or_fn"]
    if what.startswith("coerce:"):
        return lambda value: coerce(value, what.removeprefix("coerce:"))
    if what.startswith("tool."):
        return call_standard(what)
    ways: dict[str, Callable[..., Any]] = {
        "validate": lambda args, values: list(bind(spec_of(args), values)),
        "execute_named": execute_named,
        "canonicalize": lambda name: upstream_name(canonical(name)),
        "register": register,
        "lookup": look_up,
        "caps_satisfied": satisfied,
        "scope_match": scope_match,
        "parse": parsed,
        "can_call": can_call,
        "pat_match": lambda name, pattern: ExecutionPolicy(allow=[pattern]).precheck(name, ToolPolicy()) is None,
        "dedup_merge": lambda *lists: list(ExecutionPolicy(allow=[each for one in lists for each in one]).allow),
        "integrity": look_up_integrity,
        "script": count_script,
    }
    return READERS.get(what) or ways[what]


def is_ours(case: Mapping[str, Any]) -> bool:
    """Return whether a case applies to this project."""
    group = case["tool_or_fn"].removeprefix("tool.").partition(".")[0]
    if case["id"] in NOT_OURS:
        return False
    return case["area"] not in ELSEWHERE and not (case["area"] == "toolset" and group in LATER_GROUPS)


CASES = [case for case in UPSTREAM if is_ours(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_upstream_case_has_upstreams_or_the_listed_outcome(case: Mapping[str, Any]) -> None:
    """Values agree in their types, errors in their occurrence; the arguments that a case names are in the error."""
    answered = answer(lambda: run_of(case)(*case["args"]))
    expected = case["expect"]

    if case["id"] in DEPARTURES:
        assert DEPARTURES[case["id"]] == describe(answered)
    elif "value" in expected:
        assert same(expected["value"], answered)
    else:
        assert isinstance(answered, (CallError, SpecError))
        assert not isinstance(answered, ToolNotFound)
        if isinstance(answered, PolicyError):
            assert answered.code in REFUSALS[expected["error"]]
            assert answered.retry == "host"
        for name in re.findall(r"argument '(\w+)'", expected.get("contains", "")):
            assert isinstance(answered, ArgumentError)
            assert name in {problem.where for problem in answered.problems}


def test_each_listed_departure_is_a_case_that_runs() -> None:
    """A row without a case would not be tested."""
    known = {case["id"] for case in CASES} | {case["id"] for case in HOSTILE["cases"]}

    assert set(DEPARTURES) <= known
    assert DEPARTURES
