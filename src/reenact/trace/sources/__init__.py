"""Readers of all artifacts that hold a run; each converts its events to those of a capture."""
