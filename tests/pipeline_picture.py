"""The picture of the call pipeline, made from its table in the contract. Write it with ``python -m tests.pipeline_picture``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent.parent / "docs"
CONTRACT = DOCS / "reference" / "contract.md"
FILE = DOCS / "explanation" / "pipeline.svg"

QUESTIONS = {
    "resolve": "Which tool has this name?",
    "tool check": "May this tool run at all?",
    "bind": "Are the arguments exact values?",
    "capability check": "Do the grants cover its needs?",
    "hooks": "Does a hook refuse the call?",
    "approval": "Does the user approve the call?",
    "limits": "Is enough left of each limit?",
    "audit": "Can the start be recorded?",
    "run": "The function receives the values.",
    "result": "Does the result have its type?",
    "notify": "Logs receive the outcome.",
}
"""What each step does, in a few words."""

TOP, ROW, HEIGHT = 64, 46, 34
LEFT, WIDTH, FAILURES = 24, 440, 512

STYLE = """\
text { fill: #1f2328; }
.paper { fill: #ffffff; }
.step { fill: #eef2f7; stroke: #57606a; }
.run { fill: #dcefe0; stroke: #2c6e3f; }
.arrow { stroke: #57606a; fill: none; }
.tip { fill: #57606a; }
.failure { fill: #a40e26; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.paper { fill: #0d1117; }
.step { fill: #1c2430; stroke: #8b949e; }
.run { fill: #173322; stroke: #5fb87a; }
.arrow { stroke: #8b949e; }
.tip { fill: #8b949e; }
.failure { fill: #ff8f8a; }
}"""
"""The colours in light and in dark mode; each has its own background, so a page of the other mode can show it too."""


class Step(NamedTuple):
    """A step of the pipeline.

    Attributes:
        name: Its name in the contract.
        failures: The errors that it raises.
    """

    name: str
    failures: tuple[str, ...]


def steps() -> list[Step]:
    """Return the steps in the table of the contract, in order."""
    rows = re.findall(r"^\| \d+\. (.+?) \| .+ \|(.*)\|$", CONTRACT.read_text(encoding="utf-8"), re.MULTILINE)
    return [Step(name, tuple(re.findall(r"`([A-Z]\w+)`", failures))) for name, failures in rows]


def picture() -> str:
    """Return the picture as SVG."""
    found = steps()
    height = TOP + ROW * len(found) + 40
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" role="img" aria-labelledby="title desc" '
            'font-family="system-ui, sans-serif" font-size="14">',
            '<title id="title">A call through the pipeline</title>',
            f'<desc id="desc">{escape(description(found))}</desc>',
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="paper" width="720" height="{height}" rx="8"/>',
            f'<text x="{LEFT}" y="32" font-weight="600">a call: the name of a tool, and arguments</text>',
            f'<text x="{FAILURES}" y="32" font-weight="600">error for the caller</text>',
            *_rows(found),
            f'<text x="{LEFT}" y="{height - 14}" font-weight="600">the result, or one typed error</text>',
            "</svg>",
            "",
        ]
    )


def description(found: list[Step]) -> str:
    """Return the picture in words, for readers who do not see it."""
    sentences = [
        f"{number}. {step.name}: {QUESTIONS[step.name]}"
        + (f" Failure: {' or '.join(step.failures)}." * bool(step.failures))
        for number, step in enumerate(found, 1)
    ]
    return " ".join(["A call passes these steps in order.", *sentences])


def _rows(found: list[Step]) -> Iterator[str]:
    for index, step in enumerate(found):
        y = TOP + ROW * index
        middle, centre = y + HEIGHT / 2, LEFT + 20
        kind = "run" if step.name == "run" else "step"
        yield _arrow(centre, y - (ROW - HEIGHT), centre, y)
        yield f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        yield f'<text x="{LEFT + 12}" y="{middle + 5:g}" font-weight="600">{index + 1}. {step.name}</text>'
        yield f'<text x="{LEFT + 176}" y="{middle + 5:g}">{escape(QUESTIONS[step.name])}</text>'
        if step.failures:
            yield _arrow(LEFT + WIDTH, middle, FAILURES - 8, middle)
            yield f'<text class="failure" x="{FAILURES}" y="{middle + 5:g}">{", ".join(step.failures)}</text>'
    y = TOP + ROW * len(found)
    yield _arrow(LEFT + 20, y - (ROW - HEIGHT), LEFT + 20, y + 8)


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line with a tip at its end, downwards or to the right."""
    tip = f"{x2 - 4:g},{y2 - 6:g} {x2 + 4:g},{y2 - 6:g}" if x1 == x2 else f"{x2 - 6:g},{y2 - 4:g} {x2 - 6:g},{y2 + 4:g}"
    return f'<path class="arrow" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/><polygon class="tip" points="{tip} {x2:g},{y2:g}"/>'


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
