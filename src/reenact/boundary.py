"""Where a call leaves the agent: Call, Step, and the context that decides what happens to it."""
