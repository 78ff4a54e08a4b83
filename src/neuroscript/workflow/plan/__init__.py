"""Plans as data: read, checked, and made by a model."""
