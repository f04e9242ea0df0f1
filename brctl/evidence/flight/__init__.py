"""Flight-recorder dumps: read without trust, and who keeps the others waiting."""
