"""Commands that show and export tools."""
