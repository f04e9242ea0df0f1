"""What an attacker on a node would send, and everything of ours that reads it."""
