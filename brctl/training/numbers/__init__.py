"""Parts of the checks of a job's numbers: one product, sums over ranks, the loss's own past."""
