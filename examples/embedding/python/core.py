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
    def __init__(self, core: Core, pattern: str, flags: int = 0) -> None:
        self.core = core
        source = pattern.encode()
        with core.scratch():
            self.handle = core.check(core.call("regex_compile", core.put(source), len(source), flags))

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
    def __init__(self, core: Core, rules: list[dict]) -> None:
        """`rules`: a `builtin` (DETECT_*), a `pattern` or `words` each, and the `replacement` of its matches."""
        self.core = core
        self.set = core.check(core.call("mask_new"))
        for rule in rules:
            data = rule["replacement"].encode()
            with core.scratch():
                if "words" in rule:
                    words = "\n".join(rule["words"]).encode()
                    added = core.call("mask_add_words", self.set, core.put(words), len(words), core.put(data), len(data))
                elif "pattern" in rule:
                    regex = Regex(core, rule["pattern"])
                    added = core.call("mask_add", self.set, regex.handle, core.put(data), len(data))
                    # The set keeps it.
                    regex.free()
                else:
                    builtin = core.abi[rule["builtin"]]
                    added = core.call("mask_add_builtin", self.set, builtin, core.put(data), len(data))
            core.check(added)

    @property
    def hold(self) -> int:
        """Bytes that a stream holds back at most; -1 when there is no bound."""
        return self.core.call("mask_hold", self.set)

    def apply(self, text: bytes, cuts: list[int] | None = None) -> bytes:
        """Masks a text that arrives cut at `cuts`; what comes out does not depend on them."""
        core = self.core
        stream = core.check(core.call("stream_new", self.set))
        masked, start = b"", 0
        for end in [*(cuts or []), None]:
            piece = text[start:end]
            with core.scratch():
                pushed = core.call("stream_push", stream, core.put(piece), len(piece), int(end is None))
            out = core.call("stream_output", stream) & 0xFFFFFFFF
            masked += core.read(out, out + core.check(pushed))
            start = end
        core.call("stream_free", stream)
        return masked

    def free(self) -> None:
        self.core.call("mask_free", self.set)
