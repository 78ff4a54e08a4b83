"""The public entry points: engines, sessions and clients."""
