"""What a job's own words mean: lines of logs, kernel rings and tools, and who failed first."""
