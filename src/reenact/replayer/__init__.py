"""Replay: answers an agent's calls from a recorded run."""
