"""Traces of runs: files, comparison, text and pictures."""
