"""Values that stand in each other: find one by its path, and make sure that a map holds what it should.

Source: upstream ``pkg/tool/shape`` and ``pkg/tool/ai``, which is the same once more and is not shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript_std import paths, shapes

PURE: Final = ToolPolicy(effects=("pure",))

CASE_INSENSITIVE: Final = ArgSpec(
    "case_insensitive",
    ArgType.BOOL,
    default=False,
    description="Whether a key may differ in case; where keys differ only in case, that is an error.",
)
MISSING_OK: Final = ArgSpec(
    "missing_ok",
    ArgType.BOOL,
    default=False,
    description="Whether it is no error when nothing stands at a path.",
)
ALLOW_EXTRA: Final = ArgSpec(
    "allow_extra",
    ArgType.BOOL,
    default=False,
    description="Whether keys that the shape does not name are let be, at every level.",
)
VALUE: Final = ArgSpec("value", ArgType.ANY, nullable=True, description="A map or a list, or what holds them.")

USER: Final = {"user": {"NAME": "Ada", "tags": ["math", "poetry"]}, "a.b": 1}

toolset = Toolset("shape")


def _options(*keys: ArgSpec) -> ArgSpec:
    return ArgSpec(
        "options", ArgType.MAP, default={}, keys=keys, description="How to go about it; all are off at first."
    )


def _selected(rt: Runtime, value: Any, path: Any, options: dict[str, bool]) -> Any:
    reader = paths.Reader(options["case_insensitive"])
    return reader.read(value, paths.parsed(path), missing_ok=options["missing_ok"])


toolset.add(
    ToolSpec(
        "select",
        "shape",
        (
            VALUE,
            ArgSpec(
                "path",
                ArgType.ANY,
                description=(
                    "The way to one value: a text such as user.tags[0], with dots between keys and indexes from 0 in "
                    "brackets; or a list of keys and indexes, in which a key may hold dots and brackets."
                ),
            ),
            _options(CASE_INSENSITIVE, MISSING_OK),
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description="Give the value at a path into maps and lists.",
        when_to_use="For one value; shape.selectmany gives several at once, list.get one of a list.",
        return_help="The value; None where nothing stands at the path and missing_ok is on.",
        examples=(
            Example((USER, "user.tags[1]"), "poetry"),
            Example((USER, ["a.b"]), 1, note="a key with a dot in it, as a list"),
            Example((USER, "user.name", {"case_insensitive": True}), "Ada"),
            Example((USER, "user.email", {"missing_ok": True}), None),
            Example((USER, "user.email"), error="shape.missing"),
            Example((USER, "user.tags.first"), error="shape.wrong_type"),
            Example((USER, "user..tags"), error="shape.bad_path"),
        ),
        error_conditions="shape.bad_path, shape.missing, shape.wrong_type, shape.ambiguous.",
    ),
    _selected,
    PURE,
)


def _all_selected(rt: Runtime, value: Any, extracts: dict[str, Any], options: dict[str, bool]) -> dict[str, Any]:
    reader = paths.Reader(options["case_insensitive"])
    ways = {name: _named(name, paths.parsed, path) for name, path in extracts.items()}
    found: dict[str, Any] = {}
    for name, way in ways.items():
        try:
            found[name] = _named(name, reader.read, value, way)
        except ToolFailed as error:
            if not (options["missing_ok"] and error.code == "shape.missing"):
                raise
    return found


def _named(name: str, step: Callable[..., Any], *values: Any) -> Any:
    """Take one step for the extract of that name, which the text of its failure begins with."""
    try:
        return step(*values)
    except ToolFailed as error:
        text = f"extracts['{paths.shown(name)}']: {error.text}"
        raise ToolFailed(text, code=error.code, retry=error.retry) from None


toolset.add(
    ToolSpec(
        "selectmany",
        "shape",
        (
            VALUE,
            ArgSpec(
                "extracts",
                ArgType.MAP,
                description="A path for each name that the result is to have, as shape.select takes it.",
            ),
            _options(CASE_INSENSITIVE, MISSING_OK),
        ),
        return_type=ArgType.MAP,
        description="Give the values at several paths as a map.",
        when_to_use="For several values of one map or list; shape.select gives a single one as it is.",
        return_help="A map of the names to the values; a name is left out where nothing is found and missing_ok is on.",
        examples=(
            Example((USER, {"name": "user.NAME", "first": "user.tags[0]"}), {"name": "Ada", "first": "math"}),
            Example((USER, {"name": "user.NAME", "email": "user.email"}, {"missing_ok": True}), {"name": "Ada"}),
            Example((USER, {"email": "user.email"}), error="shape.missing"),
        ),
        error_conditions="shape.bad_path, shape.missing, shape.wrong_type, shape.ambiguous; of the first that fails.",
    ),
    _all_selected,
    PURE,
)


@toolset.tool(
    name="isvalidpath",
    policy=PURE,
    when_to_use="For a path that somebody else wrote; shape.select says itself where one is no path.",
    examples=(
        Example(("a.b[0].c-d_e",), True),
        Example(("a..b",), False),
        Example(("a[x]",), False),
        Example((123,), error="coercion.type"),
    ),
)
def is_valid_path(path_string: str) -> bool:
    """Tell whether a text is a path.

    Args:
        path_string: A text such as a.b[0]: at most 128 keys and indexes of at most 256 characters each.

    Returns:
        True where shape.select can go that way, whatever the value.
    """
    return paths.is_path(path_string)


def _validated(rt: Runtime, value: dict[str, Any], shape: dict[str, Any], options: dict[str, bool]) -> bool:
    fields = shapes.parsed(shape, case_insensitive=options["case_insensitive"])
    shapes.validate(value, fields, allow_extra=options["allow_extra"], case_insensitive=options["case_insensitive"])
    return True


PERSON: Final = {"name": "string", "email?": "email", "tags[]": "string", "address?": {"city": "string"}}

toolset.add(
    ToolSpec(
        "validate",
        "shape",
        (
            ArgSpec("value", ArgType.MAP, description="The map to look through."),
            ArgSpec(
                "shape",
                ArgType.MAP,
                description=(
                    "A map of field names to types: string, int, float, bool, any, email, url, isoDatetime, or a map "
                    "that is a shape itself. Behind a name, ? lets the field be absent and [] means a list of the type."
                ),
            ),
            _options(ALLOW_EXTRA, CASE_INSENSITIVE),
        ),
        return_type=ArgType.BOOL,
        description="Make sure that a map has the fields that a shape names, each of its type.",
        when_to_use="Before values of a map are relied on; shape.select then takes one out of it.",
        return_help="True; a map that does not fit is an error that tells every place, at most 20 of them.",
        examples=(
            Example(({"name": "Ada", "tags": []}, PERSON), True),
            Example(({"name": "Ada", "tags": ["a"], "x": 1}, PERSON, {"allow_extra": True}), True),
            Example(({"name": "Ada", "tags": [1], "address": {}}, PERSON), error="shape.mismatch"),
            Example(({"name": "Ada"}, {"name": "text"}), error="shape.bad_shape"),
        ),
        error_conditions="shape.mismatch, shape.bad_shape.",
    ),
    _validated,
    PURE,
)
