"""The kinds of artifacts a run can be read from, each as a stream of events in the same words."""
