"""Search over the descriptions of the first-party tools: a plain request must find the right tool.

``tool_requests.json`` has two or three requests for each tool, in the words of the documentation of Python, JavaScript
and the shell. They were written before the descriptions: improve a description that misses, not the request. The search is BM25 over the
descriptions alone, so a failure means that a description does not use the words that people use for the job.

A request that is listed for two tools can be answered by either.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import log
from pathlib import Path
from typing import Final

import pytest

from neuroscript import Engine, ToolIndex

FIRST_PARTY: Final = ("neuroscript-fs", "neuroscript-git", "neuroscript-http", "neuroscript-shell", "neuroscript-std")
REQUESTS: Final[Mapping[str, list[str]]] = json.loads(Path(__file__).with_name("tool_requests.json").read_text())

K1: Final = 1.5
"""How soon repeated words stop to raise a score."""

B: Final = 0.75
"""How much long descriptions are discounted."""

MIN_FIRST: Final = 0.85
"""Least share of requests for which the right tool is ranked first."""

MIN_FIRST_THREE: Final = 0.97
"""Least share of requests for which the right tool is among the first three."""


@pytest.fixture(scope="module")
def descriptions() -> Mapping[str, str]:
    """The description of each first-party tool, by name."""
    with Engine(plugins=FIRST_PARTY) as engine:
        return {name: info.spec.description for name, info in engine.tools.items()}


def words(text: str) -> list[str]:
    """Return the lowercase words of a string, without the plural s."""
    return [re.sub(r"(?<=\w\w[^s])s$", "", word) for word in re.findall(r"[a-z0-9]+", text.lower())]


def ranked(request: str, documents: Mapping[str, Counter[str]]) -> list[str]:
    """Return the names of the documents by their BM25 score for a request, the best first."""
    average = sum(counts.total() for counts in documents.values()) / len(documents)

    def score(counts: Counter[str]) -> Iterator[float]:
        for word in set(words(request)) & counts.keys():
            found = sum(word in each for each in documents.values())
            rarity = log(1 + (len(documents) - found + 0.5) / (found + 0.5))
            yield rarity * counts[word] * (K1 + 1) / (counts[word] + K1 * (1 - B + B * counts.total() / average))

    return sorted(documents, key=lambda name: (-sum(score(documents[name])), name))


def test_requests_exist_for_every_tool(descriptions: Mapping[str, str]) -> None:
    """The table lists every first-party tool with two or three requests, and no other tool."""
    assert descriptions.keys() == REQUESTS.keys()
    assert {2, 3} == {len(requests) for requests in REQUESTS.values()}


def test_plain_requests_find_their_tool(descriptions: Mapping[str, str]) -> None:
    """BM25 over the descriptions finds the right tool first, or among the first three, for nearly all requests."""
    documents = {name: Counter(words(text)) for name, text in descriptions.items()}
    places, misses = [], []
    for tool, request in ((tool, request) for tool, requests in REQUESTS.items() for request in requests):
        found = ranked(request, documents)
        place = min(found.index(name) for name, requests in REQUESTS.items() if request in requests)
        places.append(place)
        if place:
            misses.append(f"{tool}: {request!r} is number {place + 1}, after {', '.join(found[: min(place, 3)])}")
    first = sum(place == 0 for place in places) / len(places)
    first_three = sum(place < 3 for place in places) / len(places)
    print(*misses, f"first: {first:.1%}, among the first three: {first_three:.1%}", sep="\n")

    assert first >= MIN_FIRST
    assert first_three >= MIN_FIRST_THREE


def test_index_finds_the_tool_of_a_plain_request() -> None:
    """The index of the engine, which also reads names and arguments, finds it as often."""
    with Engine(plugins=FIRST_PARTY) as engine:
        index = ToolIndex(engine.tools.values())
    places = []
    for request in (request for requests in REQUESTS.values() for request in requests):
        right = {name for name, requests in REQUESTS.items() if request in requests}
        found = [tool.name for tool in index.search(request, 3)]
        places.append(next((place for place, name in enumerate(found) if name in right), 3))

    assert places.count(0) / len(places) >= MIN_FIRST
    assert sum(place < 3 for place in places) / len(places) >= MIN_FIRST_THREE
