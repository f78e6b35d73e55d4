"""Files that the agent writes: recorded with path, size and digest when they are closed.

In replay the files are really written, and must be the same. Reading is not recorded.
"""

from __future__ import annotations

import builtins
import io
import os
import stat
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.stdlib.exchange import is_exchanged_in
from reenact.seams.stdlib.places import recorded_path
from reenact.seams.stdlib.sources import lane_for, stand_for, value_of

_WRITE_MODES: Final = frozenset(
    "".join(letters)
    for base in ("w", "a", "x", "w+", "a+", "x+", "r+")
    for kind in ("", "b", "t")
    for letters in permutations(base + kind)
)
"""Every mode that writes, with its letters in any order."""
_open: Final = builtins.open


def _open_and_record(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> object:
    is_binary = "b" in mode
    is_wrong = (encoding, errors, newline) != (None, None, None) if is_binary else buffering == 0
    is_ours = mode in _WRITE_MODES and not isinstance(file, int) and lane_for("files") is not None
    if not is_ours or is_wrong:  # the real function raises the error
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    raw = _FileRecorder(os.fspath(file), mode, closefd, opener)
    try:
        return raw if buffering == 0 else _add_layers(raw, mode, buffering, encoding, errors, newline)
    except BaseException:
        raw.close()
        raise


def _open_or_fake(*args: Any, **kwargs: Any) -> object:
    real = builtins.open
    return _open_and_record(*args, **kwargs) if real is _open else real(*args, **kwargs)


open = stand_for(builtins, "open", _open_or_fake, _open_and_record)  # noqa: A001 — it stands for it
"""``builtins.open``, but what is written is recorded; a fake that replaces it is called unchanged."""


def _add_layers(
    raw: _FileRecorder,
    mode: str,
    buffering: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> object:
    size_bytes = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffered: Any = io.BufferedRandom(raw, size_bytes) if "+" in mode else io.BufferedWriter(raw, size_bytes)
    if "b" in mode:
        return buffered
    is_by_line = buffering == 1 or (buffering < 0 and raw.isatty())
    text: Any = io.TextIOWrapper(buffered, io.text_encoding(encoding, 3), errors, newline, is_by_line)
    text.mode = mode
    return text


class _FileRecorder(io.FileIO):
    """The lowest layer of a file that is written, which sees the final bytes."""

    def __init__(self, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        super().__init__(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        self._how = mode
        self._digest = sha256()
        self._size_bytes = 0

    def write(self, data: Any, /) -> int:
        count = super().write(data)
        self._digest.update(memoryview(data).cast("B")[:count])
        self._size_bytes += count
        return count

    def close(self) -> None:
        if self.closed:
            return
        is_file = stat.S_ISREG(os.fstat(self.fileno()).st_mode)
        super().close()
        if is_file:
            _record_write(self.name, self._how, self._size_bytes, self._digest.hexdigest())


def _record_write(path: object, mode: str, size_bytes: int, sha256_hex: str) -> None:
    fields = {
        "type": "file_write",
        "path": recorded_path(path),
        "mode": mode,
        "bytes": size_bytes,
        "sha256": f"sha256:{sha256_hex}",
    }
    value_of("files", Instant("state_mutation", fields), lambda: None)


def _path_open(original: Callable[..., object]) -> Callable[..., object]:
    def path_open(self: Path, mode: str = "r", *args: object, **options: object) -> object:
        is_agents = is_exchanged_in(sys._getframe(1).f_globals)  # noqa: SLF001 — a library may call it
        return (open if is_agents else original)(self, mode, *args, **options)

    return path_open


def _path_write(mode: str, kind: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    def wrap(original: Callable[..., int]) -> Callable[..., int]:
        def write(self: Path, data: Any, *args: Any, **options: Any) -> int:
            is_agents = is_exchanged_in(sys._getframe(1).f_globals)  # noqa: SLF001
            if not is_agents or not isinstance(data, kind):  # the real method raises the error
                return original(self, data, *args, **options)
            how = dict(zip(("encoding", "errors", "newline"), args, strict=False)) | options
            with open(self, mode, **how) as file:
                count: int = file.write(data)
                return count

        return write

    return wrap


def _keep_ours_real(set_up: Callable[..., object]) -> Callable[..., object]:
    """pyfakefs fakes files for every module but ours, so that what is recorded reaches the disk."""

    def set_up_elsewhere(patcher: Any, *args: object, **options: object) -> object:
        # An open run has loaded all that it needs.
        ours = {module for name, module in sys.modules.items() if name.partition(".")[0] == "reenact"}
        if not ours <= patcher.SKIPMODULES:
            patcher.SKIPMODULES.update(ours)
            patcher.clear_cache()  # of what it would fake in each module
        return set_up(patcher, *args, **options)

    return set_up_elsewhere


LIBRARIES: Final[Libraries] = {
    "pyfakefs.fake_filesystem_unittest": lambda module: [Patch(module.Patcher, "setUp", _keep_ours_real)]
}
PATCHES: Final = [
    Patch(Path, "open", _path_open),
    Patch(Path, "write_bytes", _path_write("wb", bytes | bytearray | memoryview)),
    Patch(Path, "write_text", _path_write("w", str)),
]
"""``Path`` is patched, not exchanged by name, because paths come from everywhere; the caller decides."""

STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {builtins: {"open": open}, io: {"open": open}}
