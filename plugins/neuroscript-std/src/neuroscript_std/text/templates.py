"""Replacement templates, in which ``$1`` and ``${name}`` refer to groups of the match.

They work like Go's ``regexp.Expand``, except that an unknown group is an error instead of an empty string. For example,
``$1x`` refers to a group named ``1x``.
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
    """A parsed replacement.

    Attributes:
        parts: Literal bytes, and group numbers.
        fixed: Number of literal bytes.
        groups: Number of occurrences of each group.
    """

    parts: tuple[bytes | int, ...]
    fixed: int
    groups: Mapping[int, int]

    @property
    def captures(self) -> bool:
        """Whether it refers to any group other than the whole match (group 0)."""
        return any(self.groups)

    def filled(self, match: Match, data: bytes, taken: int) -> bytes:
        """Return the template filled with the groups of a match; a group that did not participate is empty.

        Args:
            taken: Number of bytes already in the result.

        Raises:
            ToolFailed: str.too_large, before the result is built.
        """
        found = {group: data[slice(*match.span(group))] for group in self.groups}
        refuse_above_limit(taken + self.fixed + sum(len(found[group]) * often for group, often in self.groups.items()))
        return b"".join([part if isinstance(part, bytes) else found[part] for part in self.parts])


def parse_template(text: str, automaton: Automaton) -> Template:
    """Parse a replacement string for a pattern; any other ``$`` is literal.

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
        text = "the replacement refers to an unknown group; write ${1} before a letter and $$ for a literal $"
        raise ToolFailed(text, code="str.no_group", retry="model")
    return number
