"""Data: who waits for a batch and why, and whose batches cost more than others."""
