"""Files below one directory, through its descriptor; it asks two callables, what may be done and what it costs.

Source: contract section 4; reliability.md parts 0 and 2.3.
"""

from neuroscript.sandbox.root import Backend, Sandbox

__all__ = ["Backend", "Sandbox"]
