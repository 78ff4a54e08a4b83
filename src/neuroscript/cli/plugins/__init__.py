"""Commands for plugins and their publishers."""
