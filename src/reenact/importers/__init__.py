"""Imports foreign recordings as captures with a declared fidelity: one importer per file."""
