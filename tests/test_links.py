"""Links between the documents: each leads to an existing file and heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")]

BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def test_every_link_has_a_target() -> None:
    """A renamed page or heading must update its links."""
    assert [*broken()] == []


def broken() -> Iterator[str]:
    """Yield the broken links, each behind its page."""
    for page in PAGES:
        for link in LINK.findall(prose(page)):
            name, _, anchor = link.partition("#")
            meant = (page.parent / name).resolve() if name else page
            is_ours = re.match(r"[a-z]+:", link) is None
            if is_ours and not (meant.exists() and (not anchor or anchor in anchors(meant))):
                yield f"{page.relative_to(ROOT)}: {link}"


@cache
def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return BLOCK.sub("", page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """Return the link anchors of the headings of a page, as Markdown sites make them."""
    titles = (re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", each).strip().lower() for each in HEADING.findall(prose(page)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}
