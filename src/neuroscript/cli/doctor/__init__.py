"""``neuroscript doctor``: what is installed, what is missing and what does not work."""
