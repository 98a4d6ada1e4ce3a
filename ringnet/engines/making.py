"""Numba compiles a loop: ``python -m ringnet.engines.making PACKAGE FUNCTION MODULES`` writes it to stdout."""

from __future__ import annotations

import hashlib
import re
import sys
from inspect import isfunction
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.extending import register_jitable

from ringnet.engines.machine_code import CompiledLoop, key_of, this_machine

#: Without the wrappers by which Python would call it, which need Numba itself.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def make(package: str, function: str, *names: str) -> bytes:
    """Compile a function; return a file of it: a checksum, what it was made of, its name there, and the object file."""
    loop = CompiledLoop(package, names, function)
    key, modules = key_of(loop), loop.imported
    for module in modules:
        for one in vars(module).values():
            if isfunction(one) and one.__module__ == module.__name__:
                register_jitable(**OPTIONS)(one)
    types: Any = numba.types
    python = getattr(modules[-1], function)
    tables = [types.CPointer(types.CPointer(kind)) for kind in (types.float64, types.int64)]
    done = numba.njit(types.int64(*tables * (python.__code__.co_argcount // len(tables))), **OPTIONS)(python)
    (text,) = done.inspect_llvm().values()
    found = re.search(r"^define [^@\n]*@([\w.$]+)", text, re.MULTILINE)
    if found is None or re.search(r"^declare (?!.*@llvm\.)", text, re.MULTILINE):
        raise AssertionError("the loop calls something that its object file does not hold")
    machine, parsed = this_machine(), llvm.parse_assembly(text)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(parsed, builder)
    body: bytes = f"{key}\n{found[1]}\n".encode() + machine.emit_object(parsed)
    return hashlib.sha256(body).digest() + body


if __name__ == "__main__":
    sys.stdout.buffer.write(make(*sys.argv[1:]))
