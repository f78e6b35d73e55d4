"""Whether captures and logs hold together: digests, order, links between calls and outcomes."""
