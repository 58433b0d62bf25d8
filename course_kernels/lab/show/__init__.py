"""Pictures, tables and widgets. Knows nothing of checks."""
