"""Explanations of policies: why a call may run, what to grant, which rules have no effect, and how policies differ."""
