"""Objects that stand for others: a module with some names exchanged, a class that means the real one."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final


class StandIn(ModuleType):
    """A module as the agent's own modules see it: *names* are seams, everything else is the real module's.

    What is set on it is set on the real module.
    """

    def __init__(self, real: ModuleType) -> None:
        super().__init__(real.__name__, real.__doc__)
        public = [name for name in vars(real) if not name.startswith("_")]
        vars(self).update(__spec__=real.__spec__, __all__=getattr(real, "__all__", public))
        vars(self).update(_real=real, _originals={})

    def exchange(self, name: str, original: Any, standing: Any) -> None:
        """Let *name* be *standing* instead of the real module's *original*."""
        self._originals[name] = original
        vars(self)[name] = standing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Who saves a name, replaces it and puts it back would otherwise leave ours in the real module.
        is_put_back = name in self._originals and value is vars(self)[name]
        setattr(self._real, name, self._originals[name] if is_put_back else value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real, name)

    def __dir__(self) -> list[str]:
        return dir(self._real)

    def __repr__(self) -> str:
        return repr(self._real)


REAL: Final = "__supertype__"
"""Holds the real class in one that stands for it; libraries look through it, as with a ``NewType``."""


class Standing(type):
    """The class of classes that stand for real ones: equal to them, and their instances are its own."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, vars(cls)[REAL])
            if REAL in vars(cls)
            else super().__instancecheck__(instance)
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return (
            issubclass(subclass, vars(cls)[REAL])
            if REAL in vars(cls)
            else super().__subclasscheck__(subclass)
        )

    def __eq__(cls, other: object) -> bool:
        return cls is other or (REAL in vars(cls) and vars(cls)[REAL] is other)

    def __hash__(cls) -> int:
        return hash(vars(cls)[REAL]) if REAL in vars(cls) else super().__hash__()

    def __repr__(cls) -> str:
        return repr(vars(cls)[REAL]) if REAL in vars(cls) else super().__repr__()
