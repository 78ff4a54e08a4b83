"""Search for tools by words: an inverted index over names, descriptions and arguments, ranked by BM25F.

BM25F is the BM25 of Robertson and Lucene over fields with weights. The weights were chosen on one half of the questions
of a benchmark, and measured on the other; see docs/how-to/offer-many-tools.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from math import log
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from unicodedata import combining, normalize

from neuroscript.coercion.parameters import COUNT, STRING, Form, as_tuple, collection, require
from neuroscript.names import HUMP, canonical, from_wire
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.runtime.wire_names import spec_of
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.spec.tool_spec import ArgSpec

T = TypeVar("T", ToolSpec, ToolInfo, ToolImplementation)

DEFAULT_LIMIT: Final = 5
"""Default maximum number of tools that a search returns."""

WEIGHTS: Final = {
    "name": 3.0,
    "group": 1.0,
    "description": 2.0,
    "when to use": 0.5,
    "arguments": 1.0,
    "argument descriptions": 0.5,
    "choices": 2.0,
}
"""The weight of a word in each field."""

LENGTH_EFFECT: Final = 0.4
"""How much the length of a field lowers the weight of its words, from 0 to 1; ``b`` in the literature."""

SATURATION: Final = 1.0
"""The weight at which a word has half of its maximum effect; ``k1`` in the literature."""

MAX_FIELD_CHARS: Final = 10_000
"""Maximum number of characters of each field that the index reads; the rest is not found."""

MAX_QUERY_CHARS: Final = 10_000
"""Maximum number of characters of a query that are used."""

MAX_ARGUMENTS: Final = 1_000
"""Maximum number of arguments of a tool, with nested keys, that the index reads."""

WORD: Final = re.compile(r"[^\W_]+")
UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Parts of scripts that do not separate words; they are indexed by pairs of characters."""

UNSPECIFIC: Final = (
    "a an and are as at be by can do for from has have how i if in into is it its me my of on or please that the their "
    "them then there these they this to was what when where which who will with would you your"
)
STOP_WORDS: Final = frozenset(UNSPECIFIC.split())
"""Words that are only indexed in names, and that are ignored in a query that has other words."""

SEARCHED: Final = (ToolSpec, ToolInfo, ToolImplementation)
TOOL: Final = Form("a ToolSpec, ToolInfo or ToolImplementation", lambda value: isinstance(value, SEARCHED))
TOOLS: Final = collection(TOOL, "tools")


class ToolIndex(Generic[T]):
    """An index of tools, to find those that fit a query. It does not change, and can be used in any thread.

    Args:
        tools: Each a `ToolSpec`, a `ToolInfo` or a `ToolImplementation`, such as those of ``session.infos.values()``,
            which contain only what the policy of the session permits.

    Raises:
        SpecError: *tools* contains something else.

    >>> tools = [ToolSpec("add", "math", description="Add two numbers."), ToolSpec("send", "mail")]
    >>> [tool.full_name for tool in ToolIndex(tools).search("addition of a number, to send by mail")]
    ['mail.send', 'math.add']
    """

    def __init__(self, tools: Iterable[T]) -> None:
        self._tools: tuple[T, ...] = as_tuple(tools)
        require("tool index", tools=(self._tools, TOOLS))
        specs = [spec_of(each) for each in self._tools]
        self._by_name = {spec.full_name: at for at, spec in enumerate(specs)}
        self._names = [spec.full_name for spec in specs]
        self._scores = _scores_by_word(specs)

    def __len__(self) -> int:
        return len(self._tools)

    def search(self, query: str, limit: int = DEFAULT_LIMIT) -> tuple[T, ...]:
        """Return the tools that fit a query best, the best one first.

        Args:
            query: Words of what the tool does, or the name of a tool, which is then the first result.
            limit: Maximum number of results.

        Returns:
            Tools that contain at least one word of the query; equal ones are in the order of their names.

        Raises:
            SpecError: *query* is not a string, or *limit* is not a positive integer.
        """
        require("search", query=(query, STRING), limit=(limit, COUNT))
        found: dict[int, float] = {}
        for word in dict.fromkeys(_query_words(query[:MAX_QUERY_CHARS])):
            for tool, score in self._scores.get(word, ()):
                found[tool] = found.get(tool, 0.0) + score
        exact = self._named(query)
        if exact is not None:
            found[exact] = float("inf")
        best = nsmallest(limit, found, key=lambda tool: (-found[tool], self._names[tool]))
        return tuple(self._tools[tool] for tool in best)

    def _named(self, query: str) -> int | None:
        """Return the tool whose name the query is, in any spelling."""
        name = query.strip()
        return self._by_name.get(canonical(name), self._by_name.get(from_wire(name)))


