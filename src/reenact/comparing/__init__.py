"""Comparing: aligning two sequences of calls, finding where two JSON values differ."""
