"""The call pipeline: one call, from its arguments to its result."""
