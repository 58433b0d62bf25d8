"""Pictures, tables and widgets. Knows nothing of checks, exercises, or where its data come from."""
