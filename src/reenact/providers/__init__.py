"""What the bytes of a model call mean; pure functions from bytes to meaning."""
