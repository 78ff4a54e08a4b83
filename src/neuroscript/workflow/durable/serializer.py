"""The format in which DBOS stores values for us: JSON of exact values, and never a pickle.

DBOS reads each row in the format that the row itself names, and its default format is pickle, so a row that another
program wrote could run code. Before DBOS opens a database, `refuse_pickles` replaces its pickle serializer.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from neuroscript._imports import missing
from neuroscript.errors import SpecError
from neuroscript.io.text import type_name
from neuroscript.workflow.durable.encoding import text_of, value_of

try:
    from dbos import _serialization as formats
except ModuleNotFoundError as error:
    raise missing("durable runs need DBOS", "durable", error) from None

FORMAT: Final = "neuroscript_json"
"""What rows name as their format."""

PICKLE: Final = "py_pickle"

PROBE: Final = base64.b64encode(b"N.").decode()
"""A pickle of None."""


class Refused(ValueError):
    """A row was not written by us."""


class ExactJSON(formats.Serializer):
    """Writes and reads JSON of exact values."""

    def name(self) -> str:
        """Return the name of the format."""
        return FORMAT

    def serialize(self, data: Any) -> str:
        """Return a value as text; of an exception only its type."""
        return text_of({"error": type_name(data)} if isinstance(data, BaseException) else data)

    def deserialize(cls, serialized_data: str) -> Any:  # noqa: N805  # as DBOS spells it
        """Return the value in a text, or raise a `ValueError`."""
        return value_of(serialized_data)


EXACT: Final = ExactJSON()


def refuse_pickles() -> None:
    """Make DBOS refuse every pickle, in this whole process, whichever table it is in.

    DBOS ends a workflow that it cannot read with an error in the format of the row, so that writing stays possible: the
    error is written as JSON.

    Raises:
        SpecError: The installed version of DBOS would read pickles all the same.
    """
    kind = formats.DefaultSerializer
    kind.deserialize = _refuse  # type: ignore[method-assign, assignment]
    kind.serialize = _write  # type: ignore[method-assign, assignment]
    if any(map(_reads_pickles, (formats.deserialize_value, formats.deserialize_args, formats.deserialize_exception))):
        raise SpecError("durable", ["this version of DBOS reads pickles in another way; install dbos 3.4"])


def _refuse(_: object, __: str) -> Any:
    raise Refused("the row holds a pickle, which is never read")


def _write(_: object, data: Any) -> str:
    return EXACT.serialize(data)


def _reads_pickles(read: Any) -> bool:
    try:
        read(PROBE, PICKLE, EXACT)
    except Refused:
        return False
    return True
