"""Request and response formats of model APIs, with one package for each vendor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.llm.wire.detect import Shape, call_id, read_call, shape_of

__all__ = ["Shape", "call_id", "read_call", "shape_of"]

__getattr__ = lazy_getattr(__name__, {"detect": "Shape call_id read_call shape_of"})
