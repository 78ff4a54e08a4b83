"""The page about troubleshooting, made from the explanations of error codes. Write it with ``python -m tests.error_page``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from neuroscript.cli.error_help import PAGE, Explanation, anchor, read_explanations

FILE = Path(__file__).parent.parent / "docs" / f"{PAGE}.md"

START = """\
<!-- python3 dev.py run tests.error_page writes this page from src/neuroscript/cli/error_codes.toml -->

# Troubleshooting by error code

Each error has a stable code, such as `policy.capability`. This page says for every code why the error occurs, what its
message looks like, and what to do.

On a terminal, an error is followed by the command that prints its entry of this page:

```console
$ neuroscript help policy.trust
{policy.trust}```

In Python, the code is `error.code`. `error.retry` says who can make the call succeed, and `error.remedy` often has the
exact grant or option; see [errors](../reference/errors.md) for the classes and the `retry` of each code. If tools are
missing altogether, or a plugin, a policy file or an audit log is broken, run `neuroscript doctor`.
"""


def page() -> str:
    """Return the page as Markdown."""
    from neuroscript.cli.error_help import help_text

    groups, explanations = read_explanations()
    return "\n".join(
        [
            START.replace("{policy.trust}", help_text("policy.trust")),
            *_contents(groups),
            *_sections(groups, explanations),
        ]
    )


def _contents(groups: dict[str, str]) -> Iterator[str]:
    yield "| codes that begin with | topic |"
    yield "|---|---|"
    for group, title in groups.items():
        yield f"| `{group}.` | [{title}](#{_heading_anchor(title)}) |"
    yield ""


def _heading_anchor(title: str) -> str:
    return title.lower().replace(":", "").replace(" ", "-")


def _sections(groups: dict[str, str], explanations: dict[str, Explanation]) -> Iterator[str]:
    for group, title in groups.items():
        yield f"## {title}\n"
        for code, each in explanations.items():
            if code.partition(".")[0] == group:
                yield f'<a id="{anchor(code)}"></a>\n\n### {code}\n'
                yield f"{each.cause}\n\n```text\n{each.message}\n```\n\n{each.remedy}\n"


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
