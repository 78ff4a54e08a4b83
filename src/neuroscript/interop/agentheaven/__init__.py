"""AgentHeaven integration: its documented tool handles with a state, and methods that are tools.

>>> def shout(text: str, times: int = 1) -> str:
...     '''Repeat a string in capitals.'''
...     return " ".join([text.upper()] * times)
>>> handle = ToolSpec.from_function(shout)
>>> handle.bind("times", default=2)(text="hi")
'HI HI'
>>> handle.signature(text="hi")
"shout(text='hi')"
"""

from __future__ import annotations

from neuroscript.interop.agentheaven.handle import ToolSpec
from neuroscript.interop.agentheaven.registry import ToolRegistry, reg_toolspec
from neuroscript.interop.agentheaven.result import ToolResult

__all__ = ["ToolRegistry", "ToolResult", "ToolSpec", "reg_toolspec"]
