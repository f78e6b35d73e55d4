"""Stand-ins: modules with some names exchanged, and a metaclass for classes that stand for real ones.

They are pickled by the names of what they stand for: another process, which may not have reenact, gets that.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from reenact.seams.patches import ModuleByName
from reenact.seams.stdlib.sources import is_genuine

_own: Final[Callable[[ModuleType], dict[str, object]]] = vars(ModuleType)["__dict__"].__get__
"""The namespace of a stand-in itself."""


class StandIn(ModuleType):
    """A module as the agent's modules see it: exchanged names are seams, all others are the real module's.

    Setting a name on it sets it on the real module. Its ``__dict__`` is the real module's, where pytest and
    ``unittest.mock`` look up what they put back after a test.
    """

    def __init__(self, real: ModuleType) -> None:
        super().__init__(real.__name__, real.__doc__)
        public = [name for name in vars(real) if not name.startswith("_")]
        _own(self).update(__spec__=real.__spec__, __all__=getattr(real, "__all__", public))
        _own(self).update(_real=real, _originals={}, _giving_way={})

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        names: dict[str, object] = vars(self._real)
        return names

    def exchange(self, name: str, original: object, standing: object, *, gives_way: bool) -> None:
        """Let *name* be *standing* instead of the real module's *original*.

        If it *gives_way*, only while the real module still has its original, which tests may replace.
        """
        self._originals[name] = original
        (self._giving_way if gives_way else _own(self))[name] = standing

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name in self._giving_way and is_genuine(found, self._originals[name]):
            return self._giving_way[name]
        return found

    def __setattr__(self, name: str, value: object) -> None:
        # Code that saves a name, replaces it and restores it would otherwise put our stand-in there.
        ours = self._giving_way.get(name, _own(self).get(name))
        is_put_back = name in self._originals and value is ours
        setattr(self._real, name, self._originals[name] if is_put_back else value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real, name)

    def __dir__(self) -> list[str]:
        return dir(self._real)

    def __repr__(self) -> str:
        return repr(self._real)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return import_module, (self.__name__,)


REAL: Final = "__supertype__"
"""The attribute with the real class of a stand-in; libraries follow it, as for a ``NewType``."""


class StandInMeta(type):
    """The metaclass of classes that stand for real ones: equal to them, with the same instances.

    A subclass of such a class is an ordinary class.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> None:
        super().__init__(name, bases, members)
        if REAL in members:
            for known_by in ("__name__", "__qualname__", "__module__", "__doc__"):
                setattr(cls, known_by, getattr(members[REAL], known_by))

    def __instancecheck__(cls, instance: object) -> bool:
        real = vars(cls).get(REAL)
        return super().__instancecheck__(instance) if real is None else isinstance(instance, real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = vars(cls).get(REAL)
        return super().__subclasscheck__(subclass) if real is None else issubclass(subclass, real)

    def __eq__(cls, other: object) -> bool:
        return cls is other or (other is not None and vars(cls).get(REAL) is other)

    def __hash__(cls) -> int:
        real = vars(cls).get(REAL)
        return super().__hash__() if real is None else hash(real)

    def __get_pydantic_core_schema__(cls, kind: object, handler: Callable[[object], object]) -> object:
        """For pydantic: validate as for the real class."""
        return handler(vars(cls).get(REAL, kind))


def reduce_class(cls: Any) -> str | tuple[Callable[..., Any], tuple[ModuleByName, str]]:
    """For pickle: a class that stands for a real one by the name of that, a subclass by its own name."""
    real = vars(cls).get(REAL)
    return cls.__qualname__ if real is None else (getattr, (ModuleByName(real.__module__), real.__name__))


copyreg.pickle(StandInMeta, reduce_class)
