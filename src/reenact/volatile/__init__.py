"""Values that differ from run to run: left out of a comparison, and named by rules made from examples."""
