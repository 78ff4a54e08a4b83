"""The static checks of ``neuroscript lint``: every defect is found at its line, and nothing is imported."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from neuroscript import SpecError, tool
from neuroscript.publishing.lint.check import lint
from neuroscript.publishing.lint.finding import CODES, Finding
from neuroscript.spec.annotations import KNOWN

ROOT = Path(__file__).parents[2]

HEAD = """
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Optional

import attrs

from neuroscript import ArgSpec, ArgType, Runtime, ToolPolicy, Toolset, ToolSpec, tool

toolset = Toolset("acme")

@attrs.frozen
class Place:
    name: str

class Odd: ...

Cities = list[str]
"""

GOOD = '''
@toolset.tool(policy=ToolPolicy(effects=("reads",)))
def find(rt: Runtime, city: str, *more: str) -> Iterator[dict[str, Any]]:
    """Find cities.

    Args:
        city: One of them.
        more: Others.

    Returns:
        What is known of each.
    """
    rt.println("looking for", city)
    for each in (city, *more):
        yield {"city": each, "lines": rt.fs.read_text(each)}

@toolset.tool()
def ask(place: Place, cities: Cities, how: "Literal['a', 'b'] | None" = None, far: Optional[int] = None) -> None:
    """Ask for places.

    Args:
        place: Where.
        cities: Which.
        how: In which way.
        far: How far, in km.
    """
    try:
        print_all = str
    except ValueError:
        pass

def count(rt: Runtime, text: str) -> int:
    return len(text)

toolset.add(
    ToolSpec("count", "acme", (ArgSpec("text", ArgType.STRING, description="A string."),), description="Count letters."),
    count,
)

def plain(text: str) -> str:
    """Return a string.

    Args:
        text: It.
    """
    return text

made = tool(plain, group="acme.more")
toolset.tool(plain, name="plainly")

if __name__ == "__main__":
    print("a program", os.environ)
'''


def tool_of(signature: str, body: str = "...", doc: str = '"""Do it."""') -> str:
    """Return the source of a tool in a module."""
    return f"@toolset.tool()\ndef bad{signature}:\n    {doc}\n    {body}\n"


def in_tool(body: str) -> str:
    """Return a tool that does something."""
    return tool_of("() -> None", body)


FILES = "without the Runtime; use rt.fs, which is confined to the sandbox and checks grants"
PROGRAMS = "without the Runtime; declare the capability shell:exec:… in its ToolPolicy, or call shell.execute with rt.call_tool"
NETWORK = "without the Runtime; declare the capability net:read:… or net:write:… in its ToolPolicy, or call http.get with rt.call_tool"
ENVIRONMENT = (
    "without the Runtime; declare the capability env:read:… in its ToolPolicy, "
    "or read values of the host with rt.get_var or rt.secret"
)

DEFECTS = {
    # what it says of itself
    "tool name": (
        tool_of("() -> None").replace("tool()", 'tool(name="Look__up")'),
        "1: lint.name Look__up is not a valid tool name; use lowercase letters, digits and single _",
    ),
    "group name": (
        'other = Toolset("acme weather")',
        "1: lint.name acme weather is not a valid group name; use lowercase letters, digits and single _",
    ),
    "no docstring": (
        tool_of("() -> None", doc="pass"),
        "2: lint.description bad has no docstring; describe the tool in the imperative, such as 'Return the title of a page.'",
    ),
    "no sentence": (
        tool_of("() -> None", doc='"""do it"""'),
        "2: lint.description the description of bad is not a sentence; write one in the imperative, such as 'Return the title of a page.'",
    ),
    "no description": (
        'toolset.add(ToolSpec("bad", "acme"), lambda rt: None)',
        "1: lint.description bad is not described; add a description in the imperative, such as 'Return the title of a page.'",
    ),
    "no words for a parameter": (
        tool_of("(city: str) -> None"),
        "2: lint.argument argument city of bad has no description; describe it under Args:",
    ),
    "no words for an ArgSpec": (
        'city = ArgSpec("city", ArgType.STRING)',
        "1: lint.argument argument city has no description; describe it",
    ),
    "a stranger": (
        tool_of("() -> None", doc='"""Do it.\n\n    Args:\n        town: Where.\n    """'),
        "2: lint.argument the docstring of bad describes town, which is not a parameter",
    ),
    # annotations
    "no annotation": (
        tool_of("(city) -> None", doc='"""Do it.\n\n    Args:\n        city: Where.\n    """'),
        f"2: lint.annotation city of bad: has no annotation; use {KNOWN}",
    ),
    "a complex number": (
        tool_of("(a: complex) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.annotation a of bad: complex is not supported; use list[float]",
    ),
    "an item": (
        tool_of("(a: dict[str, list[memoryview]]) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.annotation a of bad: memoryview is not supported; use bytes",
    ),
    "a class": (
        tool_of("(a: Odd | None) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        f"2: lint.annotation a of bad: Odd is not supported; use {KNOWN}",
    ),
    "two types": (
        tool_of("(a: 'int | complex') -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.annotation a of bad: complex is not supported; use list[float]",
    ),
    "no result": (
        tool_of("()"),
        "2: lint.annotation bad: the result has no annotation; use -> None if it returns nothing",
    ),
    "a number": (
        tool_of("() -> complex"),
        "2: lint.annotation bad: the result: complex is not supported; use list[float]",
    ),
    "a class as result": (
        tool_of("() -> list[Odd]"),
        f"2: lint.annotation bad: the result: Odd is not supported; use {KNOWN}",
    ),
    # what it is called with
    "rt is not first": (
        tool_of("(a: int, rt: Runtime) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.parameter bad takes rt, but not first; make it the first parameter",
    ),
    "rt has another name": (
        tool_of("(runtime: Runtime) -> None"),
        "2: lint.parameter runtime of bad is the Runtime; name it rt",
    ),
    "by name alone": (
        tool_of("(*, a: complex = 1) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.annotation a of bad: complex is not supported; use list[float]",
    ),
    "by any name": (
        tool_of("(**a: int) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.parameter a of bad: arbitrary keyword arguments are not supported; declare each parameter, or one of type dict[str, T]"
        "",
    ),
    "not what the spec says": (
        "def bad(rt, town): ...\n"
        'toolset.add(ToolSpec("bad", "acme", (ArgSpec("city", "string", description="It."),), description="Do."), bad)',
        "1: lint.parameter bad must take (rt, city), not (rt, town)",
    ),
    "a default that changes": (
        tool_of("(a: list[str] = []) -> None", doc='"""Do it.\n\n    Args:\n        a: It.\n    """'),
        "2: lint.default a default of bad is mutable; use None and create the value in the function",
    ),
    # past the Runtime
    "prints": (in_tool("print(1)"), "4: lint.print print prints without the Runtime; use rt.println(…)"),
    "asks": (
        in_tool("input()"),
        "4: lint.print input reads from the terminal without the Runtime; use rt.prompt_user(…)",
    ),
    "writes to the terminal": (
        in_tool("import sys; sys.stderr.write('x')"),
        "4: lint.print sys.stderr.write prints without the Runtime; use rt.println(…)",
    ),
    "opens": (in_tool("open('a').read()"), f"4: lint.undeclared-access open accesses files {FILES}"),
    "opens by another name": (
        in_tool("from io import open as reading; reading('a')"),
        f"4: lint.undeclared-access io.open accesses files {FILES}",
    ),
    "reads a path": (
        in_tool("Path('a').read_text()"),
        f"4: lint.undeclared-access pathlib.Path(…).read_text accesses files {FILES}",
    ),
    "lists": (in_tool("return os.listdir()"), f"4: lint.undeclared-access os.listdir accesses files {FILES}"),
    "runs": (in_tool("subprocess.run(['x'])"), f"4: lint.undeclared-access subprocess.run runs a program {PROGRAMS}"),
    "runs in a helper": (
        "def helper() -> None:\n    os.system('x')",
        f"2: lint.undeclared-access os.system runs a program {PROGRAMS}",
    ),
    "connects": (
        in_tool("import socket; socket.create_connection(('a', 1))"),
        f"4: lint.undeclared-access socket.create_connection accesses the network {NETWORK}",
    ),
    "fetches": (
        in_tool("import httpx; httpx.get('x')"),
        f"4: lint.undeclared-access httpx.get accesses the network {NETWORK}",
    ),
    "fetches by a method": (
        in_tool("import urllib.request; urllib.request.urlopen('x').read()"),
        f"4: lint.undeclared-access urllib.request.urlopen accesses the network {NETWORK}",
    ),
    "reads the environment": (
        in_tool("return os.environ['X']"),
        f"4: lint.undeclared-access os.environ reads the environment {ENVIRONMENT}",
    ),
    # at import
    "opens at import": (
        "SETTINGS = open('x').read()",
        "1: lint.import-effect open runs when the module is imported; move it into the tool that needs it",
    ),
    "reads a variable at import": (
        "class Settings:\n    home = os.environ['HOME']",
        "2: lint.import-effect os.environ runs when the module is imported; move it into the tool that needs it",
    ),
    "asks as a default": (
        "def helper(home=os.getenv('HOME')): ...",
        "1: lint.import-effect os.getenv runs when the module is imported; move it into the tool that needs it",
    ),
    "prints at import": (
        "try:\n    pass\nfinally:\n    print('here')",
        "4: lint.import-effect print runs when the module is imported; move it into the tool that needs it",
    ),
    "starts a thread at import": (
        "import threading\nthreading.Thread(target=str).start()",
        "2: lint.import-effect threading.Thread runs when the module is imported; move it into the tool that needs it",
    ),
    # habits
    "a bare except": (
        in_tool("try: pass\n    except: return"),
        "5: lint.swallow a bare except hides refusals; catch specific exceptions",
    ),
    "every refusal": (
        in_tool("try: pass\n    except (ValueError, BaseException): return"),
        "5: lint.swallow this handler hides refusals; catch specific exceptions",
    ),
    "passed over": (
        in_tool("try: pass\n    except Exception: pass"),
        "5: lint.swallow this handler ignores every error, including refusals; catch specific exceptions",
    ),
    "a submodule": (
        "from neuroscript.spec.tool_spec import Example",
        "1: lint.submodule neuroscript.spec.tool_spec is internal and may change; import from neuroscript",
    ),
    "the engine": (
        "from neuroscript import Engine",
        "1: lint.engine a tool must not use Engine; call other tools with rt.call_tool",
    ),
    # what it declares
    "labels of a pure tool": (
        "POLICY = ToolPolicy(effects=('pure',), sources=['private'])",
        "1: lint.labels a pure tool reads nothing and sends nothing; remove its sources and sinks",
    ),
    "no sinks in spite of a capability": (
        "NEED = 'fs:write:{path}'\nPOLICY = ToolPolicy(effects=('writes',), capabilities=(NEED,), sinks=())",
        "2: lint.labels sinks is empty, but an argument decides about fs:write:{path}; "
        "declare where arguments go, such as storage",
    ),
    "a group of ours": (
        'other = Toolset("fs")',
        "1: lint.group the group fs belongs to neuroscript-fs; choose another name, such as that of your organization",
    ),
    "a part of a group of ours": (
        tool_of("() -> None").replace("tool()", 'tool(group="Http.more")'),
        "1: lint.group the group http.more belongs to neuroscript-http; choose another name, such as that of your organization",
    ),
}


def found_in(path: Path, text: str) -> list[str]:
    """Return what is found in a module of that text, each as its line, its code and its sentence."""
    path.write_text(text, "utf-8")
    return [str(each).removeprefix(f"{path}:") for each in lint(path).findings]


def test_valid_toolset_has_no_findings(tmp_path: Path) -> None:
    """The toolset declares tools in every way, with every kind of annotation."""
    path = tmp_path / "good.py"

    assert found_in(path, HEAD + GOOD) == []
    assert lint(path).tools == 5


ANNOTATIONS = (
    *(
        "list",
        "dict",
        "tuple",
        "set",
        "list[list[int]]",
        "tuple[int, str]",
        "tuple[int, ...]",
        "set[str]",
        "deque[int]",
    ),
    *("frozenset[Path]", "Sequence[Place]", "Mapping[str, Place | None]", "dict[int, str]", "int | str", "Path | None"),
    *("datetime.datetime", "datetime.date | str", "Decimal", "uuid.UUID", "list[Place]", "dict[str, list[Place]]"),
    *("Literal[1, 'a']", "list[int | None]", "ipaddress.IPv4Address", "list[Cities]", "Optional[Place]"),
    *(
        "complex",
        "object",
        "Odd",
        "list[Odd]",
        "dict[bytes, int]",
        "dict[str, complex]",
        "bytearray | None",
        "tuple[()]",
    ),
    *("re.Pattern", "Fraction", "Callable[[], int]", "list[object]", "int | Odd", "tuple[int, Odd]", "memoryview"),
)
IMPORTS = """import datetime, ipaddress, re, uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
"""


@pytest.mark.parametrize("annotation", ANNOTATIONS)
@pytest.mark.parametrize("place", ["argument", "result"])
def test_lint_agrees_with_the_error_of_the_tool(annotation: str, place: str, tmp_path: Path) -> None:
    """What lint finds without running the code is what creating the tool reports, in the same words."""
    signature = f"(a: {annotation}) -> None" if place == "argument" else f"() -> {annotation}"
    args = "\n\n    Args:\n        a: It.\n    " if place == "argument" else ""
    head = f"{IMPORTS}{HEAD}"
    text = f'{head}def bad{signature}:\n    """Do it.{args}"""\n'
    path = tmp_path / "tools.py"
    path.write_text(f"{text}\ntoolset.tool()(bad)\n")
    names = ModuleType("tools_of_lint").__dict__
    exec(text, names)

    findings = [str(each).partition("lint.annotation ")[2] for each in lint(path).findings]
    try:
        tool(names["bad"], group="acme")
        expected = []
    except SpecError as error:
        expected = [
            each.replace("a: ", "a of bad: ", 1) if place == "argument" else f"bad: {each}" for each in error.problems
        ]

    assert expected == [each for each in findings if each]


def test_decorator_without_parentheses_declares_tool(tmp_path: Path) -> None:
    """The defects of such a tool are found at the same lines."""
    path = tmp_path / "bad.py"
    with_parentheses = found_in(path, HEAD + tool_of("(x) -> None"))

    assert with_parentheses
    assert with_parentheses == found_in(path, HEAD + tool_of("(x) -> None").replace("tool()", "tool"))


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    """The finding has a code, and a sentence that says how to fix the problem."""
    text, expected = DEFECTS[name]
    before = (HEAD + GOOD).count("\n")
    line, _, reported = expected.partition(":")

    assert found_in(tmp_path / "bad.py", f"{HEAD}{GOOD}{text}\n") == [f"{before + int(line)}:{reported}"]


def test_comment_ignores_finding(tmp_path: Path) -> None:
    """The comment names the codes to ignore; other findings on the line are still reported."""
    text = f"{HEAD}{in_tool('print(open(1))  # neuroscript: ignore[lint.undeclared-access]')}"

    assert [each.split()[1] for each in found_in(tmp_path / "bad.py", text)] == ["lint.print"]


@pytest.mark.parametrize(
    ("need", "use"),
    [
        ("shell:exec:convert", "subprocess.run(['convert']); open('a'); os.environ"),
        ("net:read:{url.host}", "import httpx; httpx.get('x')"),
        ("env:read:{name}", "return os.environ['x']"),
    ],
)
def test_declared_capability_permits_side_effect(need: str, use: str, tmp_path: Path) -> None:
    """The Runtime has no members for these; a capability to run programs also covers files and the environment."""
    path = tmp_path / "stated.py"

    assert found_in(path, f"{HEAD}{in_tool(use)}") != []
    assert found_in(path, f"{HEAD}NEEDS = ToolPolicy(capabilities=({need!r},))\n{in_tool(use)}") == []


NO_LABELS = "it counts as reading and sending anything; declare effects, or sources and sinks"

SUGGESTIONS = {
    "effects": (
        "ToolPolicy(effects=('net',))",
        "the policy has no labels; declare sources (assumed: untrusted) and sinks (assumed: outside)",
    ),
    "effects by name": (
        "ToolPolicy(effects=WRITING)",
        "the policy has no labels; declare sources (assumed: nothing) and sinks (assumed: storage)",
    ),
    "a capability": (
        "ToolPolicy(effects=('clock',), capabilities=['fs:read:a'])",
        "the policy has no labels; declare sources (assumed: private) and sinks (assumed: nothing)",
    ),
    "nothing": ("ToolPolicy(timeout=5)", f"the policy has neither effects nor labels, so {NO_LABELS}"),
    "pure": ("ToolPolicy(effects=('pure',))", None),
    "declared": ("ToolPolicy(effects=('net',), sinks=('people',))", None),
    "declared elsewhere": ("ToolPolicy(effects=('net',), sinks=os.SINKS)", None),
    "effects from elsewhere": ("ToolPolicy(effects=os.EFFECTS)", None),
    "open": ("ToolPolicy(**os.OPTIONS)", None),
    "invalid": ("ToolPolicy(effects=('nets',))", None),
    "ignored": ("ToolPolicy()  # neuroscript: ignore[lint.no-labels]", None),
}


@pytest.mark.parametrize("case", SUGGESTIONS)
def test_policies_without_labels_are_suggestions(case: str, tmp_path: Path) -> None:
    """They are not findings, because effects imply labels."""
    source, suggestion = SUGGESTIONS[case]
    path = tmp_path / "policies.py"
    path.write_text(f"{HEAD}WRITING = ('writes', 'clock')\nPOLICY = {source}\n")
    found = lint(path)

    assert found.findings == ()
    assert [each.message for each in found.suggestions] == ([] if suggestion is None else [suggestion])
    assert {each.code for each in found.suggestions} <= {"lint.no-labels"}


@pytest.mark.parametrize(
    ("use", "is_suggested"),
    [
        ("return rt.fs.resolve('a')", True),
        ("with rt.fs.pinned('a') as path: return path", True),
        ("import sqlite3; sqlite3.connect(f'{rt.sandbox_dir}/a.db')", True),
        ("import pandas as pd; pd.read_csv(path=rt.sandbox_dir + '/a.csv')", True),
        ("import shutil; shutil.disk_usage(rt.sandbox_dir)", False),
        ("import sqlite3; sqlite3.connect(':memory:')", False),
        ("return rt.fs.read_text('a')", False),
        ("return rt.fs.resolve('a')  # neuroscript: ignore[lint.raw-files]", False),
    ],
)
def test_files_opened_by_path_are_suggestions(use: str, is_suggested: bool, tmp_path: Path) -> None:
    """Unless a policy in the same sources declares them."""
    path = tmp_path / "raw.py"
    source = f"{HEAD}{tool_of('(rt: Runtime) -> None', use)}"

    def suggested(more: str) -> list[str]:
        path.write_text(f"{source}{more}")
        return [each.message for each in lint(path).suggestions if each.code == "lint.raw-files"]

    text = "opens files by path; declare raw_files=True in the ToolPolicy, so that the tool can run isolated"
    assert suggested("") == [text] * is_suggested
    assert suggested("FILES = ToolPolicy(raw_files=True)\n") == []


def test_tools_without_a_policy_are_suggestions(tmp_path: Path) -> None:
    """However they are declared."""
    path = tmp_path / "good.py"
    path.write_text(
        f'{HEAD}{GOOD}toolset.add(ToolSpec("spare", "acme", description="Do it."), plain, ToolPolicy(sources=()))\n'
    )
    unlabelled = [each.message for each in lint(path).suggestions if each.message.endswith(NO_LABELS)]

    assert [each.split()[0] for each in unlabelled] == ["ask", "count", "plain", "plainly"]


def test_sources_are_not_imported(tmp_path: Path) -> None:
    """Neither the module nor its imports are executed."""
    mark = tmp_path / "mark"
    path = tmp_path / "effects_of_a_lint.py"

    found = found_in(
        path, f"import antigravity, no_such_thing\nopen({str(mark)!r}, 'w').write('x')\nraise SystemExit\n"
    )

    assert [each.split()[1] for each in found] == ["lint.import-effect"]
    assert not mark.exists()
    assert {"antigravity", "effects_of_a_lint"}.isdisjoint(sys.modules)


@pytest.mark.parametrize(
    "data",
    [b"def f(:\n", b"\0", b"\xff\xfe\xfa", b"# coding: no-such\nx = 1\n", b"x = " + b"(" * 5_000 + b")" * 5_000]
    + [b"x = " + b"-" * 50_000 + b"1\n", b"x = a" + b".b" * 20_000 + b"\n", b"x = " + b"1 + " * 20_000 + b"1\n"],
    ids=["syntax", "nul", "bytes", "coding", "brackets", "minus", "dots", "plus"],
)
def test_unreadable_file_has_at_most_one_finding(data: bytes, tmp_path: Path) -> None:
    """Arbitrary bytes never cause an exception."""
    path = tmp_path / "odd.py"
    path.write_bytes(data)

    assert {each.code for each in lint(path).findings} <= {"lint.syntax"}


# Distributions

PROJECT = """\
[project]
name = "acme-weather"
dependencies = ["neuroscript>=0.1"]

