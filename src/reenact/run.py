"""capture() and replay(): the only place where seams, context and store are joined."""
