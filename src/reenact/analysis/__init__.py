"""Runs looked at: one view of every readable artifact, compared and counted."""
