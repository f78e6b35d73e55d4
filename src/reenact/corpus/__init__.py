"""Works with many runs at once: an index, tables, and SQL over both."""
