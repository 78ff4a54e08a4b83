"""The tools of the group ``tree``, one room for each kind of work, and the tree itself."""
