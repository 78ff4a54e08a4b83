"""Compare which annotations frameworks accept: ``python -m tests.benchmarks.annotations``.

Each row of ``tests/spec/annotation_rows.py`` becomes a tool of each framework, which is called with what a model sends.

- ``ok``: the function receives what ours receives.
- ``other``: it receives something else.
- ``exact``: what the model sends is refused, and the exact value of the row is accepted.
- ``refused``: the tool cannot be made, or both values are refused.

It prints the rows where frameworks differ, and then annotations outside the table that a framework accepts and we refuse.
The exit code is 1 if a framework accepts a row of the table that we refuse.
"""

from __future__ import annotations

import asyncio
import datetime
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final

import annotated_types as bounds
import pydantic
from tests.spec.annotation_rows import REFUSED, ROWS, SAME, take_of

from neuroscript import Engine, Toolset

Call = Callable[[Any, Any], Any]
"""Return what a function with this annotation receives if a model sends this value; it raises if that is refused."""


class Chain(pydantic.BaseModel):
    """A class that contains itself."""

    next: Chain | None = None


OUTSIDE: Final = (
    ("recursive class", Chain, {"next": {}}, "specs are finite; the error names the cycle"),
    ("MultipleOf", Annotated[int, bounds.MultipleOf(5)], 5, "a spec has no such bound; check it in the function"),
    ("pattern", Annotated[str, pydantic.Field(pattern="a+")], "aa", "a spec has no patterns; check it in the function"),
    ("URL of pydantic", pydantic.AnyUrl, "https://example.org/", "use str, or a field of a model"),
)
"""Annotations that we refuse, with a value and the reason."""


VERDICTS: Final = ("ok", "other", "exact", "refused")

ANYTHING: Final = object()
"""The expectation of a row for which every received value is right."""


def ours(annotation: Any, sent: Any) -> Any:
    seen: list[Any] = []
    with Engine(toolsets=[Toolset("table", (take_of(annotation, seen),))], plugins="none") as engine:
        engine.call("table.take", [sent])
    return seen[0]


def _function(annotation: Any, seen: list[Any]) -> Callable[[Any], Any]:
    def take(value: Any) -> Any:
        seen.append(value)
        return value

    take.__annotations__ = {"value": annotation, "return": annotation}
    return take


def fastmcp(annotation: Any, sent: Any) -> Any:
    from fastmcp.tools import Tool

    seen: list[Any] = []
    tool = Tool.from_function(_function(annotation, seen))
    asyncio.run(tool.run({"value": sent}))
    return seen[0]


def pydantic_ai(annotation: Any, sent: Any) -> Any:
    from pydantic_ai import Tool

    seen: list[Any] = []
    tool = Tool(_function(annotation, seen), takes_ctx=False)
    args = tool.function_schema.validator.validate_python({"value": sent})
    tool.function_schema.function(**args)
    return seen[0]


FRAMEWORKS: Final[Mapping[str, Call]] = {"neuroscript": ours, "fastmcp": fastmcp, "pydantic-ai": pydantic_ai}


def verdict(call: Call, annotation: Any, sent: Any, exact: Any, expected: Any) -> str:
    """Return ``ok``, ``other``, ``exact`` or ``refused``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            received = call(annotation, sent)
        except Exception:  # any error of a framework is a refusal
            try:
                call(annotation, exact)
            except Exception:
                return "refused"
            return "exact"
    return "ok" if expected is ANYTHING or _spelled(received) == _spelled(expected) else "other"


def _spelled(value: Any) -> Any:
    if isinstance(value, (list, tuple, deque)):
        return type(value), [_spelled(each) for each in value]
    if type(value) is dict:
        return sorted((repr(key), _spelled(each)) for key, each in value.items())
    if isinstance(value, datetime.datetime):
        return value.isoformat()  # time zones of libraries have names of their own
    return type(value), repr(value)


def compared() -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each row with the verdict of each framework."""
    rows = [(each.name, each.annotation, each.sent, each.exact, each.received) for each in ROWS]
    rows += [(each.name, each.annotation, None, None, ANYTHING) for each in REFUSED]
    for name, annotation, sent, exact, received in rows:
        expected = exact if received is SAME else received
        yield name, [verdict(call, annotation, sent, exact, expected) for call in FRAMEWORKS.values()]


def main() -> int:
    """Print the comparison, and return the exit code."""
    found = dict(compared())
    width = max(map(len, found)) + 2
    print("".join(each.ljust(width) for each in ("annotation", *FRAMEWORKS)).rstrip())
    for name, verdicts in found.items():
        if {*verdicts} != {"ok"}:
            print("".join(each.ljust(width) for each in (name, *verdicts)).rstrip())
    counts = [[row[index] for row in found.values()] for index in range(len(FRAMEWORKS))]
    print(f"\n{len(found)} annotations")
    for name, verdicts in zip(FRAMEWORKS, counts, strict=True):
        print(f"{name}: {', '.join(f'{verdicts.count(word)} {word}' for word in VERDICTS)}")
    print("\nOutside the table, refused by us:")
    for name, annotation, sent, reason in OUTSIDE:
        others = ", ".join(
            f"{framework} {verdict(call, annotation, sent, sent, ANYTHING)}" for framework, call in FRAMEWORKS.items()
        )
        print(f"{name.ljust(width)}{others}; {reason}")
    behind = [name for name, (own, *others) in found.items() if own == "refused" and {*others} != {"refused"}]
    if behind:
        print(f"\naccepted elsewhere and refused by us: {', '.join(behind)}")
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
