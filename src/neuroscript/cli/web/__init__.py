"""``neuroscript web``: serve the web console."""
