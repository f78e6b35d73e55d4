"""Figures of speed, each measured in one run beside its floor or peer."""
