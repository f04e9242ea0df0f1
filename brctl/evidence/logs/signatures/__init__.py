"""Tables of log lines, one file a subject: what a family of lines speaks for, and how far."""
