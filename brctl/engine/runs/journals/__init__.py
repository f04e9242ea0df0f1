"""What is done with a run's journal beside writing it: telling the audit log, verifying it."""
