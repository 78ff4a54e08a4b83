"""Our tools in agents of Google ADK, CrewAI and LlamaIndex, and their tools here; two have an environment of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.interop import framework_place as place

PROGRAM = Path(__file__).with_name("framework_adapters.py")
OURS = "llama-index-core"
"""The framework that the tests' own environment contains."""

FRAMEWORKS = [pytest.param(each, marks=pytest.mark.full) for each in ("google-adk", "crewai")] + [OURS]
EVERY = pytest.mark.parametrize("framework", FRAMEWORKS)
UNAVAILABLE = "the framework could not be installed with pip"
PICTURE = "VISION_IMAGE:image/png:iVBORw0KGgoAAAAAAAAAAA=="

WRONG = (
    "count: expected int, got str (a string must be a decimal integer, such as 42). Fix the arguments and call again."
)
UNKNOWN = "tag: expected only count, tags, got an unknown name of type list (did you mean tags?)."
NESTED = (
    "lines[0]['item']: expected string, got int; lines[0]['count']: expected int, got nothing; "
    "mode: expected string, one of 'fast', 'slow', got another str."
)
ECHO = "self: expected string, got nothing; text: expected only self, got an unknown name of type str."
CRASHED = "error tool.failed: the tool failed (ValueError). This call cannot succeed; do not repeat it."
NEEDS = "error policy.capability: needs shop:pay. Only the host can change that; do not repeat this call."
READ: list[Any] = [
    2,
    f"error coercion.format: {WRONG}",
    f"error arg.unknown: {UNKNOWN} Fix the arguments and call again.",
    {"items": 1, "mode": "slow"},
    f"error arg.invalid: {NESTED} Fix the arguments and call again.",
    "hi",
    f"error arg.invalid: {ECHO} Fix the arguments and call again.",
    "waited",
    "error tool.failed: there is no milk. The same call may succeed later.",
    CRASHED,
    "a picture",
    "an album",
    "paid 5",
    NEEDS,
    3,
    3,
]
"""What a model reads for each call of the script, but for the form that each framework gives it."""


def python_of(framework: str) -> Path:
    """Return the Python of the environment of a framework, or skip the test if the registry is unreachable."""
    try:
        return Path(sys.executable) if framework == OURS else place.installed(framework)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip(UNAVAILABLE)


@cache
def facts_of(framework: str) -> dict[str, Any]:
    """Return what the program prints about a framework."""
    scratch = place.KEPT / "framework_adapters"
    scratch.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = json.loads(place.run_in(python_of(framework), framework, PROGRAM, scratch).splitlines()[-1])
    return found


def shown(framework: str, value: Any) -> Any:
    """Return what a model reads for a value in one framework."""
    is_error = isinstance(value, str) and value.startswith("error ")
    media = value in ("a picture", "an album")
    if framework == "google-adk":
        forms = {"a picture": [{}, "image/png"], "an album": [{"result": ["The plot:"]}, "image/png", "audio/ogg"]}
        return forms[value] if media else [{"error" if is_error else "result": value}]
    text = value if isinstance(value, str) else json.dumps(value)
    if framework == "crewai":
        forms = {"a picture": PICTURE, "an album": "The plot:\n[image/png, 16 bytes]\n[audio/ogg, 13 bytes]"}
        return forms[value] if media else text
    forms = {"a picture": ["image/png True"], "an album": ["The plot:", "image/png True", "ogg True"]}
    return forms[value] if media else [text]


def test_extras_and_constraints_contain_the_tested_versions() -> None:
    """Each extra permits the version that is tested."""
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = [Requirement(extras[name][0]) for name in ("crewai", "google-adk", "llama-index")]

    assert all(each.specifier.contains(place.VERSIONS[each.name]) for each in wanted)
    assert f"{OURS}=={place.VERSIONS[OURS]}" in (root / "constraints.txt").read_text().splitlines()


@EVERY
def test_the_examples_of_the_page_run_where_the_framework_is(framework: str, tmp_path: Path) -> None:
    """The other checks of documents pass over them: a framework may be absent there, or warn."""
    name = framework.removesuffix("-core")
    page = Path(__file__).parents[2] / "docs" / "how-to" / f"use-our-tools-in-{name}.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    program = tmp_path / "page.py"
    program.write_text("\n".join([*blocks, "print(len(tools))"]))
    python = python_of(framework)

    assert 3 == len(blocks)
    assert "1" == place.run_in(python, framework, program, tmp_path).splitlines()[-1]


@EVERY
def test_a_model_reads_results_and_errors_in_the_form_of_the_framework(framework: str) -> None:
    """Arguments are repaired; an error says what to do, and has the path of every wrong value; media are kept."""
    exported = facts_of(framework)["exported"]

    assert [shown(framework, each) for each in READ] == exported["read"]


@EVERY
def test_our_functions_and_the_audit_log_receive_exact_values(framework: str) -> None:
    """Every call goes through the session, and none is answered from a cache."""
    exported = facts_of(framework)["exported"]

    assert [[2, ["a"]], [[{"item": "tea", "count": 2}], "slow"], [3, None], [3, None]] == exported["seen"]
    assert [
        ["shop.take", "ok", ["int", "list"]],
        ["shop.take", "coercion.format", []],
        ["shop.take", "arg.unknown", []],
        ["shop.order", "ok", ["list", "str"]],
    ] == exported["audit"]


