"""Forks: recorded runs made again, with something changed on the way."""
