"""A filter of the logging module that masks records."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .masks import Mask, RuleLike

#: Attributes that every record has. Others are the `extra` values of a call.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class MaskFilter(logging.Filter):
    """Masks the message of each record, its arguments included, the text of its exception, and texts in ``extra``.

    Values in ``extra`` that are not strings stay as they are. Add the filter to a handler: filters of a logger do
    not see the records of loggers below it.
    """

    def __init__(self, mask: Mask | Sequence[RuleLike]) -> None:
        super().__init__()
        self._mask = mask if isinstance(mask, Mask) else Mask(mask)
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = self._mask(_message_of(record))
        record.args = None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:
            # Formatters use the text if there is one.
            record.exc_text = self._mask(record.exc_text)
        if record.stack_info:
            record.stack_info = self._mask(record.stack_info)
        for name, value in record.__dict__.items():
            if name not in _STANDARD and isinstance(value, str):
                record.__dict__[name] = self._mask(value)
        return True


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        # The arguments do not fit the message. A logging call must not raise because of that.
        return f"{record.msg} {record.args}"
