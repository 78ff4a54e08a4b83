"""The sources of the site: the documents of the repository, with links for the site, and the generated pages.

Documents link to each other, and to other files, by their paths in the repository. The site contains some documents in
other places, and a page for each other text file that a document links to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import filter as matching_names
from fnmatch import fnmatch
from os.path import relpath
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
DOCUMENTS: Final = ROOT / "docs"

BLOCK: Final = re.compile(r"^(?: *)```.*?^(?: *)```", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
EXTERNAL: Final = re.compile(r"[a-z]+:|#")

LANGUAGES: Final = {".py": "python", ".toml": "toml", ".json": "json"}
"""The highlighting of a file, by its suffix; other files are shown as text."""

PICTURES: Final = frozenset({".svg", ".png", ".webp"})
"""Suffixes of files that are copied instead of shown on a page."""

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Introduction": (
        *("how-to/install", "explanation/why*", "explanation/concepts"),
        *("explanation/choosing*", "comparison/*"),
    ),
    "Tutorials": (
        *("tutorial/first-tool", "tutorial/first-toolset", "tutorial/embed-the-engine"),
        *("tutorial/a-model-that-uses-tools", "tutorial/a-plan", "tutorial/*"),
    ),
    "Recipes": ("how-to/cookbook*",),
    "Write tools": (
        *("how-to/write-tools-from-functions", "how-to/order-service", "how-to/inject-arguments"),
        *("how-to/test-a-toolset", "how-to/write-down-your-tools", "how-to/ship-a-plugin"),
    ),
    "Run tools": (
        *("how-to/grant-capabilities", "how-to/approve-calls", "how-to/keep-mail-from-leaving"),
        *("how-to/run-a-plugin-you-do-not-trust", "how-to/replace-the-host", "how-to/use-the-web-console"),
        *("how-to/read-the-audit-log", "how-to/pin-what-you-load", "how-to/run-plans-on-several-machines"),
    ),
    "Use models": ("how-to/talk-to-a-model", "how-to/expose-tools-to-a-model", "how-to/run-a-models-tool-calls"),
    "Connect": (
        *("how-to/serve-over-mcp", "how-to/offer-many-tools", "how-to/run-a-gateway"),
        *("how-to/authorize-clients", "how-to/serve-resources-and-prompts", "how-to/use-an-mcp-servers-tools"),
        *("how-to/tools-from-openapi", "how-to/serve-as-openapi"),
        *("how-to/use-our-tools-in-any-framework", "how-to/use-our-tools-in-*", "how-to/coming-from-*"),
    ),
    "More guides": ("how-to/*",),
    "Toolsets": ("toolsets/neuroscript-std", "toolsets/neuroscript-*"),
    "Reference": ("reference/contract", "reference/command-line", "reference/commands", "reference/*", "api/index"),
    "Background": ("explanation/*", "decisions/README", "*"),
    "Project": ("project/changelog", "project/*"),
}
"""The tables of contents of the landing page, by caption. A pattern matches the pages that no other entry names."""

CHILDREN: Final = ("decisions/0*", "toolsets/*/*", "api/*", "files/*")
"""The pages that other pages list."""

Pages = dict[str, str | Path]
"""The Markdown or reStructuredText of each page, and the file of each picture, by its path on the site."""


def save(pages: Pages, directory: Path) -> None:
    """Write the files that have changed, because Sphinx reads only those, and delete the files of earlier builds."""
    for name, content in pages.items():
        data = content.read_bytes() if isinstance(content, Path) else content.encode()
        file = directory / name
        if not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    for file in [*directory.rglob("*")]:
        if file.is_file() and file.relative_to(directory).as_posix() not in pages:
            file.unlink()


def document_pages() -> Pages:
    """Return the documents of the repository, and the files that they link to."""
    places = dict(documents())
    linked: set[Path] = set()
    pages: Pages = {place: rewrite_links(file.read_text(), file, places, linked) for file, place in places.items()}
    return pages | {_place(file): _copy(file) for file in sorted(linked)}


def documents() -> Iterator[tuple[Path, str]]:
    """Yield each document, and its path on the site."""
    for file in sorted(DOCUMENTS.rglob("*.md")):
        yield file, file.relative_to(DOCUMENTS).as_posix()
    for file in sorted(ROOT.glob("plugins/*/README.md")):
        yield file, f"toolsets/{file.parent.name}.md"
    for file in sorted(ROOT.glob("*.md")):
        if file.name != "README.md":  # the landing page replaces it
            yield file, f"project/{file.name.lower().replace('_', '-')}"


def contents(pages: Pages) -> str:
    """Return the tables of contents of the landing page."""
    files = [PurePosixPath(name) for name in sorted(pages) if name != "index.md"]
    names = [str(file.with_suffix("")) for file in files if file.suffix in (".md", ".rst")]
    listed = {entry for entries in SECTIONS.values() for entry in entries}
    left = [name for name in names if name not in listed and not any(fnmatch(name, each) for each in CHILDREN)]
    parts = []
    for caption, entries in SECTIONS.items():
        found = []
        for entry in entries:
            matching = [entry] if entry in names else matching_names(left, entry)
            found += matching
            left = [name for name in left if name not in matching]
        if found:
            parts.append(toctree(found, f":caption: {caption}", ":hidden:"))
    return "".join(parts)


def append(pages: Pages, name: str, text: str) -> None:
    """Append Markdown to a page."""
    pages[name] = f"{pages[name]}{text}"


def toctree(entries: Iterable[str], *options: str) -> str:
    """Return a table of contents for the end of a page."""
    return "\n".join(["", "```{toctree}", *options, "", *entries, "```", ""])


def rewrite_links(text: str, file: Path, places: Mapping[Path, str], linked: set[Path]) -> str:
    """Return the text of a document with its links as they are on the site.

    Args:
        file: The document.
        places: The path on the site of each document.
        linked: Receives each file that is not a document.
    """

    def rewritten(match: re.Match[str]) -> str:
        path, hash, anchor = match[1].partition("#")
        if EXTERNAL.match(match[1]):
            return match[0]
        target = (file.parent / path).resolve()
        if target == ROOT / "README.md":
            target = DOCUMENTS / "index.md"
        if target not in places:
            linked.add(target)
        to = places.get(target) or _place(target)
        return f"]({relpath(to, PurePosixPath(places[file]).parent)}{hash}{anchor})"

    parts, end = [], 0
    for block in BLOCK.finditer(text):
        parts += [LINK.sub(rewritten, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join(parts) + LINK.sub(rewritten, text[end:])


def _place(file: Path) -> str:
    """Return the path on the site of a file that is not a document."""
    name = f"files/{file.relative_to(ROOT).as_posix()}"
    return name if file.suffix in PICTURES else f"{name}.md"


def _copy(file: Path) -> str | Path:
    """Return a picture, or the page of a text file or of a directory of text files."""
    if file.suffix in PICTURES:
        return file
    name = file.relative_to(ROOT).as_posix()
    if file.is_dir():
        body = "\n\n".join(f"## {each.name}\n\n{_fenced(each)}" for each in sorted(file.iterdir()) if each.is_file())
    else:
        body = _fenced(file)
    return f"---\norphan: true\nnosearch: true\n---\n# {name}\n\n{body}\n"


def _fenced(file: Path) -> str:
    fence = "`" * 6
    return f"{fence}{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text().rstrip()}\n{fence}"
