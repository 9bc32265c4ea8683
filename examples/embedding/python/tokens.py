"""Token counts: a vocabulary goes in once, decompressed; then texts."""

from core import Core


class Vocabulary:
    def __init__(self, core: Core, file: bytes) -> None:
        """`file`: what NAME.tokens.br holds when brotli has been taken off it."""
        self.core = core
        # A block, not scratch: what is loaded takes 17 MB, which should not lie behind the file's own.
        block = core.call("block_new", len(file) + 16) & 0xFFFFFFFF
        if block == 0:
            raise MemoryError("no room for the vocabulary")
        core.write(block, file)
        handle = core.call("tokens_load", block, len(file))
        core.call("block_free", block)
        self.handle = core.check(handle)

    def count(self, text: bytes) -> int:
        core = self.core
        with core.scratch():
            return core.check(core.call("tokens_count", self.handle, core.put(text), len(text)))

    def encode(self, text: bytes, limit: int) -> list[int]:
        """The ids of the first `limit` tokens."""
        core = self.core
        with core.scratch():
            address, out = core.put(text), core.alloc(limit * 4 + 16)
            count = core.call("tokens_encode", self.handle, address, len(text), out, limit)
            return list(core.unpack(f"{min(core.check(count), limit)}I", out))

    def free(self) -> None:
        self.core.call("tokens_free", self.handle)
