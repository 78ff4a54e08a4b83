"""The ``shape`` tools: select values from nested data by path, and validate maps against a schema."""

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
    description="True to ignore the case of keys; two keys that differ only in case are an error.",
)
MISSING_OK: Final = ArgSpec(
    "missing_ok",
    ArgType.BOOL,
    default=False,
    description="True to return no value instead of an error if a path does not exist.",
)
ALLOW_EXTRA: Final = ArgSpec(
    "allow_extra",
    ArgType.BOOL,
    default=False,
    description="True to allow keys that are not in the shape, at every level.",
)
VALUE: Final = ArgSpec("value", ArgType.ANY, nullable=True, description="The nested data, usually a map or a list.")

USER: Final = {"user": {"NAME": "Ada", "tags": ["math", "poetry"]}, "a.b": 1}

toolset = Toolset("shape")


def _options(*keys: ArgSpec) -> ArgSpec:
    return ArgSpec("options", ArgType.MAP, default={}, keys=keys, description="Options; all are false by default.")


def _selected(rt: Runtime, value: Any, path: Any, options: dict[str, bool]) -> Any:
    reader = paths.Reader(options["case_insensitive"])
    return reader.read(value, paths.parse_path(path), missing_ok=options["missing_ok"])


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
                    "Path to the value: a string such as user.tags[0], with dots between keys and zero-based indexes "
                    "in brackets; or a list of keys and indexes, in which keys can contain dots and brackets."
                ),
            ),
            _options(CASE_INSENSITIVE, MISSING_OK),
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description="Get a value from nested data by path, for example a key of a JSON object or an element of a list.",
        when_to_use="Use it for one value; for several, use shape.selectmany, for a list item, list.get.",
        return_help="The value; None if the path does not exist and missing_ok is true.",
        examples=(
            Example((USER, "user.tags[1]"), "poetry"),
            Example((USER, ["a.b"]), 1, note="a key that contains a dot, as a list"),
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
    ways = {name: _run_step(name, paths.parse_path, path) for name, path in extracts.items()}
    found: dict[str, Any] = {}
    for name, way in ways.items():
        try:
            found[name] = _run_step(name, reader.read, value, way)
        except ToolFailed as error:
            if not (options["missing_ok"] and error.code == "shape.missing"):
                raise
    return found


def _run_step(name: str, step: Callable[..., Any], *values: Any) -> Any:
    """Run one step and prefix its error message with the name of the extract."""
    try:
        return step(*values)
    except ToolFailed as error:
        text = f"extracts['{paths.escape_name(name)}']: {error.text}"
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
                description="Maps each key of the result to a path, in the form of shape.select.",
            ),
            _options(CASE_INSENSITIVE, MISSING_OK),
        ),
        return_type=ArgType.MAP,
        description="Extract several values from nested data at once, by their paths.",
        when_to_use="Use it for several values; for a single value, use shape.select.",
        return_help="A map of names to values; missing values are omitted if missing_ok is true.",
        examples=(
            Example((USER, {"name": "user.NAME", "first": "user.tags[0]"}), {"name": "Ada", "first": "math"}),
            Example((USER, {"name": "user.NAME", "email": "user.email"}, {"missing_ok": True}), {"name": "Ada"}),
            Example((USER, {"email": "user.email"}), error="shape.missing"),
        ),
        error_conditions=(
            "shape.bad_path, shape.missing, shape.wrong_type, shape.ambiguous, for the first path that fails."
        ),
    ),
    _all_selected,
    PURE,
)


@toolset.tool(
    name="isvalidpath",
    policy=PURE,
    when_to_use="Use it for untrusted paths; shape.select reports an invalid path itself.",
    examples=(
        Example(("a.b[0].c-d_e",), True),
        Example(("a..b",), False),
        Example(("a[x]",), False),
        Example((123,), error="coercion.type"),
    ),
)
def is_valid_path(path_string: str) -> bool:
    """Check whether a path string for shape.select has valid syntax.

    Args:
        path_string: A path such as a.b[0], with at most 128 keys and indexes of at most 256 characters each.

    Returns:
        True if the syntax is valid, whether or not a value exists at the path.
    """
    return paths.is_path(path_string)


def _validated(rt: Runtime, value: dict[str, Any], shape: dict[str, Any], options: dict[str, bool]) -> bool:
    fields = shapes.parse_shape(shape, case_insensitive=options["case_insensitive"])
    shapes.validate(value, fields, allow_extra=options["allow_extra"], case_insensitive=options["case_insensitive"])
    return True


PERSON: Final = {"name": "string", "email?": "email", "tags[]": "string", "address?": {"city": "string"}}

toolset.add(
    ToolSpec(
        "validate",
        "shape",
        (
            ArgSpec("value", ArgType.MAP, description="The map to validate."),
            ArgSpec(
                "shape",
                ArgType.MAP,
                description=(
                    "Maps field names to types: string, int, float, bool, any, email, url, isoDatetime, or a nested "
                    "shape. A name that ends in ? is optional, one that ends in [] is a list of the type."
                ),
            ),
            _options(ALLOW_EXTRA, CASE_INSENSITIVE),
        ),
        return_type=ArgType.BOOL,
        description=(
            "Validate data against a schema: check that a map has the expected keys, with values of the expected types."
        ),
        when_to_use="Use it before you rely on the data; to read values from it, use shape.select.",
        return_help="True; a map that does not match is an error that lists every mismatch, at most 20.",
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
