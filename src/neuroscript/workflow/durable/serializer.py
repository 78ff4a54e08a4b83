"""The serializer for DBOS: JSON of exact values, and never pickle.

DBOS decodes each row in the format that the row names, and its default format is pickle, so a row that another program
wrote could run code. `refuse_pickles` replaces the pickle serializer before DBOS opens a database.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.errors import SpecError
from neuroscript.io.text import type_name
from neuroscript.workflow.durable.encoding import text_of, value_of

try:
    from dbos import _serialization as formats
except ModuleNotFoundError as error:
    raise missing_extra("durable runs need DBOS", "durable", error) from None

FORMAT: Final = "neuroscript_json"
"""The name of the format in rows."""

PICKLE: Final = "py_pickle"

PROBE: Final = base64.b64encode(b"N.").decode()
"""A pickle of None."""


class InvalidRow(ValueError):
    """A row that this package did not write."""


class ExactJSON(formats.Serializer):
    """Serializes exact values as JSON."""

    def name(self) -> str:
        """Return the name of the format."""
        return FORMAT

    def serialize(self, data: Any) -> str:
        """Return a value as text; for an exception, only its type."""
        return text_of({"error": type_name(data)} if isinstance(data, BaseException) else data)

    def deserialize(cls, serialized_data: str) -> Any:  # noqa: N805  # as DBOS spells it
        """Return the value in a string, or raise a `ValueError`."""
        return value_of(serialized_data)


EXACT: Final = ExactJSON()


def refuse_pickles() -> None:
    """Make DBOS reject every pickle in this process, whatever table it comes from.

    DBOS ends a workflow that it cannot read with an error in the row's format. Writing must therefore still work, and
    writes
    that error as JSON.

    Raises:
        SpecError: If the installed version of DBOS would still read pickles.
    """
    kind = formats.DefaultSerializer
    kind.deserialize = _refuse  # type: ignore[method-assign, assignment]
    kind.serialize = _write  # type: ignore[method-assign, assignment]
    if any(map(_reads_pickles, (formats.deserialize_value, formats.deserialize_args, formats.deserialize_exception))):
        raise SpecError("durable", ["this version of DBOS reads pickles in another way; install dbos 3.4"])


def _refuse(_: object, __: str) -> Any:
    raise InvalidRow("the row holds a pickle, which is never read")


def _write(_: object, data: Any) -> str:
    return EXACT.serialize(data)


def _reads_pickles(read: Any) -> bool:
    try:
        read(PROBE, PICKLE, EXACT)
    except InvalidRow:
        return False
    return True
