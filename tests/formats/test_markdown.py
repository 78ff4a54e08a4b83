"""Markdown pages, read by a Markdown parser: strings of tools are plain text on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from neuroscript import ArgSpec, ArgType, Engine, Example, ToolInfo, ToolPolicy, ToolSpec
from neuroscript.formats.markdown import MARK, page, prose

MarkdownIt = pytest.importorskip("markdown_it").MarkdownIt

CLOSE = ToolSpec(
    "close",
    "shop",
    (
        ArgSpec("town", ArgType.STRING, choices=("Oslo", "a|b"), description="Which *one*."),
        ArgSpec(
            "options",
            ArgType.MAP,
            default={"size": 2},
            extra_keys=True,
            keys=(ArgSpec("size", ArgType.INT, default=1, minimum=1, description="How large."),),
        ),
        ArgSpec("pins", ArgType.INT, required=False, nullable=True, secret=True),
    ),
    return_type=ArgType.BOOL,
    description="Close a shop.\n\n# Forever",
    when_to_use="At night.",
    return_help="Whether it was open.",
    error_conditions="shop.closed.",
    deprecated="use <b>shop.shut</b>",
    examples=(
        Example(("Oslo",), True, note="```"),
        Example({"town": "Rome"}, error="coercion.choice"),
        Example(("a|b",)),
    ),
)
POLICY = ToolPolicy(
    requires_trust=True,
    requires_approval=True,
    capabilities=("fs:write:{town}/**",),
    effects=("writes",),
    timeout=2.5,
    sources=("private:shops",),
    declassifies=("untrusted",),
    raw_files=True,
)

PAGE = f"""\
{MARK}

# shop

| tool | description |
| --- | --- |
| `shop.close` | Close a shop. \\# Forever |

## `shop.close`

```text
shop.close(town: string, options: map = {{"size": 2}}, pins?: int | None) -> bool
```

**Deprecated:** use \\<b\\>shop.shut\\</b\\>

Close a shop. \\# Forever

**Old names:** `shop.old`

**When to use:** At night.

| argument | type | required | description |
| --- | --- | --- | --- |
| town | string, one of 'Oslo', 'a&#124;b' | required | Which \\*one\\*. |
| options | map | default \\{{"size": 2\\}}, other keys allowed |  |
| options.size | int of at least 1 | default 1 | How large. |
| pins | int | optional, may be null, secret |  |

**Returns:** bool: Whether it was open.

**Errors:** shop.closed.

**Needs:** trust, `fs:write:{{town}}/**`, approval of each call. **Effects:** writes. \
**Reads:** private:shops. **Sends to:** storage (assumed). **Declassifies:** untrusted. \
**Files:** opens granted files by path. **Timeout:** 2.5 s.

**Examples:**

```text
shop.close("Oslo") -> true  # ```
shop.close(town="Rome") fails with coercion.choice
shop.close("a|b")
```
"""


def test_a_page_tells_all_of_a_tool() -> None:
    """Descriptions as prose, values as JSON."""
    aliases = {"shop.old": "shop.close", "shop.other": "shop.else"}

    assert page("shop", [ToolInfo(CLOSE, POLICY, "x")], aliases) == PAGE


def read(source: str) -> list[Any]:
    """Return the tokens of a page."""
    return list(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(source))


def flat(tokens: list[Any]) -> Iterator[Any]:
    """Yield tokens, and those within them."""
    for token in tokens:
        yield token
        yield from flat(token.children or [])


def skeleton(source: str) -> list[str]:
    """Return what a page is made of, without its words."""
    found = [token.type for token in flat(read(source)) if token.type != "text_special"]
    return [kind for index, kind in enumerate(found) if kind != "text" or found[index - 1 : index] != ["text"]]


def words(source: str) -> str:
    """Return the words of a page, as they are shown."""
    inline = [token for token in read(source) if token.type == "inline"]
    return "\n".join("".join(each.content for each in token.children or []) for token in inline)


HOSTILE = (
    "# a", "a\n# b\n\n- c", "| a | b |", "\\| a", "`a`", "``` a", "~~~", "<script>alert(1)</script>", "<!-- a", "-->",
    "[a](http://x.example)", "![a](b)", "[a]: http://x.example", "<http://x.example>", "http://x.example",
    "www.x.example", "&lt;b&gt;", "&#124;", "*a* **b** _c_ ~~d~~", "1. a", "12) a", "- a", "+ a", "> a", "===", "---",
    "\\", "a\\", "{{ a }}", "{% a %}", "$a$", ":a:", "a  \nb", "    code", "\ta", "\x1b[2J", "\u202e", "\x00", "a\u2028b",
    "](x)", "^a", "@a", "#1", "-", "1)", "***", "</td></tr></table>",
)  # fmt: skip


