"""``neuroscript execute --report``: a readable report of repairs, results and refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from neuroscript.cli.calls.results import Outcome
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.inputs import count_of
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, Style, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.cli.terminal.remedies import action
from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.errors import CallError, CallTimeout, Retry, ReturnError, ToolFailed
from neuroscript.io.text import json_text
from neuroscript.runtime.interfaces import ToolResult

RETRY_LABELS: Final[dict[Retry, str]] = {
    "model": "with corrected arguments",
    "later": "later, with the same call",
    "host": "after the host changes its settings",
    "never": "never",
}
"""How a call can be retried, for each value of ``CallError.retry``."""

MAX_RESULT_CHARS: Final = 200
"""Maximum characters of a result."""

INDENT: Final = 4
NAME: Final = 24
"""The minimum width of the column with the tool's name."""

LABEL: Final = 8
"""The width of the column with "repaired", "refused" and so on."""


def report(title: str, outcomes: Iterable[Outcome], output: Output) -> int:
    """Show each outcome as it arrives, then a summary, and return 0."""
    seen: list[ToolResult] = []
    show([line(f"{title}: calls, repairs, results and refusals", "title"), EMPTY], output)
    for outcome in outcomes:
        seen.append(outcome.result)
        show(_blocks(len(seen), outcome), output)
    show(_summary(seen), output)
    return OK


def _blocks(number: int, outcome: Outcome) -> Iterator[Rows]:
    result = outcome.result
    name = result.tool if outcome.is_call else f"line {outcome.line}, not a tool call"
    yield Rows(((Cell(f"{number:>2}"), cell(name, "name"), Cell(outcome.shape, "dim")),), widths=(2, NAME))
    yield Rows(tuple(_rows(result)), indent=INDENT, widths=(LABEL,))


def _rows(result: ToolResult) -> Iterator[tuple[Cell, Cell]]:
    if result.repairs:
        repairs = ", ".join(f"{each.where}: {each.got} -> {each.became}" for each in result.repairs)
        yield Cell("repaired", "mended"), cell(repairs)
    if result.error is None:
        yield Cell("result", "good"), cell(_format_value(result.value))
        return
    yield Cell(_verdict(result.error), "bad"), cell(_reason(result.error))
    yield Cell("retry", "dim"), Cell(RETRY_LABELS[result.error.retry], "dim")
    todo = action(result.error)
    if todo:
        yield Cell("remedy", "dim"), cell(todo, "dim")


def _format_value(value: Any) -> str:
    text = readable_text(value)
    text = json_text(to_plain(value)) if text is None else text
    return text if len(text) <= MAX_RESULT_CHARS else f"{text[:MAX_RESULT_CHARS]}… ({len(text)} characters)"


def _verdict(error: CallError) -> str:
    """Return ``failed`` if the tool was called, otherwise ``refused``."""
    return "failed" if isinstance(error, (ToolFailed, ReturnError, CallTimeout)) else "refused"


def _reason(error: CallError) -> str:
    """Return an error without the name of its tool, which the row above contains."""
    return str(error).removeprefix(f"{error.tool}: ")


def _summary(results: list[ToolResult]) -> Iterator[Rows]:
    errors = [result.error for result in results if result.error is not None]
    repaired = [result for result in results if result.ok and result.repairs]
    refused = [error for error in errors if _verdict(error) == "refused"]
    repairs = sum(len(result.repairs) for result in repaired)
    counts: tuple[tuple[int, str, Style], ...] = (
        (len(results), "call" if len(results) == 1 else "calls", "title"),
        (len(results) - len(errors), "ran", "good"),
        (len(repaired), f"of these with repairs, {repairs} in total", "mended"),
        (len(refused), "refused before the tool ran", "bad"),
        (len(errors) - len(refused), "failed in the tool", "bad"),
    )
    parts = [*counts[:2], *(each for each in counts[2:] if each[0])]
    yield EMPTY
    yield Rows(tuple((Cell(f"{count:>4}"), Cell(text, style)) for count, text, style in parts))
    if errors:
        yield EMPTY
        yield line("Errors, and when to retry", "title")
        yield Rows(tuple(_reasons(errors)))
        yield EMPTY
        yield line(_sentence(len(results), len(results) - len(errors), len(repaired), len(refused)))


def _sentence(calls: int, ran: int, repaired: int, refused: int) -> str:
    """Return one sentence about all calls.

    Args:
        repaired: The number of calls that ran with repaired arguments.
        refused: The number of calls that were refused before their tool ran.
    """
    parts = [f"{ran} of {count_of(calls, 'call')} ran"]
    if repaired:
        parts.append(f", {repaired} of these with repaired arguments")
    parts.append(f"; {refused} {'was' if refused == 1 else 'were'} refused before the tool ran")
    failed = calls - ran - refused
    if failed:
        parts.append(f", and {failed} failed in the tool")
    return f"{''.join(parts)}."


def _reasons(errors: list[CallError]) -> Iterator[tuple[Cell, ...]]:
    for (code, retry), count in Counter((error.code, error.retry) for error in errors).most_common():
        yield Cell(f"{count:>4}"), cell(code), Cell(RETRY_LABELS[retry])
