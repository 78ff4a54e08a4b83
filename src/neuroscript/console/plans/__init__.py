"""The area of plans: files, runs and their progress, traces, and durable runs."""
