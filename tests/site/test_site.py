"""The documentation site: every public name, tool and option is on it, and every link has a target."""

from __future__ import annotations

import argparse
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from docs._ext.api import resolved
from docs._ext.references import definition
from sphinx.util.inventory import InventoryFile

import neuroscript
from neuroscript import Engine
from neuroscript.cli.parser import build

pytestmark = pytest.mark.slow  # a build takes half a minute

ROOT = Path(__file__).parent.parent.parent
TUTORIALS = ["first-tool", "first-toolset", "embed-the-engine", "a-model-that-uses-tools", "a-plan"]


@cache
def inventory(site: Path) -> dict[str, str]:
    """Return the page of each Python name in ``objects.inv``."""
    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    entries = [
        (name, item.uri) for kind, items in found.data.items() if kind.startswith("py:") for name, item in items.items()
    ]
    return {name: uri.partition("#")[0] for name, uri in entries}


def public_names() -> Iterator[str]:
    """Yield each name in the ``__all__`` of a package."""
    packages = [each.name for each in pkgutil.walk_packages(neuroscript.__path__, "neuroscript.") if each.ispkg]
    for package in ["neuroscript", *packages]:
        for name in getattr(import_module(package), "__all__", ()):
            yield f"{package}.{name}"


def test_inventory_contains_every_public_name(site: Path) -> None:
    """Also under each other package that exports it."""
    assert [name for name in public_names() if name not in inventory(site)] == []


def test_every_name_is_described_on_one_page(site: Path) -> None:
    """A name that two packages export is described once, and both spellings lead there."""
    anchors = Counter(
        name
        for file in (site / "api").glob("*.html")
        for name in re.findall(r'<dt class="sig[^"]*" id="(neuroscript[^"]*)"', file.read_text())
    )
    pages = inventory(site)
    spellings: dict[tuple[str, int], list[str]] = {}
    for name in public_names():
        spellings.setdefault((name.rpartition(".")[2], id(resolved(name))), []).append(name)

    assert [each for each in spellings.values() if sum(anchors[name] for name in each) != 1] == []
    assert pages["neuroscript.FileAudit"] == pages["neuroscript.audit.FileAudit"] == "api/audit.html"


def test_every_name_that_a_document_imports_is_described(site: Path) -> None:
    """Documents use only public names."""
    pages = inventory(site)
    names = {name for file in ROOT.glob("docs/**/*.md") for name in imported(file.read_text())}

    assert len(names) > 100
    assert sorted(name for name in names if not {name, definition(resolved(name))} & {*pages}) == []


def imported(text: str) -> Iterator[str]:
    """Yield the names of the package that the code of a document imports."""
    for module, names in re.findall(r"^(?:>>> )?from (neuroscript[\w.]*) import (\([^)]*\)|.*)", text, re.MULTILINE):
        yield from (f"{module}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names.partition("#")[0]))


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.related: dict[str, str] = {}
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        self.links += [values[name] for name in ("href", "src") if name in values]
        if tag == "link" and "rel" in values:
            self.related[values["rel"]] = values.get("href", "")


def test_every_link_of_the_site_has_a_target(site: Path) -> None:
    """Also those to anchors, to files of the repository, and in generated pages."""
    pages = {file: Page(file) for file in site.rglob("*.html")}

    assert len(pages) > 150
    assert [*broken(pages)] == []


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the broken links, each behind its page."""
    for file, page in pages.items():
        for link in {*page.links}:
            if re.match(r"[a-z]+:", link):
                continue
            path, anchor = urldefrag(link)
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            if not target.is_file() or (target in pages and unquote(anchor) not in pages[target].anchors):
                yield f"{file.name}: {link}"


def test_tutorials_lead_to_each_other_in_order(site: Path) -> None:
    """The links at the end of a page are those of the tables of contents."""
    found = [Page(site / "tutorial" / f"{name}.html").related for name in TUTORIALS]

    assert [each["next"] for each in found[:-1]] == [f"{name}.html" for name in TUTORIALS[1:]]
    assert [each["prev"] for each in found[1:]] == [f"{name}.html" for name in TUTORIALS[:-1]]


def test_every_tool_has_a_section(site: Path) -> None:
    """The pages are generated from the specs."""
    names = [path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")]
    with Engine(plugins=names) as engine:
        tools = [info.spec.full_name for info in engine.infos.values()]
    text = "".join(file.read_text() for file in site.glob("toolsets/*/*.html"))

    assert len(tools) > 100
    assert [
        name
        for name in tools
        if f'<h2><code class="docutils literal notranslate"><span class="pre">{name}<' not in text
    ] == []


def test_every_option_of_every_command_is_listed(site: Path) -> None:
    """With two dashes, although typography would join them."""
    text = (site / "reference" / "commands.html").read_text()
    options = sorted({*options_of(build())} - {"--help", "-h", "--version"})

    assert len(options) > 40
    assert [each for each in options if not re.search(rf'class="pre">{each}(,?</span>|=)', text)] == []


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a parser and of its commands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from options_of(command)
