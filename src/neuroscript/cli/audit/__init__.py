"""``neuroscript audit``: audit logs shown, followed, verified and counted."""
