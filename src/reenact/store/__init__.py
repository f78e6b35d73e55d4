"""Bytes on disk: the only room that touches files."""
