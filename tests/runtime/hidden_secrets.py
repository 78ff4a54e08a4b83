"""Redaction of one secret."""

from __future__ import annotations

from neuroscript.runtime.redaction import Redactor
from neuroscript.runtime.secret_set import SecretSet

PASSWORD = "p\"ä's/<&>\\ +\n%{§}🔑=key"
"""A secret with characters that encodings write differently."""


def hiding(*values: str | bytes) -> Redactor:
    """Return a redactor of these secrets."""
    secrets = SecretSet()
    for each in values:
        secrets.add(each)
    return Redactor(secrets)
