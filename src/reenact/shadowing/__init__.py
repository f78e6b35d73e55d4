"""Recorded runs against a changed agent or model: what became of them, and whether it is chance."""
