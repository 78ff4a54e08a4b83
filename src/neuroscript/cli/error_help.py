"""Explanations of error codes, for ``neuroscript help CODE`` and the page about troubleshooting."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from neuroscript.cli.terminal.output import MAX_PAGE_COLUMNS, Cell, Rows, wrap_rows

FILE: Final = Path(__file__).with_name("error_codes.toml")

PAGE: Final = "how-to/troubleshooting"
"""The page with all explanations, below ``docs/`` and on the documentation site, without its suffix."""

NEAR: Final = 0.85
"""Minimum similarity of a misspelled code and a code, from 0 to 1, as `difflib` measures it."""


class Explanation(NamedTuple):
    """What an error code means.

    Attributes:
        cause: Why the error occurs.
        message: An example of its message.
        remedy: What to do about it.
    """

    cause: str
    message: str
    remedy: str


def read_explanations() -> tuple[dict[str, str], dict[str, Explanation]]:
    """Return the heading of each group of codes, and the explanation of each code."""
    import tomllib

    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))
    groups = entries.pop("groups")
    return groups, {code: Explanation(**entry) for code, entry in entries.items()}


def explained_code(code: str) -> str:
    """Return the code that explains *code*, or ``""``. All codes of imported schemas have one explanation.

    >>> explained_code("policy.trust"), explained_code("schema.maxItems"), explained_code("acme.closed")
    ('policy.trust', 'schema.invalid', '')
    """
    known = "schema.invalid" if code.startswith("schema.") else code
    return known if f'\n["{known}"]\n' in FILE.read_text(encoding="utf-8") else ""


def anchor(code: str) -> str:
    """Return the anchor of a code on its page, as Markdown sites make it from the heading.

    >>> anchor("policy.not_allowed")
    'policynot_allowed'
    """
    return code.replace(".", "")


def help_text(word: str) -> str:
    """Return the explanation of an error code, or ``""`` for any other word."""
    code = explained_code(word)
    if not code:
        return ""
    found = read_explanations()[1][code]
    rows = (
        (Cell("cause"), Cell(found.cause)),
        (Cell("example"), Cell(found.message)),
        (Cell("remedy"), Cell(found.remedy)),
        (Cell("page"), Cell(f"{PAGE}#{anchor(code)}")),
    )
    return "\n".join([word, *wrap_rows(Rows(rows, indent=2), MAX_PAGE_COLUMNS), ""])


def near_code(word: str) -> str:
    """Return the code that *word* probably means, or ``""``."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, read_explanations()[1], 1, NEAR)), "")
