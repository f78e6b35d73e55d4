"""Recording and replaying a command: a program that was not written for it, in any language."""
