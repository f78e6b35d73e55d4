"""One file per library or source of chance; each only attaches and detaches."""
