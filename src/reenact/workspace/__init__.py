"""The files of a run's workspace: scanned, restored and compared."""
