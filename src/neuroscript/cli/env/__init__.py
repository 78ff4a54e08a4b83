"""The engine of a command, made from options, files and environment variables."""
