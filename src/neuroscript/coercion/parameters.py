"""Parameter checks whose errors name the parameter, the expected value and the type received.

Public constructors, and public methods off the hot path, check their parameters before they use them::

    require("session", id=(id, STRING), variables=(variables, optional(BY_NAME)))

A `SpecError` lists every invalid parameter. It contains types but no values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from math import inf
from typing import Any, Final

from neuroscript.errors import MAX_LISTED_PROBLEMS, SpecError
from neuroscript.io.text import quote_untrusted, type_name


class Form:
    """The expected form of a value. It is a plain class because every process creates these objects at startup.

    Attributes:
        words: What to pass; follows "must be" in an error.
        accepts: Whether a value has the right type.
        fits: Whether a value of the right type is in range or otherwise valid.
        items: The form of each item, or of each value of a mapping.
        hint: How to make such a value, if *words* does not say it.
        rule: What a value of the right type must be, if *words* does not say it.
    """

    __slots__ = ("accepts", "fits", "hint", "items", "rule", "words")

    def __init__(
        self,
        words: str,
        accepts: Callable[[Any], bool],
        fits: Callable[[Any], bool] | None = None,
        items: Form | None = None,
        hint: str = "",
        rule: str = "",
    ) -> None:
        self.words = words
        self.rule = rule or words
        self.accepts = accepts
        self.fits = fits
        self.items = items
        self.hint = hint

    def holds(self, value: Any) -> bool:
        """Return whether a value is valid."""
        if not self.accepts(value) or (self.fits is not None and not self.fits(value)):
            return False
        return self.items is None or not value or all(map(self.items.holds, _items(value)))

    def problems(self, name: str, value: Any) -> Iterator[str]:
        """Yield a sentence for each problem with the value of parameter *name*."""
        hint = self.hint and f"; {self.hint}"
        if not self.accepts(value):
            yield f"{name} must be {self.words}, not {type_name(value)}{hint}"
        elif self.fits is not None and not self.fits(value):
            yield f"{name} must be {self.rule}{hint}"
        elif self.items is not None and value is not None:
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            for key, item in items:
                yield from self.items.problems(f"{name}[{_key(key)}]", item)


def problems(**parts: tuple[Any, Form]) -> Iterator[str]:
    """Yield a sentence for each problem.

    Args:
        parts: For each parameter name, the value and its expected form.
    """
    for name, (value, form) in parts.items():
        if not form.holds(value):  # much faster than looking for problems
            yield from form.problems(name, value)


def require(subject: str, /, **parts: tuple[Any, Form]) -> None:
    """Check parameters and raise one error for all problems.

    Args:
        subject: What is called or created; the error starts with it.
        parts: For each parameter name, the value and its expected form.

    Raises:
        SpecError: With all problems, up to `MAX_LISTED_PROBLEMS`.
    """
    _refuse(subject, problems(**parts))


def field_problems(thing: object, /, **forms: Form) -> Iterator[str]:
    """Yield a sentence for each problem with the fields of an object; *forms* maps field names to forms."""
    for name, form in forms.items():
        value = getattr(thing, name)
        if not form.holds(value):
            yield from form.problems(name, value)


def require_fields(subject: str, thing: object, /, **forms: Form) -> None:
    """Check the fields of an object and raise one error for all problems."""
    _refuse(subject, field_problems(thing, **forms))


def _refuse(subject: str, found: Iterator[str]) -> None:
    listed = [*islice(found, MAX_LISTED_PROBLEMS)]
    if listed:
        raise SpecError(subject, listed)


# Forms


@cache
def instance(kind: type, hint: str = "") -> Form:
    """Return the form of an instance of a class."""
    return Form(f"{_article(kind.__name__)} {kind.__name__}", lambda value: isinstance(value, kind), hint=hint)


def object_form(words: str, *methods: str) -> Form:
    """Return the form of an object with these methods; classes are not accepted."""
    return Form(
        f"{words} (an object with {_listed(methods, 'and')})",
        lambda value: not isinstance(value, type) and all(callable(getattr(value, each, None)) for each in methods),
    )


def one_of(*choices: str) -> Form:
    """Return the form of a string that must be one of *choices*."""
    return Form(_listed([repr(each) for each in choices], "or"), _is(str), lambda value: value in choices)


@cache
def optional(form: Form) -> Form:
    """Return the form of a value that may be None."""
    fits = form.fits
    return Form(
        f"{form.words}, or None",
        lambda value: value is None or form.accepts(value),
        None if fits is None else lambda value: value is None or fits(value),
        form.items,
        form.hint,
        form.rule if form.rule != form.words else "",
    )


def sequence(form: Form, words: str) -> Form:
    """Return the form of a list or tuple; *words* names its items in the plural, such as "strings"."""
    return Form(f"a list or tuple of {words}", _is(list, tuple), items=form, hint=form.hint)


def collection(form: Form, words: str) -> Form:
    """Return the form of a list, tuple, set or similar. Strings, mappings and iterators are not accepted."""
    return Form(f"a collection of {words}", _is_collection, items=form, hint=form.hint)


def mapping_form(form: Form, words: str) -> Form:
    """Return the form of a mapping with string keys; *words* names its values in the plural."""
    return Form(f"a mapping of strings to {words}", _is_by_name, items=form, hint=form.hint)


def as_tuple(values: Any) -> Any:
    """Return the items of an iterable as a tuple, and anything else unchanged so that a check can reject it."""
    return tuple(values) if isinstance(values, Iterable) and not isinstance(values, (str, bytes)) else values


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _is_exactly(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def is_number(value: object) -> bool:
    """Return whether a value is an int or float, or a subclass such as numpy.float64; booleans are not numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_collection(value: object) -> bool:
    if type(value) in (tuple, list, set, frozenset):  # the common case; the checks against ABCs below are slow
        return True
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, Iterator))


def _is_by_name(value: object) -> bool:
    return (type(value) is dict or isinstance(value, Mapping)) and all(isinstance(key, str) for key in value)


def _is_nameable(path: Any) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except (TypeError, ValueError):  # raised by `__fspath__`, or for lone surrogates
        return False


def _article(name: str) -> str:
    return "an" if name[0] in "AEIOU" else "a"


def _listed(words: Iterable[str], last: str) -> str:
    *rest, final = words
    return f"{', '.join(rest)} {last} {final}" if rest else final


def _key(key: object) -> str:
    return repr(quote_untrusted(key)) if isinstance(key, str) else str(key)


STRING: Final = Form("a string", _is(str))
WORD: Final = Form("a non-empty string", _is(str), bool)
STRINGS: Final = collection(STRING, "strings")
BYTES: Final = Form("bytes", _is(bytes, bytearray))
PATH: Final = Form(
    "a path (a string or os.PathLike)",
    _is(str, os.PathLike),
    _is_nameable,
    rule="a path without null characters and lone surrogates",
)
PATHS: Final = collection(PATH, "paths")
FLAG: Final = Form("True or False", _is_exactly(bool))
WHOLE: Final = Form("a non-negative integer", _is_exactly(int), lambda value: value >= 0)
COUNT: Final = Form("a positive integer", _is_exactly(int), lambda value: value > 0)
NUMBER: Final = Form("a number", is_number)
DURATION: Final = Form("a non-negative number of seconds", is_number, lambda value: value >= 0)
SECONDS: Final = Form("a positive, finite number of seconds", is_number, lambda value: 0 < value < inf)
FUNCTION: Final = Form("a function", callable)
BY_NAME: Final = Form("a mapping with string keys", _is_by_name)
INPUT: Final = object_form("a text stream", "readline")
OUTPUT: Final = object_form("a text stream", "write")
