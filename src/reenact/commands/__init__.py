"""Records, replays, updates and forks commands: any program, in any language."""
