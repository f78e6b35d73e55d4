"""Which modules are the agent's own: those whose source is neither a library nor reenact, or those named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, TypeAlias

from reenact.library import is_library, possible_agents

Namespace: TypeAlias = dict[str, Any]
Patterns: TypeAlias = tuple[str, ...]
"""Names of modules or packages, with ``*`` where wanted; none at all means all that are no library."""


def is_agents(namespace: Namespace, patterns: Patterns) -> bool:
    """Whether the module with this namespace is the agent's own."""
    name = namespace.get("__name__")
    if not isinstance(name, str):
        return False
    if patterns:
        return _is_named(name, patterns)
    file = namespace.get("__file__")
    # A program typed in, or given on the command line, has no file.
    return not is_library(file) if isinstance(file, str) else name == "__main__"


@lru_cache(maxsize=2**16)
def _is_named(name: str, patterns: Patterns) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for pattern in patterns)


def agents_namespaces(patterns: Patterns) -> Iterator[Namespace]:
    """The namespaces of the agent's modules that are loaded."""
    # What is named may be a library.
    loaded = _all_namespaces() if patterns else (namespace for _, namespace in possible_agents())
    return (namespace for namespace in loaded if is_agents(namespace, patterns))


def _all_namespaces() -> Iterator[Namespace]:
    return (getattr(module, "__dict__", {}) for module in list(sys.modules.values()))
