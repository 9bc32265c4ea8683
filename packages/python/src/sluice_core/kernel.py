"""Instances of the WebAssembly modules, their memory and their error codes."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from threading import RLock
from typing import Any

from wasmtime import Config, Engine, Func, Instance, Memory, Module, Store, Trap, WasmtimeError

from .calls import bind

_data = files(__package__) / "data"
_abi = json.loads((_data / "core.abi.json").read_text("utf-8"))

#: Constants of the ABI by name.
abi: dict[str, int] = {each["name"]: each["value"] for each in _abi["constants"]}
_code_names = {value: name for name, value in abi.items() if value < 0}
#: What is wrong with a pattern, by the code of the ABI.
pattern_messages: dict[int, str] = {
    each["value"]: each["meaning"]
    for each in _abi["constants"]
    if each["value"] < 0 and each["name"].startswith("REGEX_")
}


class CoreError(Exception):
    """The core refused a call. ``code`` is the number of the error, and ``name`` its name."""

    def __init__(self, code: int, action: str) -> None:
        self.code = code
        self.name = _code_names.get(code, f"code {code}")
        super().__init__(f"{action} failed: {self.name}")


def data_file(name: str) -> bytes:
    """A file that is delivered with the package."""
    return (_data / name).read_bytes()


def utf8(text: str) -> bytes:
    """The text in UTF-8. Surrogate pairs are joined; each lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


class Core:
    """One instance. Its methods must be called with the lock of its kernel."""

    def __init__(self, module: Module, engine: Engine) -> None:
        self.store = Store(engine)
        exports = Instance(self.store, module, []).exports(self.store)
        self._exports = exports
        self._functions: dict[str, Callable[..., Any]] = {}
        memory = exports["memory"]
        assert isinstance(memory, Memory)
        self._memory = memory
        self.has_trapped = False
        if self.call("abi_version") != _abi["version"]:
            raise RuntimeError("the module has another ABI version than this package")

    def call(self, name: str, *arguments: float) -> int:
        function = self._functions.get(name)
        if function is None:
            exported = self._exports[name]
            assert isinstance(exported, Func)
            function = self._functions[name] = bind(self.store, exported)
        try:
            result = function(*arguments)
        except (Trap, WasmtimeError):
            # The memory cannot be trusted any more. The next call gets a new instance.
            self.has_trapped = True
            raise
        return int(result) if result is not None else 0

    def checked(self, action: str, name: str, *arguments: float) -> int:
        """Calls a function whose result may be an error code."""
        result = self.call(name, *arguments)
        if result < 0:
            raise CoreError(result, action)
        return result

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Frees everything that is allocated inside."""
        mark = self.call("mark")
        try:
            yield
        finally:
            if not self.has_trapped:
                self.call("reset", mark)

    def alloc(self, size: int) -> int:
        address = self.call("alloc", size) & 0xFFFFFFFF
        if address == 0:
            raise MemoryError(f"the core has no room for {size} bytes")
        return address

    def put(self, data: bytes) -> int:
        """Copies bytes into scratch memory, followed by the bytes that the core may read beyond them."""
        address = self.alloc(len(data) + 16)
        self.write(address, data)
        return address

    def block(self, size: int) -> int:
        """Allocates memory that lives as long as the instance."""
        address = self.call("block_new", size) & 0xFFFFFFFF
        if address == 0:
            raise MemoryError(f"the core has no room for {size} bytes")
        return address

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(self._place(address, len(data)), data, len(data))

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(self._place(address, size), size)

    def _place(self, address: int, size: int) -> int:
        """Where bytes of the core's memory are in this process, until the memory grows."""
        if address + size > self._memory.data_len(self.store):
            raise IndexError("the core's memory ends before these bytes")
        return ctypes.addressof(self._memory.data_ptr(self.store).contents) + address

    def unpack(self, layout: str, address: int) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.read(address, struct.calcsize("<" + layout)))


class Kernel:
    """A module with one instance for all threads, which is created when it is first needed."""

    def __init__(self, file: str) -> None:
        self.lock = RLock()
        #: Handles whose owners were collected. Appending needs no lock.
        self.unused: deque[tuple[Core, str, int]] = deque()
        self._file = file
        self._module: tuple[Engine, Module] | None = None
        self._core: Core | None = None
        if hasattr(os, "register_at_fork"):
            # No other thread is inside a call when the process forks. Otherwise the child would get a lock that
            # no thread of it ever releases, and an instance in the middle of a call.
            os.register_at_fork(
                before=self.lock.acquire,
                after_in_parent=self.lock.release,
                after_in_child=self.lock.release,
            )

    def core(self) -> Core:
        """The instance; a new one after a trap. Frees what is not used any more."""
        while self.unused:
            core, function, handle = self.unused.popleft()
            if not core.has_trapped:
                core.call(function, handle)
        if self._core is None or self._core.has_trapped:
            if self._module is None:
                engine = Engine(_config())
                self._module = engine, Module(engine, data_file(self._file))
            engine, module = self._module
            self._core = Core(module, engine)
        return self._core


def _config() -> Config:
    """Compiles without a pool of threads: a forked child would wait for threads that it does not have."""
    config = Config()
    config.parallel_compilation = False
    return config


#: Patterns, masks, tokens, rate limits and routes.
core_kernel = Kernel("core.wasm")
#: Masks, and texts of messages to language models.
texts_kernel = Kernel("core-texts.wasm")


class Compiled:
    """Something that the core keeps under a handle. It is compiled again after a trap."""

    def __init__(self, kernel: Kernel, free: str, compile: Callable[[Core], int]) -> None:
        self._kernel = kernel
        self._free = free
        self._compile = compile
        self._core: Core | None = None
        self._handle = 0
        with kernel.lock:
            self._ready()

    def _ready(self) -> tuple[Core, int]:
        core = self._kernel.core()
        if core is not self._core:
            self._handle = self._compile(core)
            self._core = core
            free_later(self, self._kernel, core, self._free, self._handle)
        return core, self._handle


def free_later(owner: object, kernel: Kernel, core: Core, function: str, handle: int) -> None:
    """Frees a handle when its owner has been collected, at the next call of the kernel.

    Collections happen anywhere, also while a thread holds the lock of another kernel. They must not wait for a lock.
    """
    finalizer = weakref.finalize(owner, kernel.unused.append, (core, function, handle))
    finalizer.atexit = False
