"""The package neurosurfer: its own classes, subclassed, in its own toolkit, under our contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.interop import neurosurfer_place as place
from tests.interop.recorded import EVERYTHING

PROGRAM = Path(__file__).with_name("neurosurfer_real.py")
TOOLS = {
    "typed": {
        "text": ["str", "5"],
        "count": ["int", 2],
        "share": ["float", 3.0],
        "flag": ["bool", False],
        "items": ["list", [1]],
        "facts": ["dict", {"a": 1}],
        "limit": ["int", 7],
        "db": True,
    },
    "default": ["int", 100],
    "streamed": ["hello", "100"],
    "refused": "Input 'count' expected integer, got str",
    "first": [False, {"text": "FROM_EXTRAS", "seen": 100}],
    "second": [["hello", "100"], ["hello", "None"]],
    "unknown": (
        "real.typed: more: expected only text, count, share, flag, items, facts, limit, got an unknown name of type int"
    ),
}
"""What comes of subclasses of its own ``BaseTool``, in its own ``Toolkit``."""

SQL = {
    "called": "I've executed the SQL query and have fetched the results.",
    "wrong": ["error"],
    "extras": {"db_results": [{"id": 1}, {"id": 2}]},
    "returns": "array",
}
"""What comes of its ``SQLExecutor``, whose spec its own ``validate`` would refuse; what that imports is large."""

CASES: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [("tools", (), TOOLS)]
CASES += [("sql", place.FOR_SQL, SQL)] if EVERYTHING else []


def program_output(scratch: Path, others: tuple[str, ...], *words: str) -> dict[str, Any]:
    """Return the output of the program, or skip the test if the package is unavailable."""
    try:
        python = place.installed(*others)
    except OSError as error:
        pytest.skip(str(error))
    done = place.run(python, PROGRAM, scratch, *words)
    assert 0 == done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.full
@pytest.mark.parametrize(("word", "others", "expected"), CASES, ids=[each[0] for each in CASES])
def test_tools_of_the_package_receive_exact_values_and_forwarded_inputs(
    tmp_path: Path, word: str, others: tuple[str, ...], expected: dict[str, Any]
) -> None:
    """No input is lost, overridden or of another type."""
    assert expected == program_output(tmp_path, others, word)
