"""A parser for the tool calls that models without tool calling write into their replies.

A mark announces a call: a code block, ``<tool_call>``, ``<function=NAME>``, ``[TOOL_CALLS]`` or ``<|python_tag|>``, as
in the templates of Hermes, Llama, Mistral and Qwen. Text after a mark is a call even if it is not valid JSON, so that
the model receives an error. Without a mark, a JSON value that fills whole lines is a call if it has the shape of one.

Parsing time is linear in the length of the text: all marks are found in one pass, and unsuccessful scanning is limited.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.io.text import NotJSON, parse_json
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.runtime.wire_names import WireNames

NAMES: Final = ("name", "tool", "function")


ARGUMENTS: Final = ("arguments", "parameters", "args")


EXTRA_KEYS: Final = frozenset({"id", "type", "call_id"})
"""Members allowed next to the name and the arguments of an unmarked call."""


NAMED: Final = re.compile(r'"(?:name|tool|function)"\s*+:\s*+"([^"\\\n]{1,128})"')


ARGUMENTS_KEY: Final = re.compile(r'"(?:arguments|parameters|args)"\s*+:\s*+')


@attrs.frozen
class ParsedCall:
    """A call as a model wrote it.

    Attributes:
        name: The name as the model spells it; ``""`` if it is missing.
        arguments: A map, a list, or a string that is undecoded or invalid JSON.
    """

    name: str
    arguments: Any


def parse_call(value: Any) -> ParsedCall | None:
    """Return the call that a decoded value represents, or None."""
    if not isinstance(value, Mapping):
        return None
    value = inner(value)
    named = next((key for key in NAMES if isinstance(value.get(key), str) and value[key]), "")
    given = next((key for key in ARGUMENTS if key in value), "")
    arguments = value[given] if given else {}
    if not named or not isinstance(arguments, (dict, list, str, type(None))):
        return None
    return ParsedCall(value[named], {} if arguments is None else arguments)


def inner(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the map with the members of a call; in OpenAI's format it is under ``function``."""
    found = value.get("function")
    return found if isinstance(found, Mapping) else value


def is_unmarked_call(value: Any, known: Collection[str]) -> bool:
    """Return whether an unmarked value is a call: it has the members of one and no others.

    Args:
        known: The names of the tools; a call without arguments must use one of them.
    """
    found = parse_call(value)
    if found is None:
        return False
    members = inner(value)
    others = members.keys() - EXTRA_KEYS
    if any(key in members for key in ARGUMENTS):
        return len(others) == 2
    return len(others) == 1 and found.name in known


def marked_calls(text: str) -> list[ParsedCall]:
    """Return the calls in *text* after a mark.

    If anything in it is not a call, the list ends with one damaged call that has the whole text as its arguments, so
    that the model receives a single error.
    """
    try:
        value = parse_json(text)
    except NotJSON:
        return [recover_call(text)]
    values = value if isinstance(value, list) and value else [value]
    calls = [found for found in map(_announced, values) if found is not None]
    return calls if len(calls) == len(values) else [*calls, recover_call(text)]


def _announced(value: Any) -> ParsedCall | None:
    found = parse_call(value)
    is_call = found is not None and inner(value).keys() <= {*EXTRA_KEYS, *NAMES, *ARGUMENTS}
    return found if is_call else None


def parameters(text: str) -> dict[str, str]:
    """Return arguments that are written as ``<parameter=…>`` elements, each a string; empty if there is anything else.

    >>> parameters("<parameter=num1>\\n2\\n</parameter>")
    {'num1': '2'}
    """
    before, *parts = text.split("<parameter=")
    found: dict[str, str] = {}
    for part in parts:
        name, _, rest = part.partition(">")
        value, closing, after = rest.partition("</parameter>")
        if before.strip() or after.strip() or not closing or name in found:
            return {}
        found[name] = value.removeprefix("\n").removesuffix("\n")
    return found


def recover_call(text: str) -> ParsedCall:
    """Return what can be recovered of a call from a damaged text.

    >>> recover_call('{"name": "math__add", "arguments": {"num1": 2,}}')
    Asked(name='math__add', arguments='{"num1": 2,}}')
    """
    named = NAMED.search(text)
    match = ARGUMENTS_KEY.search(text)
    return ParsedCall(named[1] if named else "", (text[match.end() :] if match else text).strip())


MARK: Final = re.compile(
    r"(?P<tool_call><tool_call>)|(?P<tool_call_end></tool_call>)"
    r"|<function=(?P<function>[^<>\s]{1,128})>|(?P<function_end></function>)"
    r"|(?P<mistral>\[TOOL_CALLS\])"
    r"(?:[ \t]*+(?P<mistral_name>[\w.-]{1,128})(?:\[CALL_ID\][\w-]{1,128})?(?:\[ARGS\])?(?=\s*+\{))?"
    r"|(?P<python><\|python_tag\|>)"
    r"|^[ \t]*+```[ \t]*+(?P<fence>[\w+-]{0,32})[ \t]*+$"
    r'|^[ \t]*+(?P<bare>(?:\[\s*+)?\{\s*+"(?:name|tool|function|arguments|parameters|args|id|type|call_id)")',
    re.MULTILINE,
)
"""The places where a call may begin or end."""


