"""Exports runs to the formats of other tools: one exporter per file."""
