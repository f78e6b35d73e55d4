"""Answering calls from a recorded run."""
