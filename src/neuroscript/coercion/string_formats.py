import datetime
from types import SimpleNamespace
from typing import Any
from neuroscript.coercion.scalars import Rejection, to_builtin

_N = {
    "date-time": ("datetime", "datetime"),
    "date": ("datetime", "date"),
    "uuid": ("uuid", "UUID"),
    "decimal": ("decimal", "Decimal"),
}
FORMATS: Any = {n: SimpleNamespace(expected=n, takes_blank=False) for n in _N}


def _cls(name):
    import importlib

    return getattr(importlib.import_module(_N[name][0]), _N[name][1])


def read_format(name: str, value: Any, mode: str) -> Any:
    cls = _cls(name)
    try:
        if type(value) is cls:
            v = value
        elif name == "decimal" and type(value) in (int, float, str):
            v = cls(repr(value) if type(value) is float else value)
        elif type(value) is not str:
            return Rejection("coercion.type", name)
        else:
            v = cls.fromisoformat(value) if name.startswith("date") else cls(value)
    except Exception:
        return Rejection("coercion.format", name)
    t = v.isoformat() if name.startswith("date") else str(v)
    return t if mode != "strict" or type(value) is cls or t == value else Rejection("coercion.format", name)


def make_instance(name, text, cls):
    return cls.fromisoformat(text) if name.startswith("date") else cls(text)


def format_of_class(cls):
    return next((n for n, (m, q) in _N.items() if (cls.__module__, cls.__qualname__) == (m, q)), None)
