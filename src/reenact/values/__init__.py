"""Python values and exceptions as JSON, and back."""
