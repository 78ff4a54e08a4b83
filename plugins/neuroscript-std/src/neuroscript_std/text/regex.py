"""Texts searched and changed by patterns.

Source: upstream ``tools_string_regex.go``.
"""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.text.patterns import LONGEST, compiled, fits, matches
from neuroscript_std.text.size import refuse_above_limit
from neuroscript_std.text.templates import template

SLOW: Final = ToolPolicy(effects=("pure",), blocking=True)
"""Nothing is waited for, yet a hard pattern may take seconds, and those belong on a thread."""

PATTERN: Final = ArgSpec(
    "pattern",
    ArgType.STRING,
    max_length=LONGEST,
    description="A regular expression in RE2's syntax, at most 1,000 characters; it may begin with (?i), (?s) or (?m).",
)

toolset = Toolset("str")


def _match_regex(rt: Runtime, pattern: str, input_string: str) -> bool:
    return fits(compiled(pattern), input_string.encode())


toolset.add(
    ToolSpec(
        "matchregex",
        "str",
        (PATTERN, ArgSpec("input_string", ArgType.STRING, description="The text to look in.")),
        return_type=ArgType.BOOL,
        description="Tell whether a pattern fits anywhere in a text.",
        when_to_use="To test for a pattern; str.contains tests for a text as it is, str.findallregex gives what fits.",
        return_help=r"True where it fits a part of the text; ^ and $ in the pattern ask for the whole text.",
        error_conditions="ToolFailed: str.bad_pattern, str.pattern_too_costly.",
        examples=(
            Example((r"\d+", "route 66"), True),
            Example((r"^\d+$", "route 66"), False),
            Example(("[", "abc"), error="str.bad_pattern"),
        ),
    ),
    _match_regex,
    SLOW,
)


def _find_all_regex(rt: Runtime, pattern: str, input_string: str) -> list[str]:
    data = input_string.encode()
    found = [data[slice(*match.span())] for match in matches(compiled(pattern), data)]
    refuse_above_limit(sum(map(len, found)))
    return [each.decode() for each in found]


toolset.add(
    ToolSpec(
        "findallregex",
        "str",
        (PATTERN, ArgSpec("input_string", ArgType.STRING, description="The text to search.")),
        return_type=ArgType.SLICE_STRING,
        description="Find every part of a text that a pattern fits.",
        when_to_use="For the parts themselves; str.matchregex tells whether there is one, str.split parts at a mark.",
        return_help="The parts from left to right, whole matches without their groups; at most 100,000.",
        error_conditions="ToolFailed: str.bad_pattern, str.pattern_too_costly, str.too_large.",
        examples=(
            Example((r"\w+", "one two,three"), ["one", "two", "three"]),
            Example((r"\d+", "none"), []),
            Example((r"(a)\1", "aa"), error="str.bad_pattern", note="there are no back-references"),
        ),
    ),
    _find_all_regex,
    SLOW,
)


def _replace_regex(rt: Runtime, pattern: str, input_string: str, replacement: str) -> str:
    data, automaton = input_string.encode(), compiled(pattern, groups=True)
    put = template(replacement, automaton)
    if not put.captures:
        automaton = compiled(pattern)
    pieces: list[bytes] = []
    place = taken = 0
    for match in matches(automaton, data):
        start, end = match.span()
        pieces += (data[place:start], put.filled(match, data, taken + start - place))
        taken += len(pieces[-2]) + len(pieces[-1])
        place = end
    refuse_above_limit(taken + len(data) - place)
    return b"".join([*pieces, data[place:]]).decode()


toolset.add(
    ToolSpec(
        "replaceregex",
        "str",
        (
            PATTERN,
            ArgSpec("input_string", ArgType.STRING, description="The text to change."),
            ArgSpec(
                "replacement",
                ArgType.STRING,
                description="What replaces each match: ${1} or ${name} is a group, ${0} the match, $$ a dollar sign.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Replace every part of a text that a pattern fits.",
        when_to_use="To replace by a pattern, or to keep groups of it; str.replace replaces a text as it is.",
        return_help="The changed text; a group that took no part in a match is empty.",
        error_conditions="ToolFailed: str.bad_pattern, str.no_group, str.pattern_too_costly, str.too_large.",
        examples=(
            Example((r"\s+", "one  two\tthree", "_"), "one_two_three"),
            Example((r"(?P<user>\w+)@(\w+)", "ann@home", "$2: ${user}"), "home: ann"),
            Example((r"(\d+)", "5 km", "$1x"), error="str.no_group", note="write ${1}x"),
        ),
    ),
    _replace_regex,
    SLOW,
)
