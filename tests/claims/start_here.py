"""Notebook 00 and its exercise."""

from claims import Claim  # noqa: F401

NOTEBOOK = "notebooks/00_start_here.ipynb"

CLAIMS = ()
