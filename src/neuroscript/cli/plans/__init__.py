"""Commands for plans: ``run``, ``plan``, ``trace``, ``worker`` and ``runs``."""
