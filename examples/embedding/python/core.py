"""core.wasm in Python: linear memory, codes and offsets, with the wasmtime package alone."""

import json
import struct
from contextlib import contextmanager

from wasmtime import Engine, Instance, Module, Store


class CoreError(Exception):
    def __init__(self, code: int, offset: int) -> None:
        super().__init__(f"code {code} at {offset}")
        self.code = code
        self.offset = offset


class Core:
    def __init__(self, wasm: str, abi: str) -> None:
        with open(abi, encoding="utf-8") as file:
            described = json.load(file)
        self.abi = {each["name"]: each["value"] for each in described["constants"]}
        engine = Engine()
        self.store = Store(engine)
        exports = Instance(self.store, Module.from_file(engine, wasm), []).exports(self.store)
        self.exports = exports
        self.memory = exports["memory"]
        if self.call("abi_version") != described["version"]:
            raise RuntimeError("core.wasm has another ABI version")

    def call(self, name: str, *arguments: float) -> int:
        return self.exports[name](self.store, *arguments)

    def check(self, result: int) -> int:
        """A result that may be a code."""
        if result < 0:
            raise CoreError(result, self.call("last_error_offset"))
        return result

    @contextmanager
    def scratch(self):
        """What is allocated inside is given back in one step."""
        place = self.call("mark")
        try:
            yield
        finally:
            self.call("reset", place)

    def alloc(self, size: int) -> int:
        address = self.call("alloc", size) & 0xFFFFFFFF
        if address == 0:
            raise MemoryError(f"no room for {size} bytes")
        return address

    def put(self, data: bytes) -> int:
        address = self.alloc(len(data) + 16)
        self.write(address, data)
        return address

    def write(self, address: int, data: bytes) -> None:
        self.memory.write(self.store, data, address)

    def read(self, start: int, end: int) -> bytes:
        return bytes(self.memory.read(self.store, start, end))

    def unpack(self, layout: str, address: int) -> tuple:
        return struct.unpack("<" + layout, self.read(address, address + struct.calcsize("<" + layout)))


class Regex:
    def __init__(self, core: Core, pattern: str) -> None:
        self.core = core
        source = pattern.encode()
        with core.scratch():
            self.handle = core.check(core.call("regex_compile", core.put(source), len(source), 0))

    def find_all(self, text: bytes, limit: int = 1024) -> list[list[int]]:
        """All matches, as [start, end] in bytes."""
        core = self.core
        with core.scratch():
            out = core.alloc(limit * 8)
            found = core.call("regex_find_all", self.handle, core.put(text), len(text), 0, out, limit)
            words = core.unpack(f"{core.check(found) * 2}I", out)
        return [list(pair) for pair in zip(words[::2], words[1::2])]

    def is_match(self, text: bytes, whole: bool = False) -> bool:
        core = self.core
        name = "regex_full_match" if whole else "regex_is_match"
        with core.scratch():
            return core.check(core.call(name, self.handle, core.put(text), len(text))) == 1

    def free(self) -> None:
        self.core.call("regex_free", self.handle)


class Mask:
    def __init__(self, core: Core, builtins: dict[str, str]) -> None:
        """`builtins`: DETECT_* and what replaces its matches."""
        self.core = core
        self.set = core.check(core.call("mask_new"))
        for name, replacement in builtins.items():
            data = replacement.encode()
            with core.scratch():
                added = core.call("mask_add_builtin", self.set, core.abi[name], core.put(data), len(data))
                core.check(added)

    def apply(self, *pieces: bytes) -> str:
        """Masks a text that arrives in pieces."""
        core = self.core
        stream = core.check(core.call("stream_new", self.set))
        masked = b""
        for index, piece in enumerate(pieces):
            is_end = int(index == len(pieces) - 1)
            with core.scratch():
                pushed = core.call("stream_push", stream, core.put(piece), len(piece), is_end)
            start = core.call("stream_output", stream) & 0xFFFFFFFF
            masked += core.read(start, start + core.check(pushed))
        core.call("stream_free", stream)
        return masked.decode()

    def free(self) -> None:
        self.core.call("mask_free", self.set)
