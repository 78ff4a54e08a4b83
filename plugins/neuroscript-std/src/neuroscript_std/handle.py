"""The ``handle`` tools. A handle refers to a resource that a tool stores for its caller between calls."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, ToolPolicy, Toolset, ToolSpec

LOOKING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False, sources=(), sinks=())
RELEASING: Final = ToolPolicy(effects=("deletes", "idempotent"), sources=(), sinks=())

GONE: Final = "file-00000000000000000000000000000000"

HANDLE: Final = ArgSpec("h", ArgType.HANDLE, description="The handle, or its id as a string.")

toolset = Toolset("handle")

toolset.add(
    ToolSpec(
        "type",
        "handle",
        (HANDLE,),
        return_type=ArgType.STRING,
        return_nullable=True,
        description="Return the type of a handle: the kind of resource that it refers to.",
        when_to_use=(
            "Use it to choose tools that accept the handle; to check only whether it exists, use handle.isvalid."
        ),
        return_help="The kind, such as tree, or None if the handle is no longer valid.",
        examples=(
            Example((GONE,), None, note="the handle is not valid"),
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
        description="Check whether a handle is still valid.",
        when_to_use="Use it before you reuse an old handle; to get the kind too, use handle.type.",
        return_help="True if the handle refers to a resource that is still stored.",
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
        description="Release a handle: close it and free the resource behind it.",
        when_to_use=(
            "Use it to free memory early; all handles are released when the session ends. To only check, use "
            "handle.isvalid."
        ),
        return_help="True if the handle was valid until now.",
        examples=(
            Example((GONE,), False, note="releasing a handle twice is not an error"),
            Example({"h": "tree-1"}, True),
            Example((), error="arg.missing"),
        ),
    ),
    lambda rt, h: rt.handles.release(h),
    RELEASING,
)
