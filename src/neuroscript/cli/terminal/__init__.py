"""Output, input, argument parsing and exit codes for all commands."""
