"""Token counts with the published vocabularies."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from .kernel import Compiled, Core, core_kernel, data_file, utf8

_O200K, _CL100K = "o200k_base", "cl100k_base"

# Prefix of a model's name, its encoding, and its tokens per token of the encoding (1: exact). The first
# prefix that no letter or digit follows wins. The gateway has the same table (src/engines/core/tokens-models.ts).
_MODELS: tuple[tuple[str, str, float], ...] = (
    ("gpt-4o", _O200K, 1),
    ("chatgpt-4o", _O200K, 1),
    ("gpt-4.1", _O200K, 1),
    ("gpt-4.5", _O200K, 1),
    ("gpt-5", _O200K, 1),
    ("gpt-oss", _O200K, 1),
    ("o1", _O200K, 1),
    ("o3", _O200K, 1),
    ("o4", _O200K, 1),
    ("codex-mini", _O200K, 1),
    ("gpt-4", _CL100K, 1),
    ("gpt-3.5", _CL100K, 1),
    ("gpt-35", _CL100K, 1),
    ("text-embedding-3", _CL100K, 1),
    ("text-embedding-ada-002", _CL100K, 1),
    ("davinci-002", _CL100K, 1),
    ("babbage-002", _CL100K, 1),
    ("claude", _O200K, 1.2),
    ("gemini", _O200K, 1.1),
    ("gemma", _O200K, 1.1),
)


def encoding_of(model: str) -> tuple[str, float]:
    """The encoding of a model, and its number of tokens per token of the encoding."""
    name = re.sub(r"^.*/", "", model.lower())
    name = re.sub(r"^(?:[a-z-]+\.)*anthropic\.", "", name.removeprefix("ft:"))
    for prefix, encoding, factor in _MODELS:
        if name.startswith(prefix) and not re.match(r"[a-z0-9]", name[len(prefix) :]):
            return encoding, factor
    return _O200K, 1.2


class Vocabulary(Compiled):
    """A vocabulary that the core has loaded. Takes 17 MB."""

    def __init__(self, encoding: str) -> None:
        def load(core: Core) -> int:
            file = data_file(f"{encoding}.tokens")
            block = core.block(len(file) + 16)
            core.write(block, file)
            try:
                return core.checked("loading a vocabulary", "tokens_load", block, len(file))
            finally:
                core.call("block_free", block)

        super().__init__(core_kernel, "tokens_free", load)

    def count(self, text: bytes) -> int:
        """The number of tokens of a text in UTF-8."""
        with self._kernel.lock:
            core, handle = self._ready()
            with core.scratch():
                address = core.put(text)
                return core.checked("counting tokens", "tokens_count", handle, address, len(text))

    def encode(self, text: bytes, limit: int) -> list[int]:
        """The ids of the first tokens of a text in UTF-8, at most `limit` of them."""
        with self._kernel.lock:
            core, handle = self._ready()
            with core.scratch():
                address, out = core.put(text), core.alloc(limit * 4 + 16)
                count = core.checked(
                    "encoding", "tokens_encode", handle, address, len(text), out, limit
                )
                return list(core.unpack(f"{min(count, limit)}I", out))


@cache
def vocabulary(encoding: str) -> Vocabulary:
    """The vocabulary of an encoding, which is loaded once."""
    return Vocabulary(encoding)


def count_tokens(text: str, model: str = "gpt-4o") -> int:
    """The number of tokens of a text; an estimate if the model's vocabulary is not published."""
    encoding, factor = encoding_of(model)
    return math.ceil(vocabulary(encoding).count(utf8(text)) * factor)


class TokenCounter:
    """Counts the tokens of messages: those of LangChain, or mappings with a ``content``.

    Can be passed as ``token_counter`` to LangChain's ``trim_messages``.
    """

    def __init__(self, model: str = "gpt-4o") -> None:
        self.model = model

    def __call__(self, messages: str | Iterable[Any]) -> int:
        if isinstance(messages, str):
            messages = [messages]
        # Chat formats add about three tokens to each message, and three to begin the answer.
        return 3 + sum(3 + self._count(each) for each in messages)

    def _count(self, message: Any) -> int:
        if isinstance(message, str):
            return count_tokens(message, self.model)
        if isinstance(message, Mapping):
            content, role = message.get("content"), message.get("role", "")
            calls = message.get("tool_calls")
        else:
            content, role = getattr(message, "content", None), getattr(message, "type", "")
            calls = getattr(message, "tool_calls", None)
        parts = [content] if isinstance(content, str) else content or []
        texts = [part if isinstance(part, str) else part.get("text", "") for part in parts]
        if calls:
            texts.append(json.dumps(calls, default=str))
        return sum(count_tokens(text, self.model) for text in (role, *texts))
