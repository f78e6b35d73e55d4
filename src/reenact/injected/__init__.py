"""Recording and replaying unchanged programs: the run begins when their interpreter starts."""
