"""The tools of the group ``tree``, one module for each kind of operation, and the tree itself."""
