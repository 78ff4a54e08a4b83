"""``neuroscript doctor``: check the installation, and show how to fix problems."""
