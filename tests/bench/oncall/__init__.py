"""What a person on call types for every fault of the lab, and how long it takes."""
