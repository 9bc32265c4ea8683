"""Guards of the texts in messages to language models and in their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .kernel import Compiled, Core, CoreError, abi, free_later, texts_kernel, utf8
from .masks import RuleLike, checked_rules, compile_rules

Format = Literal["Completions", "Messages", "Responses", "Embeddings"]
Kind = Literal["request", "answer", "stream"]

#: Maximum number of bytes of a document, or of an event of a stream.
DEFAULT_LIMIT = 32 * 1024 * 1024


class GuardsError(Exception):
    """A message cannot be judged, so it must not pass."""


@dataclass(frozen=True)
class Guard:
    """Rules that are applied together. A match is masked, or rejects the message if ``rejects`` is set."""

    rules: Sequence[RuleLike]
    rejects: bool = False


@dataclass(frozen=True)
class MessageDetails:
    """What is known of a message so far. Numbers are None if the message has not reported them."""

    input_tokens: int | None
    output_tokens: int | None
    model: str | None
    is_stream: bool
    #: Index of the first guard that rejects the message.
    rejected_by: int | None


class Guards(Compiled):
    """Guards in order; each sees the texts as the guards before it leave them."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        # A copy of the rules, which are compiled again after a trap.
        self.guards = tuple(Guard(checked_rules(each.rules), each.rejects) for each in guards)
        super().__init__(texts_kernel, "guards_free", self._compile_guards)

    def _compile_guards(self, core: Core) -> int:
        chain = core.checked("creating guards", "guards_new")
        for guard in self.guards:
            mask = compile_rules(core, guard.rules)
            core.checked("adding a guard", "guards_add", chain, mask, int(guard.rejects))
            # The chain has its own reference to the mask.
            core.call("mask_free", mask)
        return chain

    def rewriter(self, format: Format, kind: Kind, *, limit: int = DEFAULT_LIMIT) -> Rewriter:
        """A rewriter of one message."""
        return Rewriter(self, format, kind, limit)

    def rewrite(self, format: Format, kind: Kind, message: bytes) -> bytes:
        """Masks the texts of a whole message.

        Raises GuardsError if the message cannot be read, or if a guard rejects it.
        """
        rewriter = self.rewriter(format, kind)
        masked = rewriter.end(message)
        rejected = rewriter.details.rejected_by
        if rejected is not None:
            raise GuardsError(f"guard {rejected} rejects the {kind}")
        return masked


class Rewriter:
    """Rewrites one message, which may arrive in pieces. After an error, the rest of it must not pass."""

    def __init__(self, guards: Guards, format: Format, kind: Kind, limit: int) -> None:
        self._guards = guards
        self._kernel = guards._kernel
        self._kind = kind
        with self._kernel.lock:
            self._core, chain = guards._ready()
            self._handle = self._core.checked(
                "creating a rewriter",
                "texts_new",
                chain,
                abi[f"TEXTS_{format.upper()}"],
                abi[f"TEXTS_{kind.upper()}"],
                limit,
            )
            free_later(self, self._kernel, self._core, "texts_free", self._handle)

    def push(self, piece: bytes) -> bytes:
        """Adds bytes of the message. Returns what is ready."""
        return self._push(piece, False)

    def end(self, piece: bytes = b"") -> bytes:
        """Adds the last bytes. Returns everything that remains."""
        return self._push(piece, True)

    def fail(self, status: int, message: str) -> bytes:
        """Ends the message with an error in its format, after the events that were ready before."""
        data = utf8(message)
        core = self._core
        with self._kernel.lock:
            with core.scratch():
                address = core.put(data)
                size = core.checked(
                    "writing an error", "texts_fail", self._handle, status, address, len(data)
                )
            return self._output(size)

    @property
    def details(self) -> MessageDetails:
        core = self._core
        with self._kernel.lock, core.scratch():
            record = core.alloc(abi["TEXTS_RECORD_SIZE"])
            core.checked("reading details", "texts_record", self._handle, record)
            (given, answered) = core.unpack("2d", record + abi["TEXTS_INPUT_TOKENS"])
            flags, rejected = core.unpack("2i", record + abi["TEXTS_FLAGS"])
            start, end = core.unpack("2I", record + abi["TEXTS_MODEL"])
            model = core.read(start, end - start).decode("utf-8", "replace") if end > start else None
        return MessageDetails(
            input_tokens=int(given) if flags & abi["TEXTS_HAS_INPUT"] else None,
            output_tokens=int(answered) if flags & abi["TEXTS_HAS_OUTPUT"] else None,
            model=model,
            is_stream=bool(flags & abi["TEXTS_IS_STREAM"]),
            rejected_by=None if rejected < 0 else rejected,
        )

    def _push(self, piece: bytes, is_end: bool) -> bytes:
        core = self._core
        with self._kernel.lock:
            if core.has_trapped:
                raise GuardsError("the core has failed; the message cannot be judged")
            try:
                with core.scratch():
                    address = core.put(piece)
                    size = core.checked(
                        "rewriting", "texts_push", self._handle, address, len(piece), int(is_end)
                    )
            except CoreError as error:
                raise GuardsError(f"the {self._kind} cannot be read: {error.name}") from error
            return self._output(size)

    def _output(self, size: int) -> bytes:
        return self._core.read(self._core.call("texts_output", self._handle) & 0xFFFFFFFF, size)
