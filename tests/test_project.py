"""The project itself: what stands in several files stands there alike, and nothing of a machine is left in it."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

import neuroscript
from neuroscript import Engine, Files, Handles, Host, Runtime
from neuroscript.runtime.interfaces import LLM
from neuroscript.sandbox.directory import REFUSALS
from neuroscript.workflow import Attempt, NodeTrace, Step, Trace
from neuroscript.workflow.plan.file import NODE, PLAN, RETRY

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGINS = [tomllib.loads(path.read_text()) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]


def tracked() -> list[Path]:
    """Return the files that git knows."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def test_the_core_depends_on_four_libraries_alone() -> None:
    """All else is an extra."""
    names = [re.split(r"[<>=]", each)[0] for each in PROJECT["project"]["dependencies"]]

    assert names == ["attrs", "cattrs", "pluggy", "platformdirs"]


def test_every_plugin_is_a_source_of_the_workspace() -> None:
    """So that uv takes it from here."""
    names = {plugin["project"]["name"] for plugin in PLUGINS}

    assert set(PROJECT["tool"]["uv"]["sources"]) == names | {"neuroscript"}


def test_every_library_that_is_asked_for_has_a_constraint() -> None:
    """What is tested is what is installed."""
    wanted = [*PROJECT["project"]["dependencies"]]
    for each in [PROJECT, *PLUGINS]:
        wanted += [*each["project"]["dependencies"]]
        wanted += [name for extra in each["project"].get("optional-dependencies", {}).values() for name in extra]
    names = {re.split(r"[\[<>=; ]", each)[0].lower().replace("-", "_") for each in wanted if "sys_platform" not in each}
    constrained = {
        line.split("==")[0].lower().replace("-", "_") for line in lines_of("constraints.txt") if "==" in line
    }

    assert {name for name in names if not name.startswith("neuroscript")} <= constrained


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of the project."""
    return (ROOT / name).read_text().splitlines()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_nothing_of_a_machine_is_in_the_files() -> None:
    """No path of a home directory, no address of a package index."""
    machine = re.compile(r"/root/|/home/[a-z]+/|file:///|(?<!test\.)pypi\.org|/work/main|/tmp/[a-z]")
    texts = [path for path in tracked() if path.suffix in (".py", ".md", ".toml", ".txt", ".jsonl") and path.exists()]
    found = [path.name for path in texts if machine.search(path.read_text()) and path != Path(__file__)]

    assert found == []


ARCHITECTURE = "docs/explanation/architecture.md"


def test_the_architecture_page_lists_each_module_and_package() -> None:
    """Each module of the root, and each package, has a row in the table."""
    page = "\n".join(lines_of(ARCHITECTURE))
    modules = [path.name for path in (ROOT / "src" / "neuroscript").iterdir() if path.suffix == ".py"]
    packages = [f"{path.parent.name}/" for path in (ROOT / "src" / "neuroscript").glob("*/__init__.py")]

    assert [name for name in [*modules, *packages] if f"`{name}`" not in page and name != "__main__.py"] == []


def test_the_architecture_page_draws_the_layers_of_the_linter() -> None:
    """The picture is the one that is made from the linter's table."""
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]

    assert picture_of(layers) in "\n".join(lines_of(ARCHITECTURE))


def test_the_architecture_page_lists_packages_by_layer() -> None:
    """The table has the same packages in the same layers as the linter, from the top down."""
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]

    assert [*listed_layers()] == [set(layer.split(" | ")) for layer in layers]


def picture_of(layers: list[str]) -> str:
    """Return the Mermaid diagram of these layers, which are listed from the top down."""
    count = len(layers)
    nodes = [f'    L{count - index}["{count - index}  {layer}"]' for index, layer in enumerate(layers)]
    arrows = " --> ".join(f"L{number}" for number in range(count, 0, -1))
    return "\n".join(["```mermaid", "flowchart TB", *nodes, f"    {arrows}", "```"])


def listed_layers() -> Iterator[set[str]]:
    """Yield the modules and packages of each layer in the table of the architecture page."""
    layer: set[str] = set()
    for line in lines_of(ARCHITECTURE):
        row = re.match(r"\| (\d+)? ?\| `(\w+)(?:\.py|/)` \|", line)
        if row is None:
            continue
        if row[1] and layer:
            yield layer
            layer = set()
        layer.add(row[2])
    yield layer


CONTRACT = "docs/reference/contract.md"


def test_the_contract_lists_each_public_name() -> None:
    """A name that is not in the contract is not promised."""
    page = "\n".join(lines_of(CONTRACT))

    assert [name for name in neuroscript.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_references_to_the_contract_name_a_heading() -> None:
    """Docstrings and comments point to a heading of the contract by its text."""
    headings = {line.removeprefix("## ") for line in lines_of(CONTRACT) if line.startswith("## ")}
    reference = re.compile(r'contract\.md,\s+(?:#\s+)?"([^"]+)"')
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("tests/**/*.py")]
    named = {heading for path in sources for heading in reference.findall(path.read_text())}

    assert named <= headings


CODE = re.compile(r"[a-z]+\.[a-z_]+")
WORDED = {"_refused": ("sandbox", 0), "failed": ("tree", 1), "fault": ("http", 0)}
"""Functions that take the word of a code as an argument: the group of the code, and which argument it is."""


def test_each_code_of_an_error_stands_in_the_documents() -> None:
    """And no other does: a host can rely on that list."""
    assert set(codes_of_documents("errors.md", "sandbox.md")) == set(codes_of_sources())


