"""The tools of the group ``str``, one room for each kind of work."""
