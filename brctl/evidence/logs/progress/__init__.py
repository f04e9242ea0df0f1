"""Steps in a log: rows of known trainers, and rows of any whose counter climbs."""
