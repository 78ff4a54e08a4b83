"""Every snippet of Smith's document of tools, unchanged except for `CHANGED`.

The document is beside the project, in ``../shared/seeds``; without it, these tests are skipped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from neuroscript import Engine, SpecError, Toolset
from neuroscript.interop.smith import load_file, load_folder, problems_of, write_registry

SEED = Path(__file__).parents[3] / "shared" / "seeds" / "004_8b1c02941b16e612.txt"
CHANGED: Mapping[str, list[tuple[str, str]]] = {
    "6.1": [("...", 'return {"city": city, "temp": 3}')],
    "6.2": [("...", 'return {"city": city}')],
    "7.1": [("python\n", ""), (">>> from", "from"), (">>> run_weather", "result = run_weather")],
}
"""The text of the document and its replacement for each snippet; each pair changes one place."""

SUPPLIED: Mapping[str, str] = {
    "2.1": "def run_weather(city):\n    return city\n",
    "4.1": "def fetch_price(symbol):\n    return {'symbol': symbol, 'price': 5.5}\n",
    "4.2": "def do_everything(payload):\n    return payload\n",
}
"""By snippet the code of what it names and does not define."""


def snippets() -> dict[str, str]:
    """Return each snippet of the document, by the number of its section and its own, in order."""
    if not SEED.is_file():
        pytest.skip("the seeds are not beside the project")
    parts = re.findall(r"^### (\d+)\.|^```\w*\n(.*?)^```", SEED.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found: dict[str, str] = {}
    number, count = "", 0
    for heading, code in parts:
        number, count = (heading, 0) if heading else (number, count + 1)
        if code:
            found[f"{number}.{count}"] = code
    return found


def changed(number: str, code: str) -> str:
    """Return a snippet with its changes applied; each change must match."""
    for old, new in CHANGED.get(number, ()):
        assert old in code, (number, old)
        code = code.replace(old, new, 1)
    return f"{SUPPLIED.get(number, '')}{code}"


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Path]:
    """The directory of the document's tools, which is on the import path."""
    folder = tmp_path / "smith" / "tools"
    folder.mkdir(parents=True)
    sys.path.insert(0, str(tmp_path))
    yield folder
    sys.path.remove(str(tmp_path))
    for name in [each for each in sys.modules if each.partition(".")[0] == "smith"]:
        del sys.modules[name]


def called(path: Path, arguments: dict[str, Any]) -> Any:
    """Load the tool of a file, and call it."""
    tool = load_file(path)
    with Engine(plugins="none", toolsets=[Toolset("smith", (tool,))]) as engine:
        return engine.call_named(tool.name, arguments)


def describes_a_tool(folder: Path, code: str) -> None:
    """Section 2 has valid METADATA, in the file that section 7 imports."""
    path = folder / "WEATHER_FETCHER.py"
    path.write_text(code)

    assert "Berlin" == called(path, {"city": "Berlin"})


def is_accepted(folder: Path, code: str) -> None:
    """Section 4 says of its good tool that its function receives a symbol."""
    path = folder / "FINANCE_PRICE.py"
    path.write_text(code)

    assert {"symbol": "X", "price": 5.5} == called(path, {"symbol": "X"})


def is_refused(folder: Path, code: str) -> None:
    """Section 4 says of its bad tool that its name is vague, and that its parameters have no structure."""
    path = folder / "FINANCE.py"
    path.write_text(code)
    with pytest.raises(SpecError) as caught:
        load_file(path)

    assert ["function", "parameters['type']", "parameters['properties']"] == [
        each.partition(":")[0] for each in caught.value.problems
    ]
    assert [f"{path}: {'; '.join(caught.value.problems)}"] == [*map(str, load_folder(folder).errors)]


def of_function(folder: Path, code: str) -> tuple[str, ...]:
    """Return the problems of the function of incomplete METADATA."""
    names: dict[str, Any] = {}
    exec(compile(code, "<seed>", "exec", dont_inherit=True), names)
    return tuple(each for each in problems_of(names["METADATA"], names=names) if each.startswith("function: "))


def names_its_function(folder: Path, code: str) -> None:
    """Section 6 calls it good."""
    assert () == of_function(folder, code)


def names_another_function(folder: Path, code: str) -> None:
    """Section 6 says that it cannot be loaded."""
    assert ("function: the file has no function weather; did you mean run_weather?",) == of_function(folder, code)


def runs_by_hand(folder: Path, code: str) -> None:
    """Section 7 calls the function of section 2 without a runtime; the file is also a tool of a registry."""
    names: dict[str, Any] = {}
    exec(compile(code, "<seed>", "exec", dont_inherit=True), names)
    registry = load_folder(folder)
    write_registry(folder / "registry.json", registry)

    assert "Berlin" == names["result"]
    assert ["finance_price", "weather_fetcher"] == sorted(registry.list_tool_names())


CHECKS: Mapping[str, Callable[[Path, str], None]] = {
    "2.1": describes_a_tool,
    "4.1": is_accepted,
    "4.2": is_refused,
    "6.1": names_its_function,
    "6.2": names_another_function,
    "7.1": runs_by_hand,
}
"""What each snippet has to do."""


def test_snippets_run_in_order(tools: Path) -> None:
    """Each as the document says, in one directory of tools."""
    for number, code in snippets().items():
        CHECKS[number](tools, changed(number, code))

    assert {"WEATHER_FETCHER.py", "FINANCE_PRICE.py", "FINANCE.py", "registry.json"} == {
        each.name for each in tools.iterdir() if each.is_file()
    }


def test_every_snippet_runs() -> None:
    """Every change has a snippet."""
    assert set(snippets()) == set(CHECKS)
    assert set(CHECKS) >= set(CHANGED) | set(SUPPLIED)
