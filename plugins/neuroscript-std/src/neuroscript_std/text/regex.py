"""``str`` tools that search and replace with regular expressions."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.text.patterns import MAX_PATTERN_CHARS, compile_pattern, find_matches, has_match
from neuroscript_std.text.size import refuse_above_limit
from neuroscript_std.text.templates import parse_template

SLOW: Final = ToolPolicy(effects=("pure",), blocking=True)
"""Matching does no I/O, but a costly pattern can take seconds, so it runs in a thread."""

PATTERN: Final = ArgSpec(
    "pattern",
    ArgType.STRING,
    max_length=MAX_PATTERN_CHARS,
    description="Regular expression in RE2 syntax, at most 1,000 characters; it can start with (?i), (?s) or (?m).",
)

toolset = Toolset("str")


def _match_regex(rt: Runtime, pattern: str, input_string: str) -> bool:
    return has_match(compile_pattern(pattern), input_string.encode())


toolset.add(
    ToolSpec(
        "matchregex",
        "str",
        (PATTERN, ArgSpec("input_string", ArgType.STRING, description="The string to search.")),
        return_type=ArgType.BOOL,
        description="Test for a match of a regular expression (regex) anywhere in a string.",
        when_to_use=(
            "Use it to test for a pattern; for a literal substring, use str.contains, for the matches, "
            "str.findallregex."
        ),
        return_help=r"True if any part of the string matches; use ^ and $ in the pattern to match the whole string.",
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
    found = [data[slice(*match.span())] for match in find_matches(compile_pattern(pattern), data)]
    refuse_above_limit(sum(map(len, found)))
    return [each.decode() for each in found]


toolset.add(
    ToolSpec(
        "findallregex",
        "str",
        (PATTERN, ArgSpec("input_string", ArgType.STRING, description="The string to search.")),
        return_type=ArgType.SLICE_STRING,
        description="Find all matches of a regular expression (regex) in a string.",
        when_to_use="Use it to extract matches; to test only, use str.matchregex, to split at a delimiter, str.split.",
        return_help="The whole matches from left to right, without their groups; at most 100,000.",
        error_conditions="ToolFailed: str.bad_pattern, str.pattern_too_costly, str.too_large.",
        examples=(
            Example((r"\w+", "one two,three"), ["one", "two", "three"]),
            Example((r"\d+", "none"), []),
            Example((r"(a)\1", "aa"), error="str.bad_pattern", note="backreferences are not supported"),
        ),
    ),
    _find_all_regex,
    SLOW,
)


def _replace_regex(rt: Runtime, pattern: str, input_string: str, replacement: str) -> str:
    data, automaton = input_string.encode(), compile_pattern(pattern, groups=True)
    put = parse_template(replacement, automaton)
    if not put.captures:
        automaton = compile_pattern(pattern)
    pieces: list[bytes] = []
    place = taken = 0
    for match in find_matches(automaton, data):
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
            ArgSpec("input_string", ArgType.STRING, description="The string to transform."),
            ArgSpec(
                "replacement",
                ArgType.STRING,
                description="The replacement; ${1} or ${name} inserts a group, ${0} the whole match, $$ a dollar sign.",
            ),
        ),
        return_type=ArgType.STRING,
        description=(
            "Replace all matches of a regular expression (regex) in a string; the substitution can refer to groups."
        ),
        when_to_use="Use it to replace by pattern or to reuse groups; for a literal substring, use str.replace.",
        return_help="The string with the replacements; a group that did not participate in the match is empty.",
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
