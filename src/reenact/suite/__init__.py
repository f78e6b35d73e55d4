"""Assertions over recorded behaviour, written in test.yaml."""
