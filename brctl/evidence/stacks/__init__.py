"""Stacks of all ranks: who stands elsewhere, and which parallel group the odd ones share."""
