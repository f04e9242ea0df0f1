"""Lines that tell more side by side than each by itself: watchdogs of ranks."""
