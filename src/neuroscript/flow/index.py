"""temporary"""

from __future__ import annotations
from collections.abc import Iterable
from neuroscript.flow.labels import NO_LABELS, Labels, union


def _leaves(v):
    if isinstance(v, str):
        yield v
    elif isinstance(v, dict):
        for k, x in v.items():
            yield k
            yield from _leaves(x)
    elif isinstance(v, (list, tuple)):
        for x in v:
            yield from _leaves(x)
    elif isinstance(v, (int, float)) and not isinstance(v, bool):
        yield str(v)


class LabelledTexts:
    def __init__(self, max_bytes: int = 4 << 20) -> None:
        self.docs: list[tuple[str, Labels]] = []
        self.user = ""

    @property
    def is_empty(self) -> bool:
        return not self.docs

    def add(self, value: object, labels: Labels) -> None:
        self.docs.append((" ".join(_leaves(value)).lower(), labels))

    def said(self, text: object) -> None:
        self.user += " " + " ".join(_leaves(text)).lower()

    def search(self, values: Iterable[object]) -> Labels:
        found = NO_LABELS
        for v in values:
            for leaf in _leaves(v):
                leaf = leaf.lower()
                for part in [leaf, *[p for p in leaf.split() if len(p) >= 10]]:
                    if len(part) >= 4 and part not in self.user:
                        for text, labels in self.docs:
                            if part in text:
                                found = union(found, labels)
        return found