ENDS: Final = {"tool_call": "tool_call_end", "function": "function_end"}


FENCES: Final = frozenset({"tool_call", "tool_calls"})
"""Labels of code blocks that always contain calls."""


CODE: Final = frozenset({"", "json"})
"""Labels of code blocks that contain a call only if the content looks like one."""


TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


BLANK: Final = re.compile(r"\s*+")


LINE_END: Final = re.compile(r"[ \t;]*+(?:\n|\Z)")


MAX_DEPTH: Final = 200
"""Maximum nesting of the JSON that is scanned; the engine's own limits are lower."""


MAX_SCANS: Final = 2
"""The multiple of the text's length that may be scanned without success; after that, only marks are read."""


@attrs.frozen
class CallMatch:
    """Calls and their range in the text, which is removed from the reply."""

    start: int
    end: int
    calls: list[ParsedCall]


def read(text: str, names: WireNames | None = None) -> tuple[str, tuple[ToolCall, ...]]:
    """Return a reply's text without its calls, and the calls, with canonical names and ids ``call_1`` and so on.

    Args:
        names: The tool names that the model uses.

    >>> read('Let me see. <tool_call>{"name": "math__add", "arguments": {"num1": 2}}</tool_call>')
    ('Let me see.', (ToolCall(name='math.add', arguments={'num1': 2}, id='call_1'),))
    """
    names = names or WireNames()
    found = list(Reader(text, names).found())
    calls = [each for place in found for each in place.calls]
    told = (
        ToolCall(names.tool(each.name) if each.name else "", each.arguments, id=f"call_{number}")
        for number, each in enumerate(calls, 1)
    )
    return (_remove_calls(text, found) if found else text), tuple(told)


def _remove_calls(text: str, found: Iterable[CallMatch]) -> str:
    parts: list[str] = []
    at = 0
    for each in found:
        parts.append(text[at : each.start].strip())
        at = each.end
    parts.append(text[at:].strip())
    return "\n".join(part for part in parts if part)


