"""`dataclass` as the standard library's, its methods compiled when a class is first used and not when it is imported.

A command imports some 180 such classes and makes instances of a quarter of them; to compile the methods of all takes a
sixth of the time of ``ringnet check``.
"""

from __future__ import annotations

import dataclasses
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 -- type checkers know the standard one by its name
else:

    def dataclass(cls=None, /, **options):
        """Do what `dataclasses.dataclass` does, as soon as anything is asked for that it makes."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if options.get("slots"):  # which takes another class
            return dataclasses.dataclass(cls, **options)
        for name in _MADE:
            if vars(cls).get(name) is None:  # as the hash of a class is that says itself what equals what
                setattr(cls, name, _Unmade(cls, name, options))
        return cls


#: What the standard library may add to a class.
_MADE = {f"__{name}__" for name in ("init", "repr", "eq", "hash", "setattr", "delattr", "match_args")} | {
    "__dataclass_fields__",
    "__dataclass_params__",
}
# Of the first use of two classes in two threads: a class makes its bases on the way.
_LOCK = RLock()


class _Unmade:
    """What stands in a class for one name that the standard library may add, until one of them is looked for."""

    def __init__(self, cls: type, name: str, options: dict[str, Any]) -> None:
        self._cls, self._name, self._options = cls, name, options

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        with _LOCK:
            if vars(self._cls).get(self._name) is self:
                _make(self._cls, self._options)
        # Not of `owner`: a method of its own calls what it overrides by `super`.
        found = getattr(self._cls, self._name)
        return found if instance is None or not callable(found) else found.__get__(instance, owner)


def _make(cls: type, options: dict[str, Any]) -> None:
    """Add to a class what the standard library does; other threads find each name at every moment."""
    alone = {"__dict__", "__weakref__"}  # which Python gives to each class
    own = {name: value for name, value in vars(cls).items() if name not in alone and not isinstance(value, _Unmade)}
    # The standard library adds no name that a class has already: it is given a twin, and the class what that gets.
    twin = type(cls)(cls.__name__, cls.__bases__, own | {"__qualname__": cls.__qualname__})
    dataclasses.dataclass(**options)(twin)
    for name, value in list(vars(cls).items()):
        if name not in vars(twin):
            delattr(cls, name)
        elif isinstance(value, _Unmade | dataclasses.Field):
            made = vars(twin)[name]
            for cell in getattr(made, "__closure__", None) or ():
                if cell.cell_contents is twin:
                    cell.cell_contents = cls
            setattr(cls, name, made)
    cls.__doc__ = twin.__doc__
