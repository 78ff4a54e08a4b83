"""What the APIs of models send and receive, with a package for each API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

if TYPE_CHECKING:
    from neuroscript.llm.wire.detect import Shape, call_id, read_call, shape_of

__all__ = ["Shape", "call_id", "read_call", "shape_of"]

__getattr__ = lazy(__name__, {"detect": "Shape call_id read_call shape_of"})
