"""Tool specs derived from the annotations and docstring of a Python function.

Google-style docstrings are parsed here; NumPy and Sphinx styles by ``docstring-parser`` (the ``functions`` extra).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from itertools import takewhile
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import attrs

from neuroscript.coercion.types import ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.spec import callables
from neuroscript.spec.annotations import (
    KNOWN,
    UNMARKED,
    Hint,
    UnsupportedAnnotation,
    annotation_text,
    hint_of,
    is_content,
)
from neuroscript.spec.tool_spec import RUNTIME, ArgSpec, argument

ANY_NAME: Final = "arbitrary keyword arguments are not supported; declare each parameter, or one of type dict[str, T]"
"""The error for ``**kwargs``."""

STREAMS: Final = (Iterator, Generator, AsyncIterator, AsyncGenerator)
"""Return annotations that mean a stream; their first type argument is the item type."""

SECTION: Final = re.compile(r"([A-Z][A-Za-z]*(?: [A-Z][a-z]+)?):\s*")
SECTIONS: Final = {
    **dict.fromkeys(("Args", "Arguments", "Parameters", "Params", "Keyword Args", "Keyword Arguments"), "Args"),
    **dict.fromkeys(("Returns", "Return", "Yields", "Yield"), "Returns"),
    **dict.fromkeys(("Raises", "Raise"), "Raises"),
    **dict.fromkeys(("Example", "Examples", "Note", "Notes", "Attributes", "Warning", "Warnings", "See Also"), ""),
}
"""The headings that end the summary, and the section that each starts. After the first, any heading ends a section."""

ENTRY: Final = re.compile(r"\*{0,2}(?P<name>[A-Za-z_]\w*)\s*(?:\([^)]*\))?:\s*(?P<text>.*)")
NUMPY: Final = re.compile(r"^(?:(?:Other )?Parameters|Returns|Yields|Raises)\n-{3,}", re.MULTILINE)
SPHINX: Final = re.compile(
    r"^:(?:param|parameter|arg|argument|key|keyword|type|rtype|returns?|raises?|yields?)\b.*?:", re.M
)


@attrs.frozen(eq=False, repr=False)
class Docstring:
    """The content of a docstring.

    Attributes:
        summary: The first paragraph, as one line.
        args: The description of each parameter.
        returns: The description of the result.
        raises: The description of errors.
    """

    summary: str = ""
    args: Mapping[str, str] = {}
    returns: str = ""
    raises: str = ""


@attrs.frozen(eq=False, repr=False)
class Signature:
    """The fields of a `ToolSpec` that can be derived from a function.

    Attributes:
        takes_runtime: Whether it has a parameter for the Runtime.
        by_name: Whether it has keyword-only parameters.
        parameters: The parameters of its arguments, in the order of the spec.
    """

    name: str
    args: tuple[ArgSpec, ...]
    return_type: ArgType
    returns: ArgSpec | None
    return_nullable: bool
    stream: bool
    variadic: bool
    takes_runtime: bool
    by_name: bool
    parameters: tuple[inspect.Parameter, ...]
    described: Docstring


def read(func: Callable[..., Any]) -> Signature:
    """Return the signature of *func*.

    Raises:
        SpecError: With every unsupported part, and what to use instead.
    """
    name = callables.name_of(func)
    try:
        annotations = callables.annotations_below(func)
        parameters = callables.parameters_of(func)
        described = parse_docstring(callables.docstring_of(func))
    except (UnsupportedAnnotation, TypeError, ValueError) as error:
        raise SpecError(name, [str(error)]) from error
    takes_runtime = bool(parameters) and parameters[0].name == RUNTIME
    given = callables.in_order(parameters[1:] if takes_runtime else parameters)
    faults: list[str] = []
    args = [_argument(parameter, annotations, described, faults) for parameter in given]
    annotation, stream = item(annotations.get("return", inspect.Signature.empty))
    result = read_return(annotation, faults)
    if callables.is_generator(func) and not stream:
        faults.append("the result: the function yields; use Iterator[T] or AsyncIterator[T]")
    faults.extend(_strangers(func, described))
    returns = None if faults else _returns(result, faults)
    if faults:
        raise SpecError(name, faults)
    return Signature(
        name,
        tuple(arg for arg in args if arg is not None),
        result.type,
        returns,
        result.nullable,
        stream,
        any(parameter.kind is parameter.VAR_POSITIONAL for parameter in given),
        takes_runtime,
        any(parameter.kind is parameter.KEYWORD_ONLY for parameter in given),
        tuple(given),
        attrs.evolve(described, returns=result.said.description or described.returns),
    )


def _argument(
    parameter: inspect.Parameter, annotations: Mapping[str, Any], described: Docstring, faults: list[str]
) -> ArgSpec | None:
    name = parameter.name
    wrong = _unfit(parameter, annotated=name in annotations)
    if wrong:
        faults.append(f"{name}: {wrong}")
        return None
    try:
        return argument(
            name,
            hint_of(annotations[name]),
            default=UNSET if parameter.default is parameter.empty else parameter.default,
            required=False if parameter.kind is parameter.VAR_POSITIONAL else None,
            description=described.args.get(name, ""),
        )
    except UnsupportedAnnotation as error:
        faults.append(f"{name}: {error}")
    except SpecError as error:
        faults.extend(f"{name}: {problem}" for problem in error.problems)
    return None


def _unfit(parameter: inspect.Parameter, *, annotated: bool) -> str:
    if parameter.name == RUNTIME:
        return "is the Runtime; make it the first parameter"
    if parameter.kind is parameter.VAR_KEYWORD:
        return ANY_NAME
    if not annotated and parameter.name in ("self", "cls"):
        return "this is an unbound method; pass a bound one, such as tool(thing.method)"
    return "" if annotated else f"has no annotation; use {KNOWN}"


def item(annotation: Any) -> tuple[Any, bool]:
    """Return the item type and True for an iterator annotation; any other annotation and False."""
    if get_origin(annotation) not in STREAMS or not get_args(annotation):
        return annotation, False
    return get_args(annotation)[0], True


def read_return(annotation: Any, faults: list[str]) -> Hint:
    """Return the meaning of a result annotation; problems are added to *faults*."""
    if annotation is inspect.Signature.empty:
        faults.append("the result has no annotation; use -> None if it returns nothing")
        return Hint(ArgType.NIL)
    if annotation in STREAMS or get_origin(annotation) in STREAMS:
        faults.append(
            f"the result: {annotation_text(annotation)} has no item type; use {annotation_text(annotation)}[T]"
        )
        return Hint(ArgType.NIL)
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    if any(map(is_content, parts)):
        return Hint(ArgType.ANY)
    try:
        hint = hint_of(annotation)
    except UnsupportedAnnotation as error:
        faults.append(f"the result: {error}")
        return Hint(ArgType.NIL)
    return hint


def _returns(hint: Hint, faults: list[str]) -> ArgSpec | None:
    """Return the spec of a result, or None if its type says everything."""
    said = attrs.evolve(hint.said, description="")
    is_refined = hint.nested or hint.unique_items or hint.format
    if not (is_refined or hint.choices or hint.cls is not None or said != UNMARKED):
        return None
    try:
        return argument("result", attrs.evolve(hint, said=said))
    except UnsupportedAnnotation as error:
        faults.append(f"the result: {error}")
    except SpecError as error:
        faults.extend(f"the result: {problem}" for problem in error.problems)
    return None


def _strangers(func: Callable[..., Any], described: Docstring) -> list[str]:
    names = callables.all_names(func)
    return [f"the docstring describes {each}, which is not a parameter" for each in described.args if each not in names]


def parse_docstring(text: str) -> Docstring:
    """Parse a docstring in Google style or, with the ``functions`` extra, in NumPy or Sphinx style.

    Raises:
        ValueError: The docstring is in another style and the extra is not installed, or it is invalid.
    """
    for style, pattern in (("numpydoc", NUMPY), ("rest", SPHINX)):
        found = pattern.search(text)
        if found:
            return attrs.evolve(_by_library(text, style), summary=_first_paragraph(text[: found.start()].splitlines()))
    sections: dict[str, list[str]] = {"summary": []}
    current = summary = sections["summary"]
    for line in text.splitlines():
        heading = SECTION.fullmatch(line)
        if heading and (heading[1] in SECTIONS or current is not summary):
            current = sections.setdefault(SECTIONS.get(heading[1], ""), [])
        else:
            current.append(line)
    return Docstring(
        _first_paragraph(summary),
        _entries(_indented(sections.get("Args", []))),
        _joined(_indented(sections.get("Returns", []))),
        _joined(_indented(sections.get("Raises", []))),
    )


def _indented(lines: list[str]) -> list[str]:
    """Return the lines of a section; a line that is indented less than the first one ends it."""
    written = [line for line in lines if line.strip()]
    margin = _depth(written[0]) if written else 0
    return list(takewhile(lambda line: not line.strip() or _depth(line) >= margin, lines))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _first_paragraph(lines: list[str]) -> str:
    return _joined("\n".join(lines).strip().split("\n\n")[0].splitlines())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _entries(lines: list[str]) -> dict[str, str]:
    """Return the text of each ``name: text`` of a section; lines that are indented further continue an entry."""
    entries: dict[str, str] = {}
    name, margin = "", 0
    for line in lines:
        match = ENTRY.fullmatch(line.strip())
        if match and (not name or _depth(line) <= margin):
            name, margin = match["name"], _depth(line)
            entries[name] = match["text"]
        elif name and line.strip():
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries


def _by_library(text: str, style: str) -> Docstring:
    try:
        from docstring_parser import DocstringStyle, ParseError, parse
    except ImportError:
        from neuroscript._imports import install_hint

        raise ValueError(
            f"its docstring is not in Google style; to read other styles: {install_hint('functions')}"
        ) from None
    try:
        found = parse(text, DocstringStyle[style.upper()])
    except ParseError as error:
        raise ValueError("its docstring is invalid; write a name in each :param name:") from error
    entries = [each for each in found.params if each.args[0] != "attribute"]
    return Docstring(
        "",
        {name: _joined((each.description or "").splitlines()) for each in entries for name in _names(each.arg_name)},
        _joined(((found.returns.description if found.returns else None) or "").splitlines()),
        "; ".join(_joined((each.description or "").splitlines()) for each in found.raises),
    )


def _names(text: str) -> list[str]:
    """Return the names before a description in NumPy style, such as ``a, b : int``."""
    return [name.strip().lstrip("*") for name in text.split(",")]