[project.entry-points."neuroscript.toolsets"]
weather = "acme_weather.tools:toolset"
"""


def distribution(root: Path, project: str = PROJECT, **files: str) -> Path:
    """Write a distribution, and return its directory."""
    package = root / "src" / "acme_weather"
    package.mkdir(parents=True)
    (root / "pyproject.toml").write_text(project)
    (package / "__init__.py").touch()
    (package / "py.typed").touch()
    (package / "tools.py").write_text(HEAD + GOOD)
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return root


PROMISES = {
    "no toml": (PROJECT + "[", "lint.project it is not valid TOML; fix it first"),
    "no project": ("[tool.x]", "lint.project it has no [project] table; add one with the name of the distribution"),
    "no dependency": (
        PROJECT.replace("neuroscript>=0.1", "attrs>=1"),
        "lint.project neuroscript is missing from dependencies; add it",
    ),
    "no entry point": (
        PROJECT.partition("[project.entry")[0],
        'lint.entry-point there is no entry point for a toolset; add [project.entry-points."neuroscript.toolsets"]',
    ),
    "no module": (
        PROJECT.replace(".tools:", ".tols:"),
        "lint.entry-point entry point weather refers to the module acme_weather.tols, which is not in the sources",
    ),
    "no attribute": (
        PROJECT.replace(":toolset", ":tools"),
        "lint.entry-point entry point weather refers to tools, which acme_weather.tools does not define",
    ),
    "no toolset": (
        PROJECT.replace(":toolset", ":plain"),
        "lint.entry-point entry point weather refers to plain, which is not a Toolset",
    ),
    "a module": (
        PROJECT.replace(":toolset", ""),
        "lint.entry-point entry point weather refers to a module instead of a Toolset; write module:attribute",
    ),
    "no target": (
        PROJECT.replace("acme_weather.tools:toolset", "a b"),
        "lint.entry-point entry point weather has an invalid value; write module:attribute",
    ),
}


@pytest.mark.parametrize("name", PROMISES)
def test_wrong_project_file_is_found(name: str, tmp_path: Path) -> None:
    """The finding is at the line of pyproject.toml that has the problem."""
    text, expected = PROMISES[name]
    root = distribution(tmp_path, text)

    (found,) = lint(root).findings

    assert (found.file, f"{found.code} {found.message}") == (str(root / "pyproject.toml"), expected)
    assert ("weather =" in text.splitlines()[found.line - 1]) == ("entry point weather" in expected)


def test_package_needs_typed_marker(tmp_path: Path) -> None:
    """A package without the file py.typed has a finding."""
    root = distribution(tmp_path)
    (root / "src" / "acme_weather" / "py.typed").unlink()

    assert lint(root).findings == (
        Finding(
            str(root / "src" / "acme_weather"),
            0,
            "lint.py-typed",
            "the package has no file py.typed; add an empty one, so that type checkers use its annotations",
        ),
    )


def test_imported_modules_are_checked_and_others_are_not(tmp_path: Path) -> None:
    """A command-line program in the same package may print."""
    tools = f"from acme_weather import helping\n{HEAD}{GOOD}"
    files = {"tools": tools, "helping": "from . import deep\n", "deep": "def f(): print()\n", "cli": "print(1)\n"}
    root = distribution(tmp_path, **files)

    for path in (root, root / "src" / "acme_weather"):
        assert [(Path(each.file).name, each.line, each.code) for each in lint(path).findings] == [
            ("deep.py", 1, "lint.print")
        ]


def test_first_party_distribution_can_use_its_groups(tmp_path: Path) -> None:
    """A single file of such a distribution can use them too."""
    root = distribution(tmp_path, PROJECT.replace("acme-weather", "neuroscript-fs"))
    tools = root / "src" / "acme_weather" / "tools.py"
    tools.write_text(tools.read_text().replace('Toolset("acme")', 'Toolset("fs")'))

    assert [lint(path).findings for path in (root, tools)] == [(), ()]


@pytest.mark.parametrize("path", sorted(ROOT.glob("plugins/*/pyproject.toml")), ids=lambda path: path.parent.name)
def test_first_party_distributions_have_no_findings(path: Path) -> None:
    """Their tools are detected."""
    found = lint(path.parent)

    assert (found.findings, found.suggestions) == ((), ())
    assert found.tools > 0


def test_reference_lists_every_code() -> None:
    """The reference has the sentence of each code, and each code is tested here."""
    lines = (ROOT / "docs" / "reference" / "lint.md").read_text().splitlines()
    rows = [re.fullmatch(r"\| `(lint\.[a-z-]+)` \| (.*) \|", line) for line in lines]
    tried = {
        code
        for _, reported in (*DEFECTS.values(), *PROMISES.values())
        for code in re.findall(r"lint\.[a-z-]+", reported)
    }

    assert {row[1]: row[2] for row in rows if row} == CODES
    assert CODES.keys() - tried == {"lint.syntax", "lint.py-typed", "lint.no-labels", "lint.raw-files"}
