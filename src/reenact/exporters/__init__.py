"""Runs as what other tools read: one exporter per file."""
