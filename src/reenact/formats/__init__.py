"""The wire formats as values: typed, pure, exact in their errors."""
