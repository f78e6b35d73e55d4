"""The local HTTP gateway for agents in any language."""