def _scores_by_word(specs: list[ToolSpec]) -> dict[str, list[tuple[int, float]]]:
    """Return the tools that contain each word, with what the word adds to their scores."""
    counts = [[Counter(words) for words in _fields(spec)] for spec in specs]
    lengths = [[sum(field.values()) for field in each] for each in counts]
    average = [max(1.0, sum(column) / len(column)) for column in zip(*lengths, strict=True)]
    weights: dict[str, dict[int, float]] = {}
    for tool, (fields, sizes) in enumerate(zip(counts, lengths, strict=True)):
        for field, size, mean, weight in zip(fields, sizes, average, WEIGHTS.values(), strict=True):
            each = weight / (1 - LENGTH_EFFECT + LENGTH_EFFECT * size / mean)
            for word, count in field.items():
                of_word = weights.setdefault(word, {})
                of_word[tool] = of_word.get(tool, 0.0) + each * count
    return {word: _scores(of_word, len(specs)) for word, of_word in weights.items()}


def _scores(weights: dict[int, float], total: int) -> list[tuple[int, float]]:
    """Return the score of a word for each tool that contains it: rare words count more, and repetition less and less.

    Args:
        weights: The weight of the word in each tool.
        total: The number of all tools.
    """
    rarity = log(1 + (total - len(weights) + 0.5) / (len(weights) + 0.5))
    return [(tool, rarity * weight / (weight + SATURATION)) for tool, weight in weights.items()]


def _fields(spec: ToolSpec) -> Iterator[list[str]]:
    """Yield the words of each field, in the order of `WEIGHTS`."""
    arguments = list(_arguments(spec))
    yield _words(spec.name)
    yield _words(spec.group)
    yield _text_words((spec.description,))
    yield _text_words((spec.when_to_use,))
    yield _words(_joined(arg.name for arg in arguments))
    yield _text_words(arg.description for arg in arguments)
    yield _text_words(each for arg in arguments for each in arg.choices if isinstance(each, str))


def _arguments(spec: ToolSpec) -> Iterator[ArgSpec]:
    """Yield the arguments and their nested specs, breadth first, so that the limit drops the deepest ones."""
    waiting: list[ArgSpec] = list(spec.args[:MAX_ARGUMENTS])
    for arg in waiting:  # grows meanwhile
        yield arg
        waiting += arg.nested[: max(0, MAX_ARGUMENTS - len(waiting))]


def _joined(texts: Iterable[str]) -> str:
    """Return strings joined to one, as far as the index reads them."""
    parts, chars = [], 0
    for text in texts:
        parts.append(text[:MAX_FIELD_CHARS])
        chars += len(parts[-1]) + 1
        if chars > MAX_FIELD_CHARS:
            break
    return " ".join(parts)[:MAX_FIELD_CHARS]


def _text_words(texts: Iterable[str]) -> list[str]:
    return [word for word in _words(_joined(texts)) if word not in STOP_WORDS]


def _query_words(query: str) -> list[str]:
    words = _words(query)
    return [word for word in words if word not in STOP_WORDS] or words


def _words(text: str) -> list[str]:
    """Return the words of a string, split at punctuation and within camelCase, without accents and plural endings.

    >>> _words("listPullRequests of queries, by café")
    ['list', 'pull', 'request', 'listpullrequest', 'of', 'query', 'by', 'cafe']
    """
    plain = text if text.isascii() else "".join(char for char in normalize("NFKD", text) if not combining(char))
    words = WORD.findall(plain.casefold()) if HUMP.search(plain) is None else list(_humps(plain))
    words = [_singular(word) if word[-1] == "s" else word for word in words]
    return words if text.isascii() else [part for word in words for part in _pairs(word)]


def _humps(text: str) -> Iterator[str]:
    """Yield the words of a string in which some are camelCase: their parts, and also the whole."""
    for word in WORD.findall(text):
        parts = HUMP.sub(" ", word).casefold().split()
        yield from parts
        if len(parts) > 1:
            yield word.casefold()


def _pairs(word: str) -> Iterator[str]:
    """Yield a word, or for scripts that do not separate words each pair of characters."""
    start = 0
    for part in UNSPACED.finditer(word):
        if part.start() > start:
            yield word[start : part.start()]
        run, start = part[0], part.end()
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    if start < len(word):
        yield word[start:]


def _singular(word: str) -> str:
    """Return a word that ends in "s" without its plural ending; other such words are changed alike everywhere."""
    if len(word) <= 3 or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
