"""What the ranks of a job say: who progresses, who waits, who never arrived, who is silent."""