@attrs.define
class Reader:
    """Reads the marks of one text in order, each once."""

    text: str
    names: WireNames
    _marks: list[re.Match[str]] = attrs.field(init=False)
    _next: int = attrs.field(init=False, default=0)
    _scan_budget: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._marks = list(MARK.finditer(self.text))
        self._scan_budget = MAX_SCANS * len(self.text)

    def found(self) -> Iterator[CallMatch]:
        """Yield the calls in order."""
        while self._next < len(self._marks):
            mark = self._marks[self._next]
            self._next += 1
            place = self._at(mark)
            if place is not None:
                self._pass(place.end)
                yield place

    def _at(self, mark: re.Match[str]) -> CallMatch | None:
        match mark.lastgroup:
            case "fence":
                return self._fenced(mark)
            case "bare":
                return self._find_bare_call(mark)
            case "tool_call":
                return self._wrapped(mark) or self._marked(mark, "")
            case "python" | "mistral":
                return self._marked(mark, "")
            case "function":
                return self._marked(mark, mark["function"])
            case "mistral_name":
                return self._marked(mark, mark["mistral_name"])
        return None

    def _wrapped(self, mark: re.Match[str]) -> CallMatch | None:
        """Return the function call inside a ``<tool_call>`` element, as Qwen's coding models write it."""
        inner = self._marks[self._next] if self._next < len(self._marks) else None
        if inner is None or inner.lastgroup != "function" or inner.start() != self._skip_blank(mark.end()):
            return None
        self._next += 1
        found = self._marked(inner, inner["function"])
        return CallMatch(mark.start(), self._closed(mark, found.end), found.calls)

    def _marked(self, mark: re.Match[str], name: str) -> CallMatch:
        """Return the calls after a mark: one JSON value (several for Llama), or all text up to the next mark."""
        start = self._skip_blank(mark.end())
        end = self._json_end(start)
        is_json = end >= 0 and self._is_json(start, end)
        if not is_json:
            end = self._damaged_end(mark, start)
        calls = self._calls(self.text[start:end], name)
        while is_json and mark.lastgroup == "python" and self.text[end : end + 1] == ";":
            following = self._skip_blank(end + 1)
            beyond = self._json_end(following)
            if beyond < 0:
                break
            calls += marked_calls(self.text[following:beyond])
            end = beyond
        return CallMatch(mark.start(), self._closed(mark, end), calls)

    def _calls(self, text: str, name: str) -> list[ParsedCall]:
        if not name:
            return marked_calls(text)
        try:
            value = parse_json(text)
        except NotJSON:
            return [ParsedCall(name, parameters(text) or text.strip())]
        return [ParsedCall(name, value if isinstance(value, (dict, list)) else text)]

    def _damaged_end(self, mark: re.Match[str], start: int) -> int:
        """Return the end of a call that is not JSON: its end mark, or the next mark of the same kind."""
        wanted = {ENDS.get(mark.lastgroup or ""), mark.lastgroup}
        for index in range(self._next, len(self._marks)):
            if self._marks[index].lastgroup in wanted and self._marks[index].start() >= start:
                return self._marks[index].start()
        return len(self.text)

    def _closed(self, mark: re.Match[str], end: int) -> int:
        """Return the end of a call, including its end mark if there is one."""
        closing = {"tool_call": "</tool_call>", "function": "</function>"}.get(mark.lastgroup or "", "")
        after = self._skip_blank(end)
        return after + len(closing) if closing and self.text.startswith(closing, after) else end

    def _fenced(self, mark: re.Match[str]) -> CallMatch | None:
        """Return the calls in a code block, which ends at the next fence; the block is skipped in any case."""
        index = self._next
        while index < len(self._marks) and self._marks[index].lastgroup != "fence":
            index += 1
        closing = self._marks[index] if index < len(self._marks) else None
        end = closing.start() if closing else len(self.text)
        inside = self.text[mark.end() : end].strip()
        self._next = index + 1
        calls = self._in_code(inside, mark["fence"].lower())
        return CallMatch(mark.start(), closing.end() if closing else end, calls) if calls else None

    def _in_code(self, inside: str, word: str) -> list[ParsedCall]:
        if word in FENCES:
            return [each for text in self._values(inside) for each in marked_calls(text)]
        if word not in CODE or inside[:1] not in ("{", "["):
            return []
        texts = self._values(inside)
        calls = [self._plain(text) for text in texts]
        if all(calls):
            return [each for some in calls for each in some]
        found = recover_call(inside)
        return [found] if len(texts) == 1 and self._is_damaged(inside) and found.name in self.names.tools else []

    def _values(self, inside: str) -> list[str]:
        """Return the JSON values that make up *inside*, or *inside* itself."""
        found: list[str] = []
        at = 0
        while at < len(inside):
            end = _json_end(inside, at)[0]
            if end < 0:
                return [inside]
            found.append(inside[at:end])
            at = _blank(inside, end)
        return found or [inside]

    def _find_bare_call(self, mark: re.Match[str]) -> CallMatch | None:
        start = mark.start("bare")
        end = self._json_end(start)
        if end < 0:
            return None
        if not self._is_json(start, end):
            return None
        self._pass(end)
        calls = self._plain(self.text[start:end]) if LINE_END.match(self.text, end) else []
        return CallMatch(start, end, calls) if calls else None

    def _plain(self, text: str) -> list[ParsedCall]:
        """Return the calls in a JSON value that consists only of calls, or an empty list."""
        try:
            value = parse_json(text)
        except NotJSON:
            return []
        values = value if isinstance(value, list) else [value]
        calls = [parse_call(each) for each in values if is_unmarked_call(each, self.names.tools)]
        return [each for each in calls if each is not None] if len(calls) == len(values) else []

    def _is_damaged(self, text: str) -> bool:
        try:
            parse_json(text)
        except NotJSON:
            return True
        return False

    def _is_json(self, start: int, end: int) -> bool:
        """Return whether a range is JSON, apart from duplicate keys and invalid numbers, which are checked later."""
        try:
            parse_json(self.text[start:end])
        except NotJSON as error:
            if error.code == "arg.not_json":
                self._scan_budget -= end - start
                return False
        return True

    def _json_end(self, start: int) -> int:
        if self._scan_budget <= 0 or self.text[start : start + 1] not in ("{", "["):
            return -1
        end, scanned = _json_end(self.text, start)
        if end < 0:
            self._scan_budget -= scanned - start
        return end

    def _skip_blank(self, at: int) -> int:
        return _blank(self.text, at)

    def _pass(self, end: int) -> None:
        """Skip the marks before *end*."""
        while self._next < len(self._marks) and self._marks[self._next].start() < end:
            self._next += 1


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _json_end(text: str, start: int) -> tuple[int, int]:
    """Return where the brackets that open at *start* close, or -1, and how far the scan went."""
    depth = 0
    at = start
    for token in TOKEN.finditer(text, start):
        at = token.end()
        sign = token[0]
        if sign in ("{", "["):
            depth += 1
        elif sign in ("}", "]"):
            depth -= 1
        if depth <= 0:
            return (at if sign in ("}", "]") else -1), at
        if depth > MAX_DEPTH:
            break
    return -1, at
