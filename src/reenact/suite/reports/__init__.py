"""Outcomes as people and machines read them: one module per form."""
