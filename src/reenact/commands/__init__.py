"""Recording, replaying, updating and forking a command: any program, in any language."""
