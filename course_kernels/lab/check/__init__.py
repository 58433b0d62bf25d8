"""From facts to a verdict: what is wrong with an answer, and how that was proven."""
