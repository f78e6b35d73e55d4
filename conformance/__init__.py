"""Good and bad files of every format, for verifiers in any language."""
