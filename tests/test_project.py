"""The project itself: files that repeat facts agree, and none contains data of a machine."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from tests.interop.framework_place import VERSIONS

import neuroscript
from neuroscript import Engine, Files, Handles, Host, Runtime
from neuroscript._imports import PUBLISHED
from neuroscript.cli.error_help import read_explanations
from neuroscript.runtime.interfaces import LLM
from neuroscript.sandbox.directory import REFUSALS
from neuroscript.workflow import Attempt, NodeTrace, Step, Trace
from neuroscript.workflow.plan.file import NODE, PLAN, RETRY

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGINS = [tomllib.loads(path.read_text()) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]


def tracked() -> list[Path]:
    """Return the files in the git index."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def test_core_has_four_dependencies() -> None:
    """Everything else is an extra."""
    names = [re.split(r"[<>=]", each)[0] for each in PROJECT["project"]["dependencies"]]

    assert names == ["attrs", "cattrs", "pluggy", "platformdirs"]


def test_every_plugin_is_a_workspace_source() -> None:
    """uv then uses the plugin from this repository."""
    names = {plugin["project"]["name"] for plugin in PLUGINS}

    assert set(PROJECT["tool"]["uv"]["sources"]) == names | {"neuroscript"}


def test_every_dependency_has_a_constraint() -> None:
    """Tests run with the installed versions, or in environments of their own with other pinned versions."""
    wanted = [*PROJECT["project"]["dependencies"]]
    for each in [PROJECT, *PLUGINS]:
        wanted += [*each["project"]["dependencies"]]
        wanted += [name for extra in each["project"].get("optional-dependencies", {}).values() for name in extra]
    names = {re.split(r"[\[<>=; ]", each)[0].lower().replace("-", "_") for each in wanted if "sys_platform" not in each}
    constrained = {
        line.split("==")[0].lower().replace("-", "_") for line in lines_of("constraints.txt") if "==" in line
    }

    apart = {name.replace("-", "_") for name in VERSIONS}
    assert {name for name in names if not name.startswith("neuroscript")} <= constrained | apart


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of the project."""
    return (ROOT / name).read_text().splitlines()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_files_contain_no_data_of_a_machine() -> None:
    """They contain no path of a home directory and no address of a package index."""
    machine = re.compile(r"/root/|/home/[a-z]+/|file:///|(?<!test\.)pypi\.org|/work/main|/tmp/[a-z]")
    texts = [path for path in tracked() if path.suffix in (".py", ".md", ".toml", ".txt", ".jsonl") and path.exists()]
    found = [path.name for path in texts if machine.search(path.read_text()) and path != Path(__file__)]

    assert found == []


BY_NAME = re.compile(
    r"""(?:pip3? (?:install|download)|pipx \w+|uv add|uvx)\b[^\n;&|]*?[\s"'`(]neuroscript(?![\w-]* @)"""
)
"""A command that searches an index for a distribution of this project."""


@pytest.mark.skipif(PUBLISHED, reason="the names are ours")
def test_no_file_installs_an_unpublished_name() -> None:
    """A stranger who registers the name would own what the command runs."""
    files = [path for path in tracked() if path.suffix in (".md", ".py", ".txt", ".yml", ".toml") and path.exists()]
    others = [path for path in files if path.parts[len(ROOT.parts)] not in ("tests", "sandbox")]
    found = [str(path.relative_to(ROOT)) for path in others if BY_NAME.search(path.read_text())]

    assert found == ["docs/decisions/0041-install-commands.md", "src/neuroscript/_imports.py"]


@pytest.mark.parametrize(
    ("command", "is_by_name"),
    [
        ('pip install "neuroscript[std]"', True),
        ("pip install --find-links dist neuroscript-std", True),
        ("uvx neuroscript list", True),
        ("pip install -c dist/constraints.txt 'dist/neuroscript-0.1.0-py3-none-any.whl[std]'", False),
        ("pip install -e . && neuroscript list", False),
        ('pip install "neuroscript @ file:dist"', False),
    ],
)
def test_commands_by_name_are_recognized(command: str, is_by_name: bool) -> None:
    """Paths and direct references are not searched for."""
    assert bool(BY_NAME.search(command)) is is_by_name


ARCHITECTURE = "docs/explanation/architecture.md"


def test_architecture_page_lists_each_module_and_package() -> None:
    """Each module and package of the root has a row in the table."""
    page = "\n".join(lines_of(ARCHITECTURE))
    modules = [path.name for path in (ROOT / "src" / "neuroscript").iterdir() if path.suffix == ".py"]
    packages = [f"{path.parent.name}/" for path in (ROOT / "src" / "neuroscript").glob("*/__init__.py")]

    assert [name for name in [*modules, *packages] if f"`{name}`" not in page and name != "__main__.py"] == []


def test_architecture_page_draws_the_layers_of_the_linter() -> None:
    """The diagram is generated from the linter's table."""
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]

    assert picture_of(layers) in "\n".join(lines_of(ARCHITECTURE))


