"""The tools of the group ``str``, one module for each kind of operation."""
