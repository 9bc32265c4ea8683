"""A filter of the logging module that masks records."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .masks import Mask, RuleLike


class MaskFilter(logging.Filter):
    """Masks the message of each record, its arguments included, and the text of its exception.

    Add it to a handler: filters of a logger do not see the records of loggers below it.
    """

    def __init__(self, mask: Mask | Sequence[RuleLike]) -> None:
        super().__init__()
        self._mask = mask if isinstance(mask, Mask) else Mask(mask)
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = self._mask(record.getMessage())
        record.args = None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:
            # Formatters use the text if there is one.
            record.exc_text = self._mask(record.exc_text)
        if record.stack_info:
            record.stack_info = self._mask(record.stack_info)
        return True
