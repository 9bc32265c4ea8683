"""The part of wasmtime's interface that the case programs for Python use, over the C library that SLUICE_LIBRARY names."""

import ctypes
import json
import os
from typing import Any

_library = ctypes.CDLL(os.environ["SLUICE_LIBRARY"])
_types = {"i32": ctypes.c_int32, "address": ctypes.c_int32, "f64": ctypes.c_double, "void": None}
_library.sluice_open.restype = ctypes.c_void_p
_library.sluice_memory.restype = ctypes.POINTER(ctypes.c_ubyte)
_library.sluice_memory.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t]
_library.sluice_has_trapped.argtypes = [ctypes.c_void_p]
_library.sluice_has_trapped.restype = ctypes.c_bool

with open(os.environ["SLUICE_ABI"], encoding="utf-8") as _file:
    _abi = json.load(_file)
for _each in [*_abi["exports"], *_abi["texts"]["described"]]:
    _function = getattr(_library, "sluice_" + _each["name"])
    _function.restype = _types[_each["result"]]
    _function.argtypes = [ctypes.c_void_p, *(_types[one["type"]] for one in _each["parameters"])]


class Trap(Exception):
    pass


class WasmtimeError(Exception):
    pass


class Config:
    """Takes any setting: nothing is compiled here."""


class Engine:
    def __init__(self, config: Config | None = None) -> None:
        pass


class Store:
    def __init__(self, engine: Engine) -> None:
        self.core = 0


class Module:
    """Only which of the two modules it is matters: both are compiled into the library."""

    def __init__(self, engine: Engine, data: bytes) -> None:
        self.is_texts = b"texts_new" in data

    @classmethod
    def from_file(cls, engine: Engine, path: str) -> "Module":
        with open(path, "rb") as file:
            return cls(engine, file.read())


class Func:
    def __init__(self, name: str) -> None:
        self._call = getattr(_library, "sluice_" + name)

    def __call__(self, store: Store, *arguments: float) -> Any:
        result = self._call(store.core, *arguments)
        if _library.sluice_has_trapped(store.core) or result == -(2**31):
            raise Trap
        return result


class Memory:
    def __init__(self) -> None:
        self._length = 0

    def data_ptr(self, store: Store) -> Any:
        return _library.sluice_memory(store.core, 0, 0)

    def data_len(self, store: Store) -> int:
        # A memory only grows.
        while _library.sluice_memory(store.core, self._length, 1 << 16):
            self._length += 1 << 16
        return self._length

    def write(self, store: Store, data: bytes, start: int) -> None:
        ctypes.memmove(self._at(store, start, len(data)), data, len(data))

    def read(self, store: Store, start: int, end: int) -> bytes:
        return ctypes.string_at(self._at(store, start, end - start), end - start)

    def _at(self, store: Store, start: int, length: int) -> Any:
        pointer = _library.sluice_memory(store.core, start, length)
        if not pointer:
            raise Trap
        return pointer


class Instance:
    def __init__(self, store: Store, module: Module, imports: list[object]) -> None:
        store.core = _library.sluice_open(int(module.is_texts))

    def exports(self, store: Store) -> "Instance":
        return self

    def __getitem__(self, name: str) -> Func | Memory:
        return Memory() if name == "memory" else Func(name)
