"""A Python function's annotations and docstring as the spec of a tool.

Google's style of docstring is read here; NumPy's and Sphinx's by ``docstring-parser`` (the ``functions`` extra).

Source: contract section 1; design.md, "a tool, two ways".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import Any, Final, get_args, get_origin

import attrs

from neuroscript.argtypes import ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.hints import KNOWN, Hint, Unreadable, annotations_of, hint_of
from neuroscript.spec import ArgSpec, argument

RUNTIME: Final = "rt"
"""What the first parameter of a tool is called, if it wants the Runtime."""

STREAMS: Final = (Iterator, Generator, AsyncIterator, AsyncGenerator)
"""What a function returns that is a stream; the first word in its brackets is the type of an item."""

SECTION: Final = re.compile(r"(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?|Attributes):\s*")
ENTRY: Final = re.compile(r"\*{0,2}(?P<name>[A-Za-z_]\w*)\s*(?:\([^)]*\))?:\s*(?P<text>.*)")
OTHER_STYLES: Final = re.compile(r"^\s*(?::(?:param|returns?|raises)\b|(?:Parameters|Returns)\n\s*-{3,})", re.MULTILINE)


@attrs.frozen(eq=False, repr=False)
class Described:
    """What a docstring says.

    Attributes:
        summary: Its first paragraph, as one line.
        args: What it says of each parameter.
        returns: What it says of the result.
        raises: What it says of errors.
    """

    summary: str = ""
    args: Mapping[str, str] = {}
    returns: str = ""
    raises: str = ""


@attrs.frozen(eq=False, repr=False)
class Signature:
    """What a function says of itself: the fields of a `ToolSpec` that can be read off it."""

    name: str
    args: tuple[ArgSpec, ...]
    return_type: ArgType
    return_nullable: bool
    stream: bool
    variadic: bool
    takes_runtime: bool
    described: Described


def read(func: Callable[..., Any]) -> Signature:
    """Return what *func* says of itself.

    Raises:
        SpecError: With everything that can not be read, and what to write instead.
    """
    name = getattr(func, "__name__", type(func).__name__)
    try:
        parameters = list(inspect.signature(func).parameters.values())
        annotations = annotations_of(func)
        described = docstring(inspect.getdoc(func) or "")
    except (Unreadable, TypeError, ValueError) as error:
        raise SpecError(name, [str(error)]) from error
    takes_runtime = bool(parameters) and parameters[0].name == RUNTIME
    given = parameters[1:] if takes_runtime else parameters
    faults: list[str] = []
    args = [_argument(parameter, annotations, described, faults) for parameter in given]
    annotation, stream = item(annotations.get("return", inspect.Signature.empty))
    result = returned(annotation, faults)
    faults.extend(f"the docstring describes {each}, which is no parameter" for each in _strangers(given, described))
    if faults:
        raise SpecError(name, faults)
    return Signature(
        name,
        tuple(arg for arg in args if arg is not None),
        result.type,
        result.nullable,
        stream,
        any(parameter.kind is parameter.VAR_POSITIONAL for parameter in given),
        takes_runtime,
        described,
    )


def _argument(
    parameter: inspect.Parameter, annotations: Mapping[str, Any], described: Described, faults: list[str]
) -> ArgSpec | None:
    name = parameter.name
    if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
        faults.append(f"{name}: a tool is called by position; write a positional parameter")
        return None
    if name not in annotations:
        faults.append(f"{name}: has no annotation; write {KNOWN}")
        return None
    try:
        return argument(
            name,
            hint_of(annotations[name]),
            default=UNSET if parameter.default is parameter.empty else parameter.default,
            required=False if parameter.kind is parameter.VAR_POSITIONAL else None,
            description=described.args.get(name, ""),
        )
    except Unreadable as error:
        faults.append(f"{name}: {error}")
    except SpecError as error:
        faults.extend(f"{name}: {problem}" for problem in error.problems)
    return None


def item(annotation: Any) -> tuple[Any, bool]:
    """Return what an iterator is one of, and that it is a stream; any other annotation as it is."""
    if get_origin(annotation) not in STREAMS:
        return annotation, False
    return get_args(annotation)[0], True


def returned(annotation: Any, faults: list[str]) -> Hint:
    """Return what the annotation of a result says; what is wrong with it is added to *faults*."""
    if annotation is inspect.Signature.empty:
        faults.append("the result has no annotation; write -> None where there is none")
        return Hint(ArgType.NIL)
    try:
        hint = hint_of(annotation)
    except Unreadable as error:
        faults.append(f"the result: {error}")
        return Hint(ArgType.NIL)
    if hint.cls is not None or hint.choices:
        faults.append("the result: write the built-in that it is, such as dict[str, Any] or str")
    return hint


def _strangers(parameters: list[inspect.Parameter], described: Described) -> list[str]:
    names = {parameter.name for parameter in parameters} | {RUNTIME}
    return [name for name in described.args if name not in names]


def docstring(text: str) -> Described:
    """Return what a docstring says, in Google's style or, with the ``functions`` extra, in NumPy's or Sphinx's.

    Raises:
        ValueError: It is in another style and the extra is not installed.
    """
    if OTHER_STYLES.search(text):
        return _by_library(text)
    sections: dict[str, list[str]] = {"": []}
    current = sections[""]
    for line in text.splitlines():
        heading = SECTION.fullmatch(line)
        if heading:
            current = sections.setdefault(heading[1].replace("Arguments", "Args").replace("Parameters", "Args"), [])
        else:
            current.append(line)
    return Described(
        _first_paragraph(sections[""]),
        _entries(sections.get("Args", [])),
        _joined(sections.get("Returns", sections.get("Yields", []))),
        _joined(sections.get("Raises", [])),
    )


def _first_paragraph(lines: list[str]) -> str:
    return _joined("\n".join(lines).strip().split("\n\n")[0].splitlines())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _entries(lines: list[str]) -> dict[str, str]:
    """Return the text of each ``name: text`` of a section; a deeper line goes on with the entry above it."""
    entries: dict[str, str] = {}
    name, margin = "", 0
    for line in lines:
        match = ENTRY.fullmatch(line.strip())
        depth = len(line) - len(line.lstrip())
        if match and (not name or depth <= margin):
            name, margin = match["name"], depth
            entries[name] = match["text"]
        elif name and line.strip():
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries


def _by_library(text: str) -> Described:
    try:
        from docstring_parser import parse
    except ImportError:
        raise ValueError(
            "its docstring is not in Google's style; pip install 'neuroscript[functions]' reads it"
        ) from None
    found = parse(text)
    return Described(
        _joined((found.short_description or "").splitlines()),
        {param.arg_name.lstrip("*"): _joined((param.description or "").splitlines()) for param in found.params},
        _joined(((found.returns.description if found.returns else None) or "").splitlines()),
        "; ".join(_joined((each.description or "").splitlines()) for each in found.raises),
    )
