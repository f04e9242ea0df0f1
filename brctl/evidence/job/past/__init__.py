"""What a job outlived, or had all the time: it accuses nobody."""
