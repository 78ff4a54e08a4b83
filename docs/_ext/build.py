"""Build the documentation site: ``python3 dev.py docs``.

The sources are collected in build/site/source, and the site is written to build/site/html. A warning is an error. Pages
that have not changed since the last successful build are not built again.
"""

from __future__ import annotations

import gc
import shutil
import sys
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Final

from docs._ext.api import api_pages
from docs._ext.source import DOCUMENTS, ROOT, Pages, append, contents, document_pages, save, toctree
from docs._ext.tools import command_page, groups_of, tool_pages
from sphinx.cmd.build import build_main

SITE: Final = ROOT / "build" / "site"


def main(options: list[str]) -> int:
    """Build the site, and return the exit code.

    Args:
        options: Further options of ``sphinx-build``.
    """
    started = monotonic()
    pages = sources()
    save(pages, SITE / "source")
    delete_stale(pages, SITE / "html")
    strict = ["--fail-on-warning", "--keep-going", "--nitpicky"]
    doctrees = SITE / "doctrees"
    places = ["-c", str(DOCUMENTS), "-d", str(doctrees), str(SITE / "source"), str(SITE / "html")]
    gc.disable()  # it would take a third of the time
    code = build_main(["-q", "-j", "auto", *strict, *options, *places])
    if code:
        shutil.rmtree(doctrees, ignore_errors=True)  # so that the next build finds the same problems again
    else:
        print(f"{SITE.relative_to(ROOT)}/html/index.html: built in {monotonic() - started:.0f} s")
    return code


def delete_stale(pages: Pages, directory: Path) -> None:
    """Delete the pages of earlier builds whose source no longer exists; Sphinx leaves them."""
    generated = {"genindex", "search", "py-modindex"}
    current = {PurePosixPath(name).with_suffix("").as_posix() for name in pages} | generated
    for file in [*directory.rglob("*.html")]:
        if file.relative_to(directory).with_suffix("").as_posix() not in current:
            file.unlink()


def sources() -> Pages:
    """Return the sources of the site."""
    pages = document_pages() | tool_pages() | api_pages() | {"reference/commands.md": command_page()}
    for file in ROOT.glob("plugins/*/README.md"):
        append(pages, f"toolsets/{file.parent.name}.md", groups_of(file.parent.name, pages))
    decisions = [PurePosixPath(name).stem for name in pages if name.startswith("decisions/0")]
    append(pages, "decisions/README.md", toctree(decisions, ":hidden:"))
    append(pages, "index.md", contents(pages))
    return pages


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
