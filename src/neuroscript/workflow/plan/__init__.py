"""Plans as data: loading, validation, and generation by a model."""
