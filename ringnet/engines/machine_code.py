"""Loops as machine code: compiled once by Numba, kept as an object file, and loaded again without Numba.

Importing Numba takes longer than most runs; what it has made needs nothing of it. A loop allocates nothing, raises
nothing and calls nothing outside itself, so that its object file can be linked by LLVM's own loader.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import Array
from ringnet.errors import RingnetError

#: Takes the addresses of the arrays of floats, and of those of whole numbers, of as many tables as the function has in
#: its source; returns why it stops.
Advance: TypeAlias = Callable[..., int]


class CompiledLoop(NamedTuple):
    """What is compiled: a function of the last of some modules of a package, each after those that it calls."""

    package: str
    modules: tuple[str, ...]
    function: str

    @property
    def imported(self) -> list[ModuleType]:
        """The modules, as this process has them."""
        return [import_module(f"{self.package}.{name}") for name in self.modules]


#: Where what is compiled is kept, if that is said.
FOLDER_VARIABLE = "RINGNET_CACHE"
_MAKING = f"{__package__}.making"


@cache
def compiled(loop: CompiledLoop) -> Advance:
    """Return a loop as machine code for this processor.

    It is compiled if it has not been by this version on this kind of processor, which takes some seconds; where no
    folder can be written it is compiled in every process.
    """
    key = key_of(loop)
    name = f"{loop.modules[-1].rpartition('.')[2]}-{key}.bin"
    files = [folder / name for folder in _folders()]
    for file in files:
        try:
            return _load(file.read_bytes(), key)
        except (OSError, ValueError):
            continue
    # In a process of its own: Numba stays where it is needed, and leaves the optimisation to one pass at the end.
    what = [loop.package, loop.function, *loop.modules]
    # Without asserts and docstrings if this process has none: they belong to what is compared.
    optimise = [f"-{'O' * sys.flags.optimize}"] if sys.flags.optimize else []
    # Looking for modules where this one does: the user's folder may have a file of the name of any.
    make = f"import sys; sys.path[:] = {sys.path!r}; import runpy; runpy.run_module({_MAKING!r}, run_name='__main__')"
    command = [sys.executable, *optimise, "-c", make, *what]
    environment = {**os.environ, "NUMBA_OPT": "0", "NUMBA_DISABLE_JIT": "0"}
    import subprocess  # noqa: PLC0415 -- once for a version and a machine

    made = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True).stdout
    try:
        found = _load(made, key)
    except ValueError as error:
        raise RingnetError(
            "the files of ringnet are not those that this process has imported: they changed since; start it again"
        ) from error
    next((file for file in files if _keep(file, made)), None)
    return found


def _folders() -> list[Path]:
    """Return where what is compiled may be kept: beside the code, as Python does, or else in the user's cache."""
    if said := os.environ.get(FOLDER_VARIABLE):
        return [Path(said)]
    cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return [Path(__file__).parent / "__pycache__", Path(cache_home).expanduser() / "ringnet"]


def key_of(loop: CompiledLoop) -> str:
    """Name what the machine code depends on: the code and numbers as they were imported, Numba, and the processor.

    Not the files: who edits them while a process runs would have it load a loop for columns that it does not know.
    """
    from importlib.metadata import version  # noqa: PLC0415 -- only for such runs

    import llvmlite.binding as llvm  # noqa: PLC0415 -- only for such runs

    parts = [version("numba"), version("llvmlite"), llvm.get_default_triple(), llvm.get_host_cpu_name()]
    parts.append(llvm.get_host_cpu_features().flatten())
    for module in loop.imported:
        for name, value in vars(module).items():
            if isfunction(value) and value.__module__ == module.__name__:
                parts += [name, repr(value.__defaults__), *_code_parts(value.__code__)]
            elif isinstance(value, int | float | str | tuple | range) and not name.startswith("__"):
                parts += [name, repr(value)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _code_parts(code: CodeType) -> list[str]:
    """Return what a function does, in parts: no line numbers, no file, nothing that another process has otherwise."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    consts = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    own = [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames), *consts]
    return [*own, *(part for one in inner for part in _code_parts(one))]


def this_machine() -> Any:
    """Return LLVM's description of this processor."""
    import llvmlite.binding as llvm  # noqa: PLC0415 -- only for such runs

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, codemodel="jitdefault", jit=True
    )


def _load(made: bytes, key: str) -> Advance:
    """Load what was compiled; `ValueError` where the file is not whole, or was made of something else."""
    import llvmlite.binding as llvm  # noqa: PLC0415 -- only for such runs

    body = made[hashlib.sha256().digest_size :]
    if hashlib.sha256(body).digest() + body != made:
        raise ValueError("not a whole file of machine code")
    of, name, code = body.split(b"\n", 2)
    if of.decode() != key:
        raise ValueError(f"machine code of {of.decode()}, not of {key}")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), this_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    # Numba's own way to call: where the result goes, where an error would, and the arguments.
    call = ctypes.CFUNCTYPE(ctypes.c_int32)(engine.get_function_address(name.decode()))

    def advance(*tables: NDArray[np.uintp]) -> int:
        result, error = ctypes.c_int64(), ctypes.c_void_p()
        places = (ctypes.addressof(result), ctypes.addressof(error), *(table.ctypes.data for table in tables))
        if call(*map(ctypes.c_void_p, places)):
            raise AssertionError("a compiled loop raised")
        return result.value

    advance.engine = engine  # type: ignore[attr-defined]  # which keeps the code where it is
    return advance


def _keep(file: Path, made: bytes) -> bool:
    """Keep what was compiled, whole or not at all; return whether that went well."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(made)
        part.replace(file)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        return False
    return True


def addresses(arrays: Sequence[Array]) -> NDArray[np.uintp]:
    """Return where the data of some arrays is."""
    return np.array([array.ctypes.data for array in arrays], dtype=np.uintp)
