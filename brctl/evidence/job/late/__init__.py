"""Who slows a job that still moves, and why: ranks the others wait for, and what holds them."""
