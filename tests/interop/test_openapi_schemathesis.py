"""Schemathesis finds nothing wrong with the service: each response is as the document says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.interop import schemathesis_place
from tests.interop.openapi_place import serving

from neuroscript import Engine, ExecutionPolicy, Host

MIN_CASES = 1_000


@pytest.mark.full
@pytest.mark.parametrize("token", ["", "s3cret-tok3n"])
def test_no_failure(tmp_path: Path, token: str) -> None:
    """It tests every first-party tool that needs no network and does not sleep, with valid and invalid requests."""
    try:
        python = schemathesis_place.installed()
    except OSError as error:
        pytest.skip(str(error))
    sandbox, scratch = tmp_path / "sandbox", tmp_path / "scratch"
    sandbox.mkdir()
    scratch.mkdir()
    (sandbox / "a.txt").write_text("hello\n")
    policy = ExecutionPolicy(trusted=True, deny=("*.sleep",), grants=("fs:read:**", "fs:write:**"))
    phases = "coverage,fuzzing" if not token else "coverage"
    words = ["--phases", phases, "--max-examples", "3"]
    if token:
        words += ["--header", f"Authorization: Bearer {token}"]
    with Engine(policy=policy, host=Host(sandbox_dir=sandbox)) as engine, serving(engine, token=token) as place:
        done = schemathesis_place.run(python, scratch, f"{place.url}/openapi.json", "--url", place.url, *words)

    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
    cases = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert cases is not None, done.stdout[-2_000:]
    assert int(cases[1]) > MIN_CASES
