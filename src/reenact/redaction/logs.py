"""reenact's own log output, redacted like everything else."""

from __future__ import annotations

import logging

from reenact.redaction.redactor import Redactor


class RedactingFilter(logging.Filter):
    """Redacts message, traceback and stack of every record that passes.

    Add it to handlers: the filters of a logger do not see the records of its children.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redact = redactor.redact_text

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets every record pass, changed for all handlers that come after."""
        record.msg, record.args = self._redact(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text, record.exc_info = self._redact(record.exc_text), None
        if record.stack_info:
            record.stack_info = self._redact(record.stack_info)
        return True
