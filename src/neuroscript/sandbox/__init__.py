"""Confined access to the files below one directory.

Two callables supplied by the caller decide which operations are permitted, and count what they use.
"""

from neuroscript.sandbox.root import Backend, Sandbox

__all__ = ["Backend", "Sandbox"]
