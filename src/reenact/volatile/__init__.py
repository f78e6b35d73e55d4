"""Values that differ from run to run: rules that name them, and comparison without them."""
