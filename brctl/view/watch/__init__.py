"""What a watcher did and would have done, for people and programs."""