@EVERY
def test_a_model_is_offered_the_schemas_of_the_permitted_tools(framework: str) -> None:
    """A denied tool is not offered, and a pattern without a match is an error for the host."""
    exported = facts_of(framework)["exported"]
    joint = "_" if framework == "crewai" else "__"
    names = ["album", "crash", "echo", "fail", "order", "pay", "picture", "take", "wait"]
    take = exported["offered"]["take"]
    schema = take["parameters_json_schema" if framework == "google-adk" else "parameters"]

    assert [f"shop{joint}{each}" for each in names] == exported["offered"]["names"]
    assert "Take things out of the shop." == take["description"]
    assert {"type": "integer", "description": "How many."} == schema["properties"]["count"]
    assert ["count", "tags"] == [*schema["properties"]]
    assert (["count", "tags"] if framework == "crewai" else ["count"]) == schema["required"]
    assert ["tools: shop.sell matches no tool that may be called here"] == exported["unmatched"]


@EVERY
def test_cancelling_a_call_cancels_the_tool(framework: str) -> None:
    """The task ends as cancelled."""
    assert ["cancelled", True] == facts_of(framework)["cancelled"]


COMMON: list[Any] = [
    [
        "arg.invalid",
        "model",
        "far.typed: count: expected int, got bool (a boolean is not a number); lines[0]['item']: expected string, got "
        "int; lines[0]['count']: expected int, got nothing; mode: expected string, one of 'fast', 'slow', got another str",
    ],
    [
        "arg.unknown",
        "model",
        "far.typed: more: expected only count, lines, mode, got an unknown name of type int (did you mean mode?)",
    ],
    ["str", "aa"],
    ["tool.failed", "never", "far.crash: the tool failed (ValueError)"],
]
CONFIRM = "requires a confirmation, which context can supply"
OWN: dict[str, list[Any]] = {
    "google-adk": [
        ["tool.failed", "model", "far.report: no tea \\x1b[2J"],
        ["str", "a"],
        ["str", "b"],
        ["dict", {"item": "tea", "count": 1}],
        ["Content", "The plot:\n[image/png, 16 bytes]"],
        ["Content", "[result, application/pdf, 8 bytes]"],
        ["tool.failed", "host", f"far.pay: {CONFIRM}"],
        ["tool.failed", "host", f"far.guarded: {CONFIRM}"],
    ],
    "crewai": [
        ["tool.failed", "later", "far.report: no tea \\x1b[2J (code: tea)"],
        ["tool.failed", "model", "far.report: no tea \\x1b[2J (code: tea)"],
        ["str", "a"],
        ["str", '{"item":"tea","count":1}'],
    ],
    OURS: [
        ["tool.failed", "model", "far.report: no tea \\x1b[2J"],
        ["str", "item='tea' count=1"],
        ["Content", "The plot:\n[image/png, 16 bytes]\n[audio/ogg, 13 bytes]"],
    ],
}
"""The outcomes of calls to tools of each framework: the type and the value, or the code, who can fix it, the message."""


@EVERY
def test_functions_of_the_framework_receive_exact_values(framework: str) -> None:
    """Sync and async callers get the same results, and errors of the framework are ours."""
    imported = facts_of(framework)["imported"]
    line = "Line" if framework == "google-adk" else "dict"
    first = ["dict", {"count": "int", "line": line, "inner": "int", "mode": "fast"}]

    assert [first, *COMMON, *OWN[framework]] == imported["results"]
    assert imported["same"]


@EVERY
def test_a_tool_of_the_framework_needs_an_approval_and_a_grant(framework: str) -> None:
    """Trust replaces only the approval."""
    assert ["policy.approval", "policy.capability"] == facts_of(framework)["imported"]["refused"]


PROBLEMS = {
    "google-adk": [
        "google_search: runs on the server of the model provider, not here",
        "tools: expected tools of Google ADK, got function",
        "pay and pay have the same name here, pay; leave out all but one",
    ],
    "crewai": [
        "tools: expected tools of CrewAI, got builtin_function_or_method",
        "later and later have the same name here, later; leave out all but one",
    ],
    OURS: [
        "stateful: needs the context of a workflow, which only an agent of LlamaIndex has",
        "tools: expected tools of LlamaIndex, got function",
        "broken: cannot be converted to JSON Schema (RuntimeError)",
        "typed and typed have the same name here, typed; leave out all but one",
    ],
}


@EVERY
def test_tools_that_cannot_be_loaded_are_all_reported(framework: str) -> None:
    """In one error, each with its tool."""
    assert PROBLEMS[framework] == facts_of(framework)["problems"]


@pytest.mark.full
def test_a_host_can_supply_the_context_of_google_adk() -> None:
    """State then lasts from call to call, and the host can confirm."""
    expected = [["str", "a"], ["str", "a b"], ["str", "paid 1"], ["dict", {"n": 2}]]

    assert expected == facts_of("google-adk")["with_context"]


@pytest.mark.full
def test_crewai_caches_nothing_and_records_failures() -> None:
    """Also for a model that writes its calls as text; a spent limit of a tool is final."""
    found = facts_of("crewai")
    spent = "far.once: Tool 'once' has reached its usage limit of 1 times and cannot be used anymore."

    assert [[7, None], [7, None]] == found["uncached"]
    assert [
        [f"Observation: error coercion.format: {WRONG}", "Observation: 4"],
        [["shop_take", {"code": "coercion.format"}, False]],
    ] == found["react"]
    assert [["str", "once"], ["tool.failed", "never", spent]] == found["used"]


def test_other_loops_of_llama_index_call_our_tools() -> None:
    """An agent that writes its calls as text; and ``call_tool``, which first passes a single argument by position."""
    found = facts_of(OURS)
    wrong = f"error arg.invalid: {ECHO} Fix the arguments and call again."

    assert "Observation: 4" == found["react"]
    assert [["hi", False, "hi"], [wrong, True, wrong]] == found["direct"]
