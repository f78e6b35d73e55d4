"""Many runs at once: their tables, an index of them, and SQL over either."""
