"""Pure: what looks mean over time, and what a watcher may do about it."""
