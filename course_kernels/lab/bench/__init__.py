"""Measure kernels on a GPU, and read recorded runs. Knows nothing of checks."""
