"""Signing a run, and proving parts of it under the signature."""