def test_architecture_page_lists_packages_by_layer() -> None:
    """The table has the same packages in the same layers as the linter, from the top down."""
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]

    assert [*listed_layers()] == [set(layer.split(" | ")) for layer in layers]


def picture_of(layers: list[str]) -> str:
    """Return the Mermaid diagram of these layers, listed from the top down."""
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


def test_contract_lists_each_public_name() -> None:
    """A name that is not in the contract is not a promise."""
    page = "\n".join(lines_of(CONTRACT))

    assert [name for name in neuroscript.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_references_to_the_contract_use_a_heading() -> None:
    """Docstrings and comments point to a heading of the contract by its text."""
    headings = {line.removeprefix("## ") for line in lines_of(CONTRACT) if line.startswith("## ")}
    reference = re.compile(r'contract\.md,\s+(?:#\s+)?"([^"]+)"')
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("tests/**/*.py")]
    named = {heading for path in sources for heading in reference.findall(path.read_text())}

    assert named <= headings


CODE = re.compile(r"[a-z]+\.[a-z0-9_]+")
WORDED = {"_refused": ("sandbox", 0), "tree_error": ("tree", 1), "fault": ("http", 0)}
"""Functions that take the last part of an error code: the group of the code, and the position of the argument."""


def test_documents_list_exactly_the_error_codes() -> None:
    """A host can rely on that list, and each code has an explanation."""
    codes = set(codes_of_sources())

    assert set(codes_of_documents("errors.md", "sandbox.md")) == codes
    assert set(read_explanations()[1]) == codes


def codes_of_documents(*pages: str) -> Iterator[str]:
    """Yield the codes in the tables of these reference pages; ``.word`` continues the preceding group."""
    for line in (line for page in pages for line in lines_of(f"docs/reference/{page}") if line.startswith("|")):
        group = ""
        for word in re.findall(r"`([a-z0-9_.]+)`", line):
            code = f"{group}{word}" if word.startswith(".") else word
            if CODE.fullmatch(code):
                group = code.partition(".")[0]
                yield code


def codes_of_sources() -> Iterator[str]:
    """Yield each string in a source that begins with the group of a code or tool and is not the name of a tool."""
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
        "engine/explanation/description.py",
        "engine/explanation/isolation.py",
        "workflow/__init__.py",
    }  # names of modules, keys of policy files, and words from other projects
    pages = set(package.glob("console/**/*.py"))  # names of routes
    for path in sources - pages - {package / name for name in others}:
        for node in _without_examples(ast.parse(path.read_text())):
            for text in _texts(node):
                if CODE.fullmatch(text) and text.partition(".")[0] in groups and text not in names:
                    yield text
    yield from (f"sandbox.{word}" for word, _, _ in REFUSALS.values())


def _without_examples(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants; an `Example` contains input of callers, such as unknown names of tools."""
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
def test_reference_lists_each_member(page: str, names: dict[str, object]) -> None:
    """The first column of a table contains each member as a name or a signature."""
    cells = [line.split("|")[1] for line in lines_of(f"docs/reference/{page}") if line.startswith("|")]
    reported = {name for cell in cells for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", cell)}

    assert set() == {name for name in names if not name.startswith("_")} - reported


WITHOUT_RETRY = {"NotJSON", "PluginError", "deferred.PluginError", "SystemExit"}
"""Errors that have a code or a similar attribute, and no ``retry``."""

CODE_IS_NOT_ASSERTED = {
    "tests/audit/test_replay.py::test_examples_of_installed_pure_tools_give_the_same_results",  # selects examples
    "tests/interop/test_mcp_unusable.py::test_server_that_fails_unexpectedly_does_not_affect_others",  # a PluginError
}
"""Functions that read a code and need not assert ``retry``."""


def test_retry_is_asserted_with_each_code() -> None:
    """A test that reads the code of an error also reads who can make the call succeed."""
    found = []
    for path in sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("plugins/*/tests/**/*.py")]):
        text = path.read_text()
        if ".code" not in text:
            continue
        functions = [each for each in ast.walk(ast.parse(text)) if isinstance(each, FUNCTIONS)]
        found += [f"{path.relative_to(ROOT)}::{each.name}" for each in functions if _codes_alone(each)]

    assert set(found) == CODE_IS_NOT_ASSERTED


def test_code_without_a_retry_is_found() -> None:
    """Raised and caught errors and results are checked, but not errors without a retry, nor processes."""
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
    """Return the errors in a function whose code is read and whose ``retry`` is not, as source expressions."""
    nodes = [*ast.walk(function)]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("code", "retry")]
    if not attributes:
        return set()
    caught = dict(_caught(nodes))
    read = {(ast.unparse(node.value), node.attr) for node in attributes}
    errors = {text for text, name in read if name == "code" and caught.get(text, text.endswith(".error"))}
    return {text for text in errors if (text, "retry") not in read}


def _caught(nodes: list[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield each expression for a raised or caught error, and whether it can have a ``retry``."""
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
