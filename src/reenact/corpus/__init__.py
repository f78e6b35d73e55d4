"""Many runs at once: tables of them, an index, and SQL over both."""
