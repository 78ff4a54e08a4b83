"""Conversion of tool specs to and from other formats."""
