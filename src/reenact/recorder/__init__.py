"""Turning calls into recorded events."""
