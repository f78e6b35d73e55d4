"""Recording and replaying programs that know nothing of it: the run is begun as their interpreter starts."""
