"""What a run has done: stored, compared and shown."""
