"""What NCCL's RAS service says of a job that stands still: who is gone, and who lags behind."""
