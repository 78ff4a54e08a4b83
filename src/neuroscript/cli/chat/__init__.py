"""Commands that talk to models: ``ask``, ``chat`` and ``models``."""
