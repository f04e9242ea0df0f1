"""brctl: find what stops a large GPU training job, and bring the job back."""

__version__ = "0.1.0"
API_VERSION = "brctl.dev/v1"
