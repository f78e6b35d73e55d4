"""Comparing, counting and exporting finished runs."""
