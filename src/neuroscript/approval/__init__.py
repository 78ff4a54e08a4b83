"""Approval of calls before they run."""
