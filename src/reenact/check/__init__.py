"""Validation, verification, seals and publishing of finished artifacts."""
