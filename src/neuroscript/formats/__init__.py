"""Tool specs in other formats."""
