"""The normalized trace of a run, and conversions of runs to other formats."""
