"""Type coercion: convert argument values to the exact types that a spec declares, or explain why they do not fit."""
