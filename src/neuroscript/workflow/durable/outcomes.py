"""The outcomes of durable calls as their rows store them, and the errors of calls that are not made."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript.errors import CallError, SpecError
from neuroscript.flow.labels import Labels
from neuroscript.workflow.durable.database import CALLS
from neuroscript.workflow.durable.encoding import Unreadable, decode_error, encode_error
from neuroscript.workflow.durable.labels import labelled_text, labelled_value
from neuroscript.workflow.durable.rows import check_call, fault

Place = tuple[str, int | None, int]
"""The node of a call, the index of its item, and the number of the attempt."""


@attrs.frozen
class Outcome:
    """The outcome of a call.

    Attributes:
        place: The node, the index of the item, and the number of the attempt.
        has_failed: Whether it is an error.
        is_cancelled: Whether the call did not begin, because the run was cancelled.
        started: When the call began, on the database's clock.
        seconds: How long it took.
        ago: How many seconds before the query it ended.
    """

    id: str
    place: Place
    has_failed: bool
    is_cancelled: bool
    started: float
    seconds: float
    ago: float
    text: str

    def given(self) -> Any:
        """Return the result of the call, or raise its `CallError`.

        Raises:
            SpecError: If its row is invalid.
        """
        try:
            data = labelled_value(self.text)[0]
            if type(data) is not dict or len(data) != 1 or (error_is_kept := "error" in data) != self.has_failed:
                raise Unreadable("does not match its code")
            if not error_is_kept:
                return data["value"]
            error = decode_error(data["error"])
        except Unreadable as unreadable:
            raise fault(CALLS, self.id, [f"outcome {unreadable}"]) from None
        except KeyError:
            raise fault(CALLS, self.id, ["outcome holds neither a value nor an error"]) from None
        raise error

    def labels(self) -> Labels | None:
        """Return what the outcome carries; None if the worker had no flow rules, or did not make the call.

        Raises:
            SpecError: If its row is invalid.
        """
        try:
            return labelled_value(self.text)[1]
        except Unreadable as unreadable:
            raise fault(CALLS, self.id, [f"outcome {unreadable}"]) from None


def failure(error: CallError, labels: Labels | None = None) -> str:
    """Return the text of an outcome that is an error."""
    return labelled_text({"error": encode_error(error)}, labels)


def damaged_row_error(tool: str, text: str, begun: object = None) -> CallError:
    """Return the error of a call that is not made because a row in the database is invalid.

    Args:
        begun: When the call began, or None.
    """
    if begun is not None:
        message = f"was under way when its process died, and may have run; its data cannot be used: {text}"
        return CallError(message, tool=tool, code="plan.in_doubt")
    return CallError(f"has not begun, because its data cannot be used: {text}", tool=tool, code="plan.invalid_row")


def arguments_in(row: Any) -> tuple[dict[str, Any], Labels | None, CallError | None]:
    """Return the arguments in a row of `CALLS`, their labels, and the error of a call whose row is invalid."""
    try:
        check_call(dict(row._mapping))
        arguments, labels = labelled_value(row.arguments)
        if type(arguments) is not dict or not all(type(name) is str for name in arguments):
            raise Unreadable("is not an object")
    except SpecError as error:
        return {}, None, damaged_row_error("", str(error), row.begun)
    except Unreadable as unreadable:
        invalid = str(fault(CALLS, row.id, [f"arguments {unreadable}"]))
        return {}, None, damaged_row_error(row.tool, invalid, row.begun)
    return arguments, labels, None


def outcome_in(row: Any) -> Outcome:
    """Return the outcome in a row of `CALLS` that has ended, or raise a `SpecError` if the row is invalid."""
    check_call(dict(row._mapping))
    started = row.ended if row.begun is None else row.begun
    place = (row.node, row.item, row.number)
    is_cancelled = row.begun is None and row.code == "plan.cancelled"  # a tool may use the code too, but it has begun
    return Outcome(row.id, place, row.code != "ok", is_cancelled, started, row.ended - started, row.ago, row.outcome)


def cancelled_error(tool: str) -> CallError:
    """Return the error of a call whose run was cancelled."""
    return CallError("has not begun, because the run was cancelled", tool=tool, code="plan.cancelled")
