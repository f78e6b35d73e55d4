"""What is known of each id in a source, in the same memory for a source of any size.

The latest ids are in a dict. Older ones are in a temporary database of SQLite, which is deleted when it is
closed. It has hashes of the ids alone, so that no text of the source reaches the disk.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from reenact.errors import StoreError

_MOST_IN_MEMORY: Final = 50_000
_FILTER_BITS: Final = 1 << 25
"""4 MB; of a million older ids, 3 % of the new ids are looked up in vain."""


class KnownIds:
    """A text for each id."""

    def __init__(self) -> None:
        self._latest: dict[int, str] = {}
        self._older: sqlite3.Connection | None = None
        self._filter = bytearray()
        """One bit for the hash of each older id: most ids are new, and then the database is not asked."""

    def __setitem__(self, own_id: str, value: str) -> None:
        self._latest[hash(own_id)] = value
        if len(self._latest) >= _MOST_IN_MEMORY:
            self._move_to_database()

    def get(self, own_id: str) -> str | None:
        """The text for this id; ``None`` if the id is not known."""
        key = hash(own_id)
        found = self._latest.get(key)
        if found is not None or self._older is None:
            return found
        bit = key % _FILTER_BITS
        if not self._filter[bit >> 3] >> (bit & 7) & 1:
            return None
        row = self._older.execute("SELECT value FROM known WHERE id = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def __contains__(self, own_id: str) -> bool:
        return self.get(own_id) is not None

    def _move_to_database(self) -> None:
        moved, self._latest = self._latest, {}
        try:
            if self._older is None:
                self._older = sqlite3.connect("", isolation_level=None)
                self._older.execute("PRAGMA journal_mode = OFF")
                self._older.execute("CREATE TABLE known (id INTEGER PRIMARY KEY, value TEXT)")
                self._filter = bytearray(_FILTER_BITS >> 3)
            self._older.execute("BEGIN")
            self._older.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", sorted(moved.items()))
            self._older.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"no room for temporary files: {error}") from error
        for key in moved:
            bit = key % _FILTER_BITS
            self._filter[bit >> 3] |= 1 << (bit & 7)
