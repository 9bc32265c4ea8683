"""Calls of exported functions.

``wasmtime.Func`` reads the types of a function at every call, which takes longer than most functions of the core. Here
they are read once. This needs undocumented parts of the package ``wasmtime``. If a version does not have them, calls go
through ``wasmtime.Func``.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import POINTER, byref
from typing import Any

from wasmtime import Func, Store, Trap, WasmtimeError

#: The types of numbers, in the order of the numbers that wasmtime has for them.
_KINDS = ("i32", "i64", "f32", "f64")


def bind(store: Store, function: Func) -> Callable[..., Any]:
    """Returns a callable that runs the function in the store."""
    try:
        return _bind_types(store, function)
    except Exception:
        return lambda *arguments: function(store, *arguments)


def _bind_types(store: Store, function: Func) -> Callable[..., Any]:
    from wasmtime import _ffi as ffi

    types = function.type(store)
    parameters = [str(each) for each in types.params]
    template = (ffi.wasmtime_val_t * len(parameters))()
    for value, kind in zip(template, parameters, strict=True):
        value.kind = _KINDS.index(kind)
    make_values = type(template).from_buffer_copy
    results = [str(each) for each in types.results]
    if len(results) > 1:
        raise TypeError("a function with more than one result is called through wasmtime.Func")
    context, address = store._context(), byref(function._func)
    call, Result, TrapPointer = ffi.wasmtime_func_call, ffi.wasmtime_val_t, POINTER(ffi.wasm_trap_t)
    make_error, make_trap = WasmtimeError._from_ptr, Trap._from_ptr

    def run(*arguments: float) -> Any:
        # Not shared between calls: a finalizer may call the same function in between.
        values, returned, trap = make_values(template), Result(), TrapPointer()
        for value, kind, argument in zip(values, parameters, arguments, strict=True):
            setattr(value.of, kind, argument)
        error = call(
            context, address, values, len(values), byref(returned), len(results), byref(trap)
        )
        if error:
            raise make_error(error)
        if trap:
            raise make_trap(trap)
        return getattr(returned.of, results[0]) if results else None

    return run
