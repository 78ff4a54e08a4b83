"""The time to index a labelled result of 1 MiB, and to compare 10 KiB of arguments with the index."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Final

from neuroscript.flow.index import LabelledTexts
from neuroscript.flow.labels import Labels, Source

from .harness import Seconds, quiet_memory

RESULT_CHARS: Final = 1 << 20
ARGUMENT_CHARS: Final = 10 << 10

INDEX_GOAL_SECONDS: Final = 0.120
"""The maximum time to index a result of 1 MiB."""

SEARCH_GOAL_SECONDS: Final = 0.005
"""The maximum time to compare 10 KiB of arguments with 4 MiB of indexed results."""

WORST_GOAL_SECONDS: Final = 0.050
"""The same for results and arguments that are made to take long."""

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ENDINGS: Final = ("", "", "s", "ed", "ing", "ly", "ment", "ation", ",", ".")


def prose(chars: int, seed: int) -> str:
    """Return words of which some are much more frequent than others, as in a language."""
    order = random.Random(seed)
    stems = random.Random(0)
    known = ["".join(stems.choices("etaoinshrdlucmfw", k=stems.randint(1, 7))) for _ in range(8_000)]
    weights = [1 / (rank + 2) for rank in range(len(known))]
    found = order.choices(known, weights, k=chars // 3)
    return " ".join([word + order.choice(ENDINGS) for word in found])[:chars]


def records(chars: int, seed: int) -> str:
    """Return a list of records as JSON."""
    order = random.Random(seed)
    known = prose(20_000, 0).split()
    rows = [
        {
            "id": order.randrange(10**6),
            "name": f"{order.choice(known)} {order.choice(known)}",
            "created": f"2024-{order.randint(1, 12):02}-{order.randint(1, 28):02}T{order.randrange(24):02}:{number % 60:02}",
            "price": round(order.uniform(0, 1000), 2),
            "tags": order.sample(known, 2),
        }
        for number in range(chars // 80)
    ]
    return json.dumps(rows)[:chars]


def tokens(chars: int, seed: int) -> str:
    """Return random tokens of 20 characters."""
    order = random.Random(seed)
    return " ".join(["".join(order.choices(LETTERS, k=20)) for _ in range(chars // 20)])[:chars]


TEXTS: Final[Mapping[str, Callable[[int, int], str]]] = {"prose": prose, "JSON": records, "tokens": tokens}


def nested_base64(chars: int, seed: int) -> str:
    """Return base64 of base64 of base64, and so on."""
    text = prose(100, seed)
    while len(text) < chars:
        text = base64.b64encode(text.encode()).decode()
    return text[:chars]


WORST: Final[Mapping[str, tuple[Callable[[int], str], Callable[[int], object]]]] = {
    "one letter": (lambda chars: "a" * chars, lambda chars: "a" * 100 + "b" + "a" * (chars - 101)),
    "one word": (lambda chars: "a " * (chars // 2), lambda chars: "a a a b " * (chars // 8)),
    "one token": (lambda chars: tokens(chars, 1).replace(" ", ""), lambda chars: tokens(chars, 2).replace(" ", "")),
    "nested base64": (lambda chars: nested_base64(chars, 1), lambda chars: nested_base64(chars, 2)),
    "10,000 items": (
        lambda chars: prose(chars, 1),
        lambda chars: [word[:3] for word in prose(60_000, 2).split()][:10_000],
    ),
}
"""Results and arguments that are made to take long."""


def index_seconds(kind: str, rounds: int) -> Seconds:
    """Return the minimum time to index a result of 1 MiB of a kind of text."""
    result = TEXTS[kind](RESULT_CHARS, 1)
    return _least(rounds, lambda: _add(LabelledTexts(), result, 1))


def search_seconds(kind: str, rounds: int, results: int = 4) -> Seconds:
    """Return the minimum time to compare 10 KiB of arguments with some results, each of 1 MiB of the same kind of text."""
    texts = LabelledTexts()
    for number in range(results):
        _add(texts, TEXTS[kind](RESULT_CHARS, number), number)
    argument = TEXTS[kind](ARGUMENT_CHARS, 99)
    return _least(rounds, lambda: texts.search([argument]))


def worst_seconds(case: str, rounds: int) -> Seconds:
    """Return the minimum time to compare 10 KiB of arguments with 1 MiB that are made to take long."""
    write, ask = WORST[case]
    texts = LabelledTexts()
    _add(texts, write(RESULT_CHARS), 1)
    argument = ask(ARGUMENT_CHARS)
    return _least(rounds, lambda: texts.search([argument]))


def names(chars: int) -> dict[str, object]:
    """Return what a statement needs that indexes a text of this length, or searches one with 10 KiB of arguments."""
    text, labels = prose(chars, 1), {"untrusted": (Source("bench.read", 1),)}
    texts = LabelledTexts()
    texts.add(text, labels)
    argument = prose(ARGUMENT_CHARS, 99)
    return {"LabelledTexts": LabelledTexts, "text": text, "labels": labels, "texts": texts, "argument": argument}


def _add(texts: LabelledTexts, result: str, number: int) -> None:
    labels: Labels = {"untrusted": (Source("bench.read", number),)}
    texts.add(result, labels)


def _least(rounds: int, run: Callable[[], object]) -> Seconds:
    least = Seconds(float("inf"), float("inf"))
    with quiet_memory():
        for _ in range(rounds):
            wall, process = perf_counter(), process_time()
            run()
            now = Seconds(perf_counter() - wall, process_time() - process)
            least = Seconds(*map(min, least, now))
    return least
