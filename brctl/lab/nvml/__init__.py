"""A fake `libnvidia-ml.so.1` and the files it answers from."""
