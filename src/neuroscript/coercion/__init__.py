"""Values converted to the exact value of their declared type, or the reason why not."""
