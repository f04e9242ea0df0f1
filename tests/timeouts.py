"""How long a test waits for what has to come before it fails."""

TIMEOUT_S = 240.0
"""Nobody waits for it who passes: it bounds failures. A second on a quiet machine is a minute and a
half on one that has twenty processes for each of its cores."""
