"""The approvals area: live and stored calls that wait for a user, and their answers."""
