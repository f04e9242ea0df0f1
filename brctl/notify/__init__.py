"""Notify people outside: HTTP, hook programs, and the memory of what was sent."""
