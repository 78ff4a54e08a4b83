"""Tools and toolsets: creation, changes, serialization, and the hooks of plugins."""
