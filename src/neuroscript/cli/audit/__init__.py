"""``neuroscript audit``: show, follow, verify and summarize audit logs."""
