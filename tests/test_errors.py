"""Errors: their parts, copies in other processes, and limits of their length, with a note of how much is missing."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest

from neuroscript import (
    ArgSpec,
    AuditError,
    CallTimeout,
    ExecutionPolicy,
    LLMError,
    PluginError,
    PolicyError,
    RegistryError,
    SpecError,
    ToolFailed,
    ToolNotFound,
    ToolSpec,
)
from neuroscript.config.lock_file import Lock
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.openapi import from_openapi
from neuroscript.workflow import plan_from_data

MANY: Final = 5_000
LONG: Final = "x" * 1_000_000


def test_spec_error_lists_the_first_problems_and_counts_the_rest() -> None:
    """The message lists twenty and the attribute a hundred, like an argument error."""
    error = SpecError("demo", [f"fault {n}" for n in range(250)])

    assert error.problems == tuple(f"fault {n}" for n in range(100))
    assert (error.total, error.unlisted) == (250, 150)
    assert str(error) == f"demo: {'; '.join(f'fault {n}' for n in range(20))}; and 230 more"
    assert error.sentences[-2:] == ("demo: fault 99", "demo: and 150 more")
    assert len(error.sentences) == 101


def test_spec_error_of_a_file_keeps_the_line_of_each_problem() -> None:
    """There are as many lines as listed problems."""
    error = SpecError("a.toml", [f"fault {n}" for n in range(101)], [*range(101)])

    assert len(error.lines) == len(error.problems) == 100
    assert str(error).endswith("a.toml:19: fault 19; and 81 more")
    assert error.sentences[-2:] == ("a.toml:99: fault 99", "a.toml: and 1 more")


def test_few_problems_are_listed_completely() -> None:
    error = SpecError("demo", ["one", "two"])

    assert (str(error), error.sentences, error.unlisted) == ("demo: one; two", ("demo: one", "demo: two"), 0)


def test_long_parts_of_an_error_are_cut() -> None:
    """Each part says how many characters are missing."""
    spec = SpecError(LONG, [LONG])
    plugin = PluginError(LONG, LONG)
    cut, whole = f"{LONG[:1000]}… (999000 more characters)", f"{LONG[:20_000]}… (980000 more characters)"

    assert (spec.subject, spec.problems) == (cut, (cut,))
    assert (plugin.distribution, plugin.reason) == (cut, whole)
    assert (str(RegistryError(LONG)), str(AuditError(LONG))) == (whole, whole)


def test_bounded_error_can_be_pickled() -> None:
    """Its counts survive, and it is not cut again."""
    for error in (SpecError(LONG, [LONG] * 250), PluginError(LONG, LONG), RegistryError(LONG), AuditError(LONG)):
        again = pickle.loads(pickle.dumps(error))

        assert (str(again), again.args) == (str(error), error.args)
    assert pickle.loads(pickle.dumps(SpecError("a", ["b"] * 250))).total == 250


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SpecError(5, []), "SpecError: subject must be a string, not int"),
        (lambda: SpecError("a", "fault"), "SpecError: problems must be a list or tuple, not str"),
        (lambda: SpecError("a", [None]), "SpecError: problems[0] must be str, not None"),
        (lambda: SpecError("a", [], ["1"]), "SpecError: lines[0] must be int, not str"),
        (lambda: SpecError("a", [], found=True), "SpecError: found must be an integer, not bool"),
        (lambda: RegistryError(5), "RegistryError: text must be a string, not int"),
        (lambda: AuditError(None), "AuditError: text must be a string, not None"),
        (lambda: PluginError("a", "b", code=5), "PluginError: code must be a string, not int"),
        (lambda: PluginError("a", "b", errors=["c"]), "PluginError: errors[0] must be PluginError, not str"),
        (lambda: LLMError("a", retry="soon"), "LLMError: retry must be 'model', 'later', 'host' or 'never', not str"),
        (lambda: ToolFailed(5), "ToolFailed: text must be a string, not int"),
        (lambda: ToolFailed("a", retry="soon"), "ToolFailed: retry must be 'model', 'later', 'host' or 'never', not str"),
        (lambda: ToolNotFound(5), "ToolNotFound: name must be a string, not int"),
        (lambda: ToolNotFound("a", "b"), "ToolNotFound: near must be a list or tuple, not str"),
        (lambda: PolicyError("a", need=5), "PolicyError: need must be a string, not int"),
        (lambda: PolicyError("a", rule=None), "PolicyError: rule must be a string, not None"),
        (lambda: CallTimeout("a", state="ended"), "CallTimeout: state must be 'stopped', 'abandoned' or 'killed', not str"),
        (lambda: CallTimeout("a", state="stopped", seconds="1"), "CallTimeout: seconds must be a number or None, not str"),
        (lambda: CallTimeout("a", state="stopped", has_ended=5), "CallTimeout: has_ended must be a function or None, not int"),
    ],
)  # fmt: skip
def test_error_with_a_part_of_another_type_is_refused(make: Callable[[], object], text: str) -> None:
    """A tool that raises such an error fails where it creates it, not where a host displays it."""
    with pytest.raises(SpecError) as caught:
        make()

    assert text == str(caught.value)


def test_timeout_in_another_process_may_still_run() -> None:
    """The function that says whether an abandoned tool has ended stays in its process."""
    error = CallTimeout("too late", tool="g.t", state="abandoned", seconds=2.5, has_ended=lambda: True)
    again = pickle.loads(pickle.dumps(error))

    assert not error.still_runs
    assert again.still_runs
    assert (str(again), again.state, again.seconds) == ("g.t: too late", "abandoned", 2.5)


def test_killed_tool_no_longer_runs() -> None:
    """Its worker process has ended, also as seen from another process."""
    error = CallTimeout("too late", tool="g.t", state="killed", seconds=2.5)
    again = pickle.loads(pickle.dumps(error))

    assert not error.still_runs
    assert (again.state, again.still_runs) == ("killed", False)


def described(**more: Any) -> dict[str, Any]:
    """Return a description of an API."""
    return {"openapi": "3.1.0", "info": {"title": "t"}, "servers": [{"url": "https://a.example"}], **more}


HOSTILE: Final[dict[str, Callable[[], object]]] = {
    "arguments of one name": lambda: ToolSpec("t", "t", [ArgSpec(f"a{n // 2}", "int") for n in range(MANY)]),  # type: ignore[arg-type]
    "wrong grants": lambda: ExecutionPolicy(grants=tuple(f"?{n}" for n in range(MANY))),
    "a schema": lambda: spec_from_schema("t.t", {"properties": {f"a b{n}": {} for n in range(1_999)}}),
    "a long keyword": lambda: spec_from_schema("t.t", {"properties": {LONG[:900_000]: {"type": 7}}}),
    "a lock": lambda: Lock.of_text(json.dumps({f"k{n}": 1 for n in range(MANY)})),
    "a plan": lambda: plan_from_data({f"k{n}": 1 for n in range(MANY)}),
    "operations": lambda: from_openapi(described(paths={f"/{n}": {"trace": {}} for n in range(MANY)})),
    "paths": lambda: from_openapi(described(paths={f"{LONG}{n}": {} for n in range(10)})),
    "schemes": lambda: from_openapi(
        described(paths={"/a": {"get": {}}}, security=[{f"s{n}": [] for n in range(MANY)}] * 20)
    ),
    "one name": lambda: from_openapi(described(paths={f"/a{'-' * n}": {"get": {}} for n in range(1, 1_000)})),
    "a name": lambda: from_openapi(described(paths={}), secrets={LONG: "k"}),
}
"""For each kind of error, the input that makes it long."""


@pytest.mark.parametrize("case", HOSTILE)
def test_no_error_grows_with_its_input(case: str) -> None:
    """Neither its message nor its list of problems does."""
    with pytest.raises(SpecError) as caught:
        HOSTILE[case]()

    error = caught.value
    assert len(str(error)) < 21_000
    assert len(error.problems) <= 100
    assert sum(map(len, error.sentences)) < 210_000
