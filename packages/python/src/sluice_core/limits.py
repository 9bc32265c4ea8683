"""Rate limits by requests or tokens."""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from .kernel import Compiled, Core, CoreError, abi, core_kernel, utf8


_MAX_KEY_BYTES = 256
#: First byte of a digest. UTF-8 never begins with it, so no digest equals the bytes of a key.
_DIGEST_MARK = b"\xff"
#: The core cannot count a refill of one unit that takes longer.
_MAX_PERIOD = 36 * 365 * 86_400_000.0


@dataclass(frozen=True)
class RateLimit:
    """What a limiter decided. Times are in seconds."""

    allowed: bool
    #: When the request can be repeated; infinite if the bucket can never hold the amount.
    wait: float
    #: Units that are left.
    remaining: float
    #: When the bucket is full again.
    reset: float

    def __bool__(self) -> bool:
        return self.allowed


class RateLimiter(Compiled):
    """Buckets of ``rate + burst`` units, one for each key, which refill evenly by ``rate`` in ``per`` seconds.

    Holds about ``keys`` buckets. Keys may have any length. ``clock`` returns seconds, and must never
    go back.
    """

    def __init__(
        self,
        rate: float,
        *,
        per: float = 1,
        burst: float = 0,
        keys: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (rate > 0 and per > 0 and burst >= 0 and keys > 0 and math.isfinite(rate + per + burst + keys)):
            raise ValueError("rate, per and keys must be positive, burst must not be negative, and all must be finite")
        self._period = float(per * 1000 / rate)
        if not 0 < self._period <= _MAX_PERIOD:
            raise ValueError("per / rate, the time in which one unit returns, must be at most 36 years")
        self._capacity = float(rate + burst)
        self._clock = clock
        # 32 buckets in a group; half of them stay free, so that groups of unequal size have room.
        groups = min(65_536, 1 << max(0, (keys * 2 - 1) // 32).bit_length())

        def create(core: Core) -> int:
            table = core.block(core.checked("creating a limiter", "rate_size", groups, _MAX_KEY_BYTES))
            with core.scratch():
                secret = core.put(secrets.token_bytes(16))
                shape = (groups, _MAX_KEY_BYTES, secret)
                core.checked("creating a limiter", "rate_format", table, *shape)
            return table

        super().__init__(core_kernel, "block_free", create)

    def take(self, key: str = "", amount: float = 1) -> RateLimit:
        """Takes units if the bucket has them. A full table allows nothing new."""
        return self._call("rate_take", key, amount)

    def peek(self, key: str = "", amount: float = 1) -> RateLimit:
        """What ``take`` would answer."""
        return self._call("rate_peek", key, amount)

    def charge(self, amount: float, key: str = "") -> RateLimit:
        """Takes units after the fact; the balance may become negative. A negative amount gives units back."""
        return self._call("rate_charge", key, amount)

    def _call(self, function: str, key: str, amount: float) -> RateLimit:
        data = _key_bytes(key)
        now = self._clock() * 1000
        with self._kernel.lock:
            core, table = self._ready()
            with core.scratch():
                address, out = core.put(data), core.alloc(abi["RATE_SIZE"])
                demand = (self._period, self._capacity, float(amount), now)
                answer = core.call(function, table, 1, address, len(data), *demand, out)
                if answer == abi["RATE_FULL"]:
                    return RateLimit(False, self._period / 1000, 0, 0)
                if answer < 0:
                    raise CoreError(answer, "limiting")
                wait, remaining, reset = core.unpack("3d", out)
        return RateLimit(answer == 1, wait / 1000, remaining, reset / 1000)


def _key_bytes(key: str) -> bytes:
    """The key in UTF-8, or its digest if it is longer than the table allows."""
    data = utf8(key)
    if len(data) <= _MAX_KEY_BYTES:
        return data
    return _DIGEST_MARK + hashlib.sha256(data).digest()
