"""``--spill``: large results are written to files in the sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult, command


def test_large_result_is_written_to_a_file(tmp_path: Path) -> None:
    """The output is a preview, or JSON with the details."""
    words = ("call", "--sandbox", str(tmp_path), "--spill", "100", "probe.echo", "x" * 200)
    done, reported = command(*words), command(*words, "--json")

    first, second = (
        json.loads(reported.out)["spilled"]["path"],
        done.out.partition("sandbox file ")[2].partition("]")[0],
    )
    assert (0, 0) == (done.code, reported.code)
    assert {"path": first, "size": 200, "items": None} == json.loads(reported.out)["spilled"]
    assert ("x" * 200, "x" * 200) == tuple((tmp_path / each).read_text() for each in (first, second))
    text = f"{'x' * 200}\n[beginning of a result of 200 bytes; the full result is in the sandbox file {second}]\n"
    assert text == done.out


def test_results_of_execute_are_written_to_files(tmp_path: Path) -> None:
    """Each result has its own file."""
    calls = b'{"name": "probe.echo", "arguments": ["xxxxxxxxxxxx"]}\n{"name": "probe.echo", "arguments": ["x"]}\n'

    done = command("execute", "-", "--sandbox", str(tmp_path), "--spill", "10", stdin=calls)

    large, small = map(json.loads, done.out.splitlines())
    assert "x" * 12 == (tmp_path / large["spilled"]["path"]).read_text()
    assert ("x", False) == (small["value"], "spilled" in small)


@pytest.mark.parametrize("number", ["-1", "many", "1.5", "9" * 30, ""])
def test_invalid_number_is_a_usage_error(number: str) -> None:
    """It is reported before anything runs."""
    done = command("call", f"--spill={number}", "probe.echo", "x")

    assert CommandResult(2, "", "neuroscript: --spill takes a number of bytes, such as 100000\n") == done
