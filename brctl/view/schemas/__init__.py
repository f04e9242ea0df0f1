"""Every kind of JSON document as types, by what it is about."""
