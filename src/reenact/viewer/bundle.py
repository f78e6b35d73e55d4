"""The viewer's modules as one script, for a page that has to carry its own.

Each module becomes a function that is called once and returns what the module exports; an import becomes a
look at what an earlier one returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def bundle(files: Mapping[str, bytes], entry: str) -> str:
    """The module *entry* with all it imports, directly or not."""
    return "\n".join(_wrapped(name, files) for name in _order(files, entry.removesuffix(".js"), set()))


def _order(files: Mapping[str, bytes], name: str, seen: set[str]) -> Iterator[str]:
    """Every module once, behind those it imports."""
    if name in seen:
        return
    seen.add(name)
    for _, imported in _IMPORT.findall(files[f"{name}.js"].decode()):
        yield from _order(files, imported, seen)
    yield name


def _wrapped(name: str, files: Mapping[str, bytes]) -> str:
    module = files[f"{name}.js"].decode()
    exports = ", ".join(found for _, found in _EXPORT.findall(module))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = module_\2;", module))
    return f"const module_{name} = (() => {{\n{body}return {{ {exports} }};\n}})();"
