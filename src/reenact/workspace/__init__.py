"""The files among which a run works: looked at, restored and compared."""
