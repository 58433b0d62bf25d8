"""Run a file apart, under limits, and report facts as JSON types. Knows nothing of exercises or verdicts."""
