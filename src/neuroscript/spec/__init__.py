"""What a tool declares, and the binding of arguments to it."""
