"""What a person has selected in a log: the fields of the form above it, as they are in the address."""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import Any, Final

import attrs

from neuroscript.audit.filters import OUTCOMES, RecordFilter, parse_moment
from neuroscript.policy.tool_policy import EFFECTS

DAY_SECONDS: Final = 86_400.0

PERIODS: Final = {
    "": "Any time",
    "hour": "Last hour",
    "today": "Today (UTC)",
    "yesterday": "Yesterday (UTC)",
    "week": "Last 7 days",
}
"""The choices of a period, and their titles."""

FIELDS: Final = ("tool", "outcome", "effect", "period", "code", "session", "label", "since", "until")
LESS_USED: Final = ("code", "session", "label", "since", "until")
MAX_FIELD_CHARS: Final = 500


@attrs.frozen
class Selection:
    """The fields of the form.

    Attributes:
        fields: The text of each of `FIELDS`.
        filter: The filter that they stand for.
        errors: The problem of each field, or ``""``.
    """

    fields: Mapping[str, str]
    filter: RecordFilter
    errors: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        """Whether all calls are selected."""
        return not any(self.fields.values())

    @property
    def is_valid(self) -> bool:
        """Whether no field has a problem."""
        return not any(self.errors.values())

    @property
    def uses_more(self) -> bool:
        """Whether a field that is used less often is filled."""
        return any(self.fields[name] for name in LESS_USED)


def selection_of(query: Mapping[str, str], now: float | None = None) -> Selection:
    """Return what the parameters of an address select; an invalid field is ignored, and has an error."""
    fields = {name: query.get(name, "").strip()[:MAX_FIELD_CHARS] for name in FIELDS}
    errors = dict.fromkeys(FIELDS, "")
    for name, known in (("outcome", OUTCOMES), ("effect", EFFECTS), ("period", PERIODS)):
        if fields[name] and fields[name] not in known:
            errors[name] = "choose one of the list."
            fields[name] = ""
    since, until = _times(fields["period"], time() if now is None else now)
    for name in ("since", "until"):
        try:
            moment = parse_moment(fields[name], is_end=name == "until") if fields[name] else None
        except ValueError as error:
            errors[name] = f"{error}."
        else:
            since = moment if name == "since" and moment is not None else since
            until = moment if name == "until" and moment is not None else until
    chosen: Any = fields["outcome"]
    return Selection(
        fields,
        RecordFilter(
            tool=fields["tool"].lower(),
            code=fields["code"],
            label=fields["label"],
            effect=fields["effect"],
            session=fields["session"],
            outcome=chosen,
            since=since,
            until=until,
        ),
        errors,
    )


def _times(period: str, now: float) -> tuple[float | None, float | None]:
    today = now // DAY_SECONDS * DAY_SECONDS
    match period:
        case "hour":
            return now // 60 * 60 - 3600, None
        case "today":
            return today, None
        case "yesterday":
            return today - DAY_SECONDS, today
        case "week":
            return today - 6 * DAY_SECONDS, None
        case _:
            return None, None
