"""Handles: names of things that tools keep for their caller from one call to the next.

Source: upstream ``pkg/tool/handle``, whose two tools can not be called, and which gives nothing up.
"""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, ToolPolicy, Toolset, ToolSpec

LOOKING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False)
RELEASING: Final = ToolPolicy(effects=("deletes", "idempotent"))

GONE: Final = "file-00000000000000000000000000000000"

HANDLE: Final = ArgSpec("h", ArgType.HANDLE, description="The handle, or its id as a text.")

toolset = Toolset("handle")

toolset.add(
    ToolSpec(
        "type",
        "handle",
        (HANDLE,),
        return_type=ArgType.STRING,
        return_nullable=True,
        description="Tell what kind of thing a handle stands for.",
        when_to_use="To choose the tools that fit a handle; handle.isvalid only tells whether it is still kept.",
        return_help="The word of the tool that keeps it, or None if it is kept no longer.",
        examples=(
            Example((GONE,), None, note="nothing is kept under it"),
            Example({"h": "tree-1"}, "tree"),
            Example(("no handle",), error="coercion.format"),
        ),
    ),
    lambda rt, h: rt.handles.kind(h),
    LOOKING,
)

toolset.add(
    ToolSpec(
        "isvalid",
        "handle",
        (HANDLE,),
        return_type=ArgType.BOOL,
        description="Tell whether a thing is still kept under a handle.",
        when_to_use="Before a handle from earlier is used again; handle.type tells the kind of thing too.",
        return_help="True while it is kept.",
        examples=(
            Example((GONE,), False),
            Example({"h": "tree-1"}, True),
            Example((7,), error="coercion.type"),
        ),
    ),
    lambda rt, h: rt.handles.kind(h) is not None,
    LOOKING,
)

toolset.add(
    ToolSpec(
        "release",
        "handle",
        (HANDLE,),
        return_type=ArgType.BOOL,
        description="Give up what is kept under a handle.",
        when_to_use="When a thing is needed no longer; handle.isvalid only looks. At its end a session gives all up.",
        return_help="True if it was kept until now.",
        examples=(
            Example((GONE,), False, note="it may be given up twice"),
            Example({"h": "tree-1"}, True),
            Example((), error="arg.missing"),
        ),
    ),
    lambda rt, h: rt.handles.release(h),
    RELEASING,
)