def codes_of_documents(*pages: str) -> Iterator[str]:
    """Yield the codes in the tables of these pages of the reference; ``.word`` goes on with the group before it."""
    for line in (line for page in pages for line in lines_of(f"docs/reference/{page}") if line.startswith("|")):
        group = ""
        for word in re.findall(r"`([a-z_.]+)`", line):
            code = f"{group}{word}" if word.startswith(".") else word
            if CODE.fullmatch(code):
                group = code.partition(".")[0]
                yield code


def codes_of_sources() -> Iterator[str]:
    """Yield each text in a source that begins with the group of a code or of a tool and is not the name of a tool."""
    with Engine() as engine:
        names = engine.tools
    groups = {name.partition(".")[0] for name in (*names, *codes_of_documents("errors.md", "sandbox.md"))}
    sources = {*ROOT.glob("src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")}
    package = ROOT / "src" / "neuroscript"
    others = {
        "__init__.py",
        "interop/opentelemetry.py",
        "testing/checks/audit_events.py",
        "cli/dispatch.py",
        "cli/parser.py",
        "cli/audit/command.py",
        "workflow/__init__.py",
    }  # names of modules, words that are not ours
    for path in sources - {package / name for name in others}:
        for node in _without_examples(ast.parse(path.read_text())):
            for text in _texts(node):
                if CODE.fullmatch(text) and text.partition(".")[0] in groups and text not in names:
                    yield text
    yield from (f"sandbox.{word}" for word, _, _ in REFUSALS.values())


def _without_examples(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it; what stands in an `Example` is what callers write, such as a name of no tool."""
    match node:
        case ast.Call(func=ast.Name(id="Example")):
            return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _without_examples(child)


def _texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Call(func=ast.Name(id=name), args=args) if name in WORDED:
            group, index = WORDED[name]
            match args[index:]:
                case [ast.Constant(value=str(word)), *_]:
                    yield f"{group}.{word}"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("runtime.md", vars(Runtime)),
        ("runtime.md", vars(Files)),
        ("runtime.md", vars(Handles)),
        ("runtime.md", vars(LLM)),
        ("host.md", attrs.fields_dict(Host)),
        ("plans.md", dict.fromkeys((*PLAN, *NODE, *RETRY))),
        *(("plans.md", attrs.fields_dict(each)) for each in (Step, Trace, NodeTrace, Attempt)),
    ],
    ids=["Runtime", "Files", "Handles", "LLM", "Host", "plans", "Step", "Trace", "NodeTrace", "Attempt"],
)
def test_the_reference_tells_of_each_member(page: str, names: dict[str, object]) -> None:
    """In the first column of a table, as a name or a signature."""
    cells = [line.split("|")[1] for line in lines_of(f"docs/reference/{page}") if line.startswith("|")]
    told = {name for cell in cells for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", cell)}

    assert set() == {name for name in names if not name.startswith("_")} - told


WITHOUT_RETRY = {"NotJSON", "PluginError", "deferred.PluginError", "SystemExit"}
"""Errors that have a code, or something of that name, and no ``retry``."""

CODE_IS_NOT_ASSERTED = {
    "tests/core/test_recording.py::test_every_example_of_an_installed_pure_tool_gives_what_it_gave",  # chooses examples
    "tests/interop/test_mcp_unusable.py::test_server_that_fails_in_an_unknown_way_stops_no_other",  # a PluginError
}
"""Functions that read a code and assert no code of an error with a ``retry``."""


def test_who_can_retry_is_asserted_with_each_code() -> None:
    """A function of the tests that reads the code of an error also reads who can make the call succeed."""
    found = []
    for path in sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("plugins/*/tests/**/*.py")]):
        functions = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, FUNCTIONS)]
        found += [f"{path.relative_to(ROOT)}::{each.name}" for each in functions if _codes_alone(each)]

    assert set(found) == CODE_IS_NOT_ASSERTED


def test_a_code_without_a_retry_is_found() -> None:
    """Of what was raised, of what was caught and of a result; not of an error without a retry, nor of a process."""
    source = """
def alone():
    with pytest.raises(CallError) as caught:
        call()
    try:
        call()
    except (CallError, SandboxError) as error:
        assert error.code == "a.b"
    assert caught.value.code == result.error.code == "a.b"
    last = session.execute(call).error
    assert last.code == "a.b"

def together():
    with pytest.raises(CallError) as caught:
        call()
    with pytest.raises(PluginError) as broken:
        call()
    assert (caught.value.code, caught.value.retry) == ("a.b", "host")
    assert (broken.value.code, ran.code) == ("plugin.import", 0)
"""
    alone, together = ast.parse(source).body

    assert _codes_alone(alone) == {"caught.value", "error", "result.error", "last"}
    assert _codes_alone(together) == set()


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _codes_alone(function: ast.AST) -> set[str]:
    """Return the errors of a function of which the code is read and ``retry`` is not, as the source spells them."""
    nodes = [*ast.walk(function)]
    caught = dict(_caught(nodes))
    read = {(ast.unparse(node.value), node.attr) for node in nodes if isinstance(node, ast.Attribute)}
    errors = {text for text, name in read if name == "code" and caught.get(text, text.endswith(".error"))}
    return {text for text in errors if (text, "retry") not in read}


def _caught(nodes: list[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield each expression for an error that was raised or caught, and whether it can have a ``retry``."""
    for node in nodes:
        match node:
            case ast.withitem(
                context_expr=ast.Call(func=ast.Attribute(attr="raises"), args=[kind, *_]),
                optional_vars=ast.Name(id=name),
            ):
                yield f"{name}.value", ast.unparse(kind) not in WITHOUT_RETRY
            case ast.Assign(targets=[ast.Name(id="error" as name)], value=ast.Call()):
                yield name, True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="error")):
                yield name, True
            case ast.ExceptHandler(type=ast.expr() as kind, name=str(name)):
                yield name, ast.unparse(kind) not in WITHOUT_RETRY
