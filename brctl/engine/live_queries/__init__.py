"""Questions to the processes of a job that stands still: NCCL, and torch's worker server."""
