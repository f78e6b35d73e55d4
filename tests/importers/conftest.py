"""What other tools have written is no test of ours."""

collect_ignore = ["fixtures"]
