"""The sources of the site: links of documents, tables of contents, and diagrams."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs._ext.build import delete_stale
from docs._ext.diagrams import draw, parse
from docs._ext.source import ROOT, contents, rewrite_links

PLACES = {
    ROOT / "docs/index.md": "index.md",
    ROOT / "docs/how-to/a.md": "how-to/a.md",
    ROOT / "plugins/p/README.md": "toolsets/p.md",
}


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("../index.md", "../index.md"),
        ("../../plugins/p/README.md#errors", "../toolsets/p.md#errors"),
        ("../../README.md", "../index.md"),
        ("../../LICENSE", "../files/LICENSE.md"),
        ("../explanation/performance.svg", "../files/docs/explanation/performance.svg"),
        ("../examples/plans/", "../files/docs/examples/plans.md"),
        ("#here", "#here"),
        ("https://example.com/a.md", "https://example.com/a.md"),
    ],
)
def test_links_lead_to_pages_of_the_site(link: str, expected: str) -> None:
    """Links in code blocks remain as they are."""
    page = f"[a]({link})\n\n```text\n[a]({link})\n```\n[a]({link})\n"
    text = rewrite_links(page, ROOT / "docs/how-to/a.md", PLACES, set())

    assert text == f"[a]({expected})\n\n```text\n[a]({link})\n```\n[a]({expected})\n"


def test_every_page_is_in_one_table_of_contents() -> None:
    """Explicit entries come first, and a page without a place is among the background."""
    names = ["how-to/new.md", "tutorial/zoo.md", "tutorial/first-tool.md", "misplaced.md", "api/index.rst", "index.md"]
    lines = contents(dict.fromkeys(names, "")).splitlines()

    assert [line for line in lines if line and not line.startswith(("`", ":hidden"))] == [
        *(":caption: Tutorials", "tutorial/first-tool", "tutorial/zoo"),
        *(":caption: More guides", "how-to/new"),
        *(":caption: Reference", "api/index"),
        *(":caption: Background", "misplaced"),
    ]


def test_diagram_is_drawn_from_top_to_bottom() -> None:
    """Labels are escaped, and arrows may have labels too."""
    picture = draw(parse(["flowchart TB", '  a["x < y"] -->|"yes"| b', "  b --> c"]))

    assert picture.startswith('<svg class="flowchart" role="img"')
    assert picture.count("<rect") == 3
    assert picture.count("<path") == 2
    assert all(f">{label}</text>" in picture for label in ("x &lt; y", "yes", "b", "c"))
    heights = [float(part.partition('"')[0]) for part in picture.split(' y="')[1:7:2]]
    assert heights == sorted(heights)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["sequenceDiagram"], "a diagram must begin with flowchart TB"),
        ([], "a diagram must begin with flowchart TB"),
        (["flowchart TB", "a -.-> b"], "expected --> in a -.-> b"),
        (["flowchart TB", "a --> (b)"], 'expected NAME or NAME["TEXT"] in a --> (b)'),
    ],
)
def test_unsupported_diagrams_are_refused(lines: list[str], expected: str) -> None:
    """Nothing of a diagram is lost."""
    with pytest.raises(ValueError) as caught:
        parse(lines)

    assert str(caught.value) == expected


def test_pages_of_earlier_builds_are_deleted(tmp_path: Path) -> None:
    """Sphinx leaves the page of a document that was renamed; a reader, and the test of links, would find it."""
    names = ("index.html", "how-to/old.html", "how-to/new.html", "search.html", "_static/old.css")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    delete_stale(dict.fromkeys(["index.md", "how-to/new.md"], ""), tmp_path)

    found = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert found == {*names} - {"how-to/old.html"}
