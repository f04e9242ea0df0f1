"""The nouns: values without I/O that every layer above shares."""

from brctl import API_VERSION

__all__ = ["API_VERSION"]
