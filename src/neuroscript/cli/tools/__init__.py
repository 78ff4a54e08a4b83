"""Commands that list, describe and export tools."""
