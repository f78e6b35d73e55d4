"""Signing what a run was, and proving parts of it."""
