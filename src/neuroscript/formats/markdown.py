"""A page of Markdown for a group of tools, in which no text of theirs is anything but text.

Source: issue "Authoring from Python, schemas, AgentHeaven", docs; contract section 6, text from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from neuroscript.coercion.rule_text import described
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import given, returned, signature, written
from neuroscript.io.text import escaped, one_line
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec

MARK: Final = "<!-- written by neuroscript docs; what is changed here is lost -->"
"""The first line of each page; a file that does not begin with it is somebody else's."""

STEERING: Final = re.compile(r"[\\`*_{}\[\]<>&~#$@^]|:(?=\S)|(?<=www)\.|^[-+=]|^\d+(?=[.)])", re.IGNORECASE)
"""What could mean something in Markdown: marks, links that are made of bare addresses, and beginnings of lists."""

PIPE: Final = "&#124;"
"""A ``|`` that ends no cell of a table, whoever reads it."""


def page(group: str, tools: Iterable[ToolInfo], aliases: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the page of a group.

    Args:
        group: Its name.
        tools: Those that the page tells of, in any order.
        aliases: Old names of tools, with the names that they have now.

    Returns:
        Markdown that ends with one end of line; the same for the same tools.
    """
    known = sorted(tools, key=lambda tool: tool.spec.full_name)
    listed = [(_code(tool.spec.full_name), prose(tool.spec.description)) for tool in known]
    blocks = [MARK, f"# {prose(group)}", _table(("tool", "does"), listed)]
    for tool in known:
        old = sorted(old for old, name in aliases.items() if name == tool.spec.full_name)
        blocks.extend(_blocks(tool.spec, tool.policy, old))
    return "\n\n".join(blocks) + "\n"


def prose(text: str) -> str:
    """Return a text as one line of Markdown that shows its words and is nothing else.

    >>> prose("# a *bold*\\n| claim |")
    '\\\\# a \\\\*bold\\\\* &#124; claim &#124;'
    """
    return STEERING.sub(_escaped, one_line(text)).replace("|", PIPE)


def _escaped(match: re.Match[str]) -> str:
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"


def _blocks(spec: ToolSpec, policy: ToolPolicy, old: Sequence[str]) -> Iterator[str]:
    yield f"## {_code(spec.full_name)}"
    yield _fenced([f"{spec.full_name}{signature(spec)}"])
    yield from _titled("Deprecated", spec.deprecated)
    yield from filter(None, [prose(spec.description)])
    if old:
        yield f"**Old names:** {', '.join(map(_code, old))}"
    yield from _titled("When to use", spec.when_to_use)
    if spec.args:
        yield _table(("argument", "type", "given", "description"), list(_arguments(spec.args, "", spec.variadic)))
    yield from _titled("Returns", f"{returned(spec)}: {spec.return_help}" if spec.return_help else returned(spec))
    yield from _titled("Errors", spec.error_conditions)
    yield from _policy(policy)
    if spec.examples:
        yield "**Examples:**"
        yield _fenced([_example(spec, example) for example in spec.examples])


def _titled(title: str, text: str) -> Iterator[str]:
    if text.strip():
        yield f"**{title}:** {prose(text)}"


def _arguments(args: Sequence[ArgSpec], above: str, is_variadic: bool = False) -> Iterator[tuple[str, ...]]:
    for index, arg in enumerate(args):
        further = is_variadic and index == len(args) - 1
        asked = ", ".join(given(arg, further))
        yield prose(f"{above}{arg.name}"), prose(described(arg)), prose(asked), prose(arg.description)
        yield from _arguments(arg.keys, f"{above}{arg.name}.")


def _policy(policy: ToolPolicy) -> Iterator[str]:
    needs = [_code(str(need)) for need in policy.capabilities]
    needs = [*(["trust"] * policy.requires_trust), *needs, *(["approval of each call"] * policy.requires_approval)]
    effects = ", ".join(policy.effects) or "not said"
    time = "" if policy.timeout is None else f" **Timeout:** {policy.timeout:g} s."
    yield f"**Needs:** {', '.join(needs) or 'nothing'}. **Effects:** {effects}.{time}"


def _example(spec: ToolSpec, example: Example) -> str:
    if isinstance(example.args, dict):
        args = [f"{name}={written(value)}" for name, value in example.args.items()]
    else:
        args = [written(value) for value in example.args]
    note = f"  # {one_line(example.note)}" if example.note.strip() else ""
    return f"{spec.full_name}({', '.join(args)}){_outcome(example)}{note}"


def _outcome(example: Example) -> str:
    if example.error:
        return f" fails with {escaped(example.error)}"
    return "" if example.result is UNSET else f" -> {written(example.result)}"


def _fenced(lines: Iterable[str]) -> str:
    """Return lines as a block of code; each begins with the name of a tool, so none of them can end it."""
    return "\n".join(["```text", *map(escaped, lines), "```"])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    """Return a name as code; what has another letter than names have is prose."""
    return f"`{text}`" if re.fullmatch(r"[\w.:,/*{}-]+", text) else prose(text)
