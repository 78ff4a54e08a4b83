"""Pages of audit logs: their calls, one call with those around it, statistics, verification, and export."""
