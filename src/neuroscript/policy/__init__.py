"""Policies: what a tool needs, what a host permits, and how much of it has been used."""
