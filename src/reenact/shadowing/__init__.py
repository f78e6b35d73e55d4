"""Recorded runs against a changed agent or model: what changed, and whether it is chance."""
