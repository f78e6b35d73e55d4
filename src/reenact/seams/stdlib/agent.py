"""Which modules are the agent's own: those whose source is neither a library nor reenact, or those named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from reenact.library import is_library

Namespace: TypeAlias = dict[str, Any]
Patterns: TypeAlias = tuple[str, ...]
"""Names of modules or packages, with ``*`` where wanted; none at all means all that are no library."""


def is_agents(namespace: Namespace, patterns: Patterns) -> bool:
    """Whether the module with this namespace is the agent's own."""
    name = namespace.get("__name__")
    if not isinstance(name, str):
        return False
    if patterns:
        return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for pattern in patterns)
    file = namespace.get("__file__")
    # A program typed in, or given on the command line, has no file.
    return not is_library(file) if isinstance(file, str) else name == "__main__"


def agents_namespaces(patterns: Patterns) -> Iterator[Namespace]:
    """The namespaces of the agent's modules that are loaded."""
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", None)
        if namespace is not None and is_agents(namespace, patterns):
            yield namespace
