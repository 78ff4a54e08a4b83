"""State that the processes of an application share through a database: limits, the audit log, sessions and pins."""
