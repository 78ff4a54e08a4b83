"""Integrations with other frameworks and protocols, a package or module for each."""
