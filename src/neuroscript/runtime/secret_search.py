"""Search of a string for many literal strings at once, in time that grows linearly with its length."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

import attrs

from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS, Form

HEAD_CHARS: Final = 32
"""Leading characters of each form that the compiled pattern compares; the rest is compared at each match."""

LONG_RUN_CHARS: Final = 2 * HEAD_CHARS
"""Length from which a repetitive stretch of text is skipped instead of being searched at every position."""

MAX_COMPARISONS_PER_CHAR: Final = 8
"""Comparisons of a form with the text per character, after which the rest of the text counts as one span.

Only strings and secrets crafted for this reach it: an attacker who supplies both could otherwise stall the process.
"""

COMPARED_CHARS: Final = 4096
"""Characters of a form that count as one comparison."""

BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]")

Span = tuple[int, int]
"""The start and the end of a form in a string."""


@attrs.frozen(eq=False, repr=False)
class Head:
    """The forms that may start where one head was found.

    Attributes:
        forms: Those forms, the longest first.
        period: The number of characters after which the head repeats itself, or 0 if it does not.
    """

    forms: tuple[Form, ...]
    period: int


class FormFinder:
    """Finds every occurrence of every form, overlapping ones too."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self._forms: dict[str, Form] = {}
        # Of forms with equal text, the one that covers the most comes last and replaces the others.
        for form in sorted(set(forms)):
            self._forms[form.text] = form
        self._by_head: dict[str, list[Form]] = {}
        for form in sorted(self._forms.values(), key=_length, reverse=True):
            self._by_head.setdefault(form.text[:HEAD_CHARS], []).append(form)
        self._heads: dict[str, Head] = {}
        self._pattern = re.compile(_trie(sorted(self._by_head)))

    def spans(self, text: str) -> Iterator[Span]:
        """Yield spans that together cover every occurrence of every form in *text*, in no particular order."""
        budget = MAX_COMPARISONS_PER_CHAR * (len(text) + COMPARED_CHARS)
        at = 0
        while found := self._pattern.search(text, at):
            start = found.start()
            head = self._head(found[0])
            run_end = _run_end(text, start, head.period) if head.period else start
            if run_end - start > LONG_RUN_CHARS:
                budget -= yield from self._spans_in_run(text, start, run_end, head.period)
                at = run_end - HEAD_CHARS + 1
            else:
                budget -= yield from _longest_span(text, start, head.forms)
                at = start + 1
            if budget < 0:
                yield start, len(text)
                return

    def _head(self, text: str) -> Head:
        head = self._heads.get(text)
        if head is None:
            shorter = (self._forms.get(text[:length]) for length in range(len(text) - 1, MIN_SECRET_CHARS - 1, -1))
            forms = (*self._by_head[text], *(form for form in shorter if form is not None))
            head = self._heads[text] = Head(forms, _period(text))
        return head

    def _spans_in_run(self, text: str, start: int, end: int, period: int) -> Generator[Span, None, int]:
        """Yield the spans of the forms that start in a stretch of text with a period of *period* characters.

        A form with the same period throughout can start anywhere in the stretch, if it ends there. Any other form stops
        repeating where the stretch does, so it can start in one place only.

        Returns:
            The number of comparisons.
        """
        comparisons = 0
        for first in range(start, start + period):
            found = self._pattern.match(text, first)
            for form in self._head(found[0]).forms if found else ():
                comparisons += _cost(form)
                extent = _run_end(form.text, 0, period)
                if extent >= len(form.text):
                    comparisons += yield from _repeated_spans(text, first, end, period, form)
                elif end - extent >= first and text.startswith(form.text, end - extent):
                    yield _span(text, end - extent, form)
        return comparisons


def _longest_span(text: str, start: int, forms: Iterable[Form]) -> Generator[Span, None, int]:
    """Yield the span of the first of *forms* found at *start*, if any, and return the number of comparisons."""
    comparisons = 0
    for form in forms:
        comparisons += _cost(form)
        if text.startswith(form.text, start):
            yield _span(text, start, form)
            break
    return comparisons


def _repeated_spans(text: str, first: int, end: int, period: int, form: Form) -> Generator[Span, None, int]:
    """Yield the spans of a form that occurs at *first* and every *period* characters after that, up to *end*."""
    last = first + (end - first - len(form.text)) // period * period
    if last < first:
        return 0
    if len(form.text) >= period:  # consecutive occurrences overlap
        yield _span(text, first, form)[0], _span(text, last, form)[1]
        return 1
    yield from (_span(text, start, form) for start in range(first, last + 1, period))
    return (last - first) // period


def _cost(form: Form) -> int:
    return 1 + len(form.text) // COMPARED_CHARS


def _span(text: str, start: int, form: Form) -> Span:
    end = start + len(form.text)
    if form.before and BASE64.match(text, start - 1 if start else len(text)):
        start -= 1
    if form.after:
        end += BASE64.match(text, end) is not None
        end += text.startswith("=", end)
        end += text.startswith("=", end)
    return start, end


def _length(form: Form) -> int:
    return len(form.text)


def _period(text: str) -> int:
    """Return the period of *text* in characters, at most half its length, or 0 if it does not repeat."""
    periods = range(1, len(text) // 2 + 1)
    return next((each for each in periods if text[each:] == text[:-each]), 0)


def _run_end(text: str, start: int, period: int) -> int:
    """Return where *text*, from *start* on, stops being periodic."""
    end, step = start + period, LONG_RUN_CHARS
    while end + step <= len(text) and text[end : end + step] == text[end - period : end - period + step]:
        end, step = end + step, step * 2
    while step:
        if end + step <= len(text) and text[end : end + step] == text[end - period : end - period + step]:
            end += step
        step //= 2
    return end


def _trie(heads: Sequence[str], at: int = 0) -> str:
    """Return a regular expression that matches the longest of sorted heads with the same first *at* characters."""
    branches: list[str] = []
    ends = ""
    position = 0
    while position < len(heads):
        head = heads[position]
        if len(head) == at:
            ends, position = "|", position + 1
            continue
        behind = position + 1
        while behind < len(heads) and heads[behind][at] == head[at]:
            behind += 1
        last = heads[behind - 1]
        shared = at + 1
        while shared < min(len(head), len(last)) and head[shared] == last[shared]:
            shared += 1
        rest = _trie(heads[position:behind], shared) if behind - position > 1 else ""
        branches.append(re.escape(head[at:shared] if rest else head[at:]) + rest)
        position = behind
    return f"(?:{'|'.join(branches)}{ends})" if branches else ""
