"""``neuroscript policy``: what a policy permits, and why."""
