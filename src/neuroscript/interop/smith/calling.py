"""One call of a function as its METADATA has it: exact values by name out, JSON or a clear error in.

Source: Smith's document, sections 1, 5 and 9; seed-systems.md rows SM-3, SM-21, SM-33; contract section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from neuroscript.bodies import close
from neuroscript.callables import is_coroutine
from neuroscript.display import one_line
from neuroscript.errors import LISTED, CallError, LentError, ToolFailed
from neuroscript.interop.foreigntext import message_of
from neuroscript.interop.foreigntools import given
from neuroscript.interop.smith.places import unspeakable
from neuroscript.runtime import Runtime
from neuroscript.spec import ArgSpec
from neuroscript.walk import type_name

RESULT: Final = "result"


def function_of(function: Callable[..., Any], args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return what is called with the exact values of a call; it gives *function* the declared parameters by name.

    What was not given and has no default in the schema is not passed, so that the function's own default counts.
    """

    def called(rt: Runtime, *values: Any) -> Any:
        try:
            return _told(function(**given(args, values)))
        except (CallError, LentError):  # they say themselves who must act
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error

    async def awaited(rt: Runtime, *values: Any) -> Any:
        try:
            return _told(await function(**given(args, values)))
        except (CallError, LentError):
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error) from error

    return awaited if is_coroutine(function) else called


def _told(result: Any) -> Any:
    """Return a result that JSON can hold; anything else is the fault of the tool."""
    strange = [*islice(unspeakable(result, RESULT), LISTED)]
    if strange:
        close(result)
        places = "; ".join(f"{where}: expected what JSON can hold, got {what}" for where, what in strange)
        raise ToolFailed(places, code="return.type")
    return result


def _failed(error: BaseException) -> ToolFailed:
    """Return the error of a tool as its author raised it: the type and the text, which are meant to be read.

    The text is not cut, for secrets are hidden in it later: nothing would find what is left of one.
    """
    text = one_line(message_of(error))
    return ToolFailed(f"{type_name(error)}: {text}" if text else type_name(error), retry="model")