def made(text: str) -> str:
    """Return a page of a tool that says *text* wherever it can say something."""
    arg = ArgSpec("x", ArgType.STRING, description=text, default=text)
    key = ArgSpec("y", ArgType.MAP, keys=(ArgSpec("z", ArgType.STRING, choices=(text, "b"), description=text),))
    options: dict[str, Any] = dict.fromkeys(
        ("description", "when_to_use", "return_help", "error_conditions", "deprecated", "category"), text
    )
    call = Example((text, {"z": "b"}), text, note=text)
    return page("g", [ToolInfo(ToolSpec("t", "g", (key, arg), examples=(), **options), ToolPolicy(), "x"),
                      ToolInfo(ToolSpec("u", "g", (arg, key), examples=(call,), **options), ToolPolicy(), "x")])  # fmt: skip


@settings(max_examples=examples(400), deadline=None)
@given(st.text(st.sampled_from("ab \n\\`*_{}[]<>()#+-.!|~&$@:;/=\"'1"), min_size=1, max_size=24).filter(str.strip))
def test_no_text_changes_what_a_page_is_made_of(text: str) -> None:
    """The same headings, tables, blocks of code and paragraphs as with a plain word."""
    assert skeleton(made(text)) == skeleton(made("word"))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_hostile_text_changes_what_a_page_is_made_of(text: str) -> None:
    """Each thing that Markdown knows, one by one."""
    assert skeleton(made(text)) == skeleton(made("word"))


@settings(max_examples=examples(400), deadline=None)
@given(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), max_size=40))
@example("a|b\\`*c*")
def test_prose_shows_the_words_that_were_written(text: str) -> None:
    """All of them, with the blanks between them one each."""
    assert words(prose(text)) == " ".join(text.split())


@pytest.mark.parametrize("text", ["http://x.example", "see HTTPS://x", "www.x.example", "WWW.x"])
def test_a_bare_address_is_no_link_for_those_who_make_links_of_them(text: str) -> None:
    """What they look for is not there."""
    assert re.search(r"(?i)(?<!\\)://|www\.", prose(text)) is None


def test_a_table_shows_what_was_written_too() -> None:
    """A pipe ends no cell."""
    assert "a|b, c|d" in words(made("a|b, c|d"))


def test_every_tool_of_ours_is_on_a_page_that_a_parser_reads() -> None:
    """A heading for each, a row for each argument, and nothing that begins a line with another mark."""
    groups: dict[str, list[ToolInfo]] = {}
    with Engine() as engine:
        for tool in engine.tools.values():
            groups.setdefault(tool.spec.group, []).append(ToolInfo(tool.spec, tool.policy, ""))
    for group, tools in groups.items():
        text = page(group, tools)
        tokens = read(text)
        titles = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]

        assert titles == [
            group,
            *(f"`{tool.spec.full_name}`" for tool in sorted(tools, key=lambda tool: tool.spec.name)),
        ]
        assert text == page(group, reversed(tools))
        assert len([token for token in tokens if token.type == "tr_open"]) == 1 + len(tools) + sum(
            1 + count(tool.spec.args) for tool in tools if tool.spec.args
        )
        assert {token.type for token in flat(tokens)} & {"link_open", "image", "html_inline"} == set()
        assert re.search(r"[^\n]\n\Z", text)


def count(args: tuple[ArgSpec, ...]) -> int:
    """Return how many arguments and keys there are."""
    return sum(1 + count(arg.keys) for arg in args)
