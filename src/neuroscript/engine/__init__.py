"""The public entry points: engines and their sessions."""
