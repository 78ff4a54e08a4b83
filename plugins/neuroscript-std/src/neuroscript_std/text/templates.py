"""What stands in the place of a match: a text in which ``$1`` and ``${name}`` stand for groups.

Source: Go ``regexp.Expand``. One thing differs: a group that the pattern does not have is an error, not nothing, for
``$1x`` asks for a group called ``1x``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from neuroscript import ToolFailed
from neuroscript_std.text.patterns import Automaton, Match
from neuroscript_std.text.size import refuse_above_limit

REFERENCE: Final = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")


@attrs.frozen(eq=False, repr=False)
class Template:
    """A replacement, taken apart.

    Attributes:
        parts: Bytes as they are, and the numbers of groups.
        fixed: How many bytes stand in it as they are.
        groups: How often each group does.
    """

    parts: tuple[bytes | int, ...]
    fixed: int
    groups: Mapping[int, int]

    @property
    def captures(self) -> bool:
        """Whether it asks for more than the whole match, group 0."""
        return any(self.groups)

    def filled(self, match: Match, data: bytes, taken: int) -> bytes:
        """Return it with the groups of a match in *data*; one that took no part is empty.

        Args:
            taken: How many bytes of the result there are without it.

        Raises:
            ToolFailed: str.too_large, before anything is put together.
        """
        found = {group: data[slice(*match.span(group))] for group in self.groups}
        refuse_above_limit(taken + self.fixed + sum(len(found[group]) * often for group, often in self.groups.items()))
        return b"".join([part if isinstance(part, bytes) else found[part] for part in self.parts])


def template(text: str, automaton: Automaton) -> Template:
    """Return a replacement for matches of a pattern; a ``$`` before anything else is a ``$``.

    Raises:
        ToolFailed: str.no_group.
    """
    parts: list[bytes | int] = []
    place = 0
    for reference in REFERENCE.finditer(text):
        parts.append(text[place : reference.start()].encode())
        parts.append(b"$" if reference[1] else _group(reference[2] or reference[3], automaton))
        place = reference.end()
    parts.append(text[place:].encode())
    fixed = sum(len(part) for part in parts if isinstance(part, bytes))
    return Template(tuple(parts), fixed, Counter(part for part in parts if isinstance(part, int)))


def _group(name: str, automaton: Automaton) -> int:
    is_number = name.isascii() and name.isdigit() and len(name) < 5 and (name == "0" or name[0] != "0")
    number = int(name) if is_number else automaton.groupindex.get(name, -1)
    if not 0 <= number <= automaton.groups:
        text = "the replacement names a group that the pattern does not have; write ${1} before a letter, $$ for a $"
        raise ToolFailed(text, code="str.no_group", retry="model")
    return number
