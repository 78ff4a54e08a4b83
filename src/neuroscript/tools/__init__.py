"""Tools, each a spec with a function and a policy, and sets of tools."""
