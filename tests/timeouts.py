"""How long a test waits for what has to come before it fails."""

TIMEOUT_S = 90.0
"""Nobody waits for it who passes: it bounds failures. Seconds on a quiet machine are a minute on
one that has fifteen processes for each of its cores."""
