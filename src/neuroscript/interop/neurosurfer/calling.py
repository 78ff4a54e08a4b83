"""One call of a tool of neurosurfer: exact inputs and what its host gives in, and what it answers out.

Source: seed-systems.md rows NSF-29, NSF-31 to NSF-35, NSF-40 to NSF-43; contract sections 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuroscript.bodies import close, is_iterator
from neuroscript.callables import is_coroutine
from neuroscript.display import shown
from neuroscript.errors import ToolFailed
from neuroscript.interop.foreigntools import given
from neuroscript.interop.neurosurfer.handing import ANSWER, kept
from neuroscript.interop.neurosurfer.observing import observed
from neuroscript.interop.neurosurfer.reading import Wanted
from neuroscript.interop.neurosurfer.supplying import besides
from neuroscript.runtime import Runtime
from neuroscript.spec import ArgSpec
from neuroscript.walk import type_name


def function_of(tool: Any, args: tuple[ArgSpec, ...], context: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function of a tool.

    Args:
        args: Its inputs, in order.
        context: What its host gives it besides.
    """
    wanted = Wanted.of(tool)

    def inputs(rt: Runtime, values: tuple[Any, ...]) -> dict[str, Any]:
        declared = {arg.name for arg in args}
        found = {**besides(rt, wanted, context, declared), **given(args, values)}
        lacking = [shown(name) for name in sorted(wanted.needed - found.keys())]
        if lacking:
            text = f"{', '.join(lacking)}: the tool asks for it, and its host gives nothing"
            raise ToolFailed(text, code="inject.missing", retry="host")
        return found

    def call(rt: Runtime, *values: Any) -> Any:
        return _answered(rt, tool(**inputs(rt, values)))

    async def acall(rt: Runtime, *values: Any) -> Any:
        return _answered(rt, await tool(**inputs(rt, values)))

    return acall if is_coroutine(tool) else call


def _answered(rt: Runtime, answer: Any) -> Any:
    """Return the observation of an answer; the rest of it is kept for the calls that follow."""
    if not hasattr(answer, "observation") or not hasattr(answer, "final_answer"):
        close(answer)
        text = f"result: expected a ToolResponse, got {type_name(answer)}"
        raise ToolFailed(text, code="neurosurfer.answer", retry="host")
    try:
        told = {"final_answer": bool(answer.final_answer), "stream": is_iterator(answer.observation)}
        rt.set_var(ANSWER, {**told, "extras": kept(rt, getattr(answer, "extras", None))})
    except BaseException:
        close(answer.observation)
        raise
    return observed(answer.observation)
