"""Checks of how a tool is declared: names, descriptions, annotations and the parameters of its function.

The messages correspond to those of `neuroscript.spec.signature` and `neuroscript.spec.annotations`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, is_word
from neuroscript.publishing.lint.annotations import UnknownAnnotation, resolve_annotation
from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module
from neuroscript.publishing.lint.tools import Function, FunctionTool, SpecTool, argument, is_open, keyword, text_of
from neuroscript.spec.annotations import KNOWN, UnsupportedAnnotation, hint_of
from neuroscript.spec.signature import ANY_NAME, item, parse_docstring, read_return
from neuroscript.spec.tool_spec import RUNTIME

SENTENCE: Final = re.compile(r"[A-Z].*[.]", re.DOTALL)
"""The same pattern as in the contract check ``described``."""

MUTABLE: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
GROUPED: Final = {
    "neuroscript.Toolset": (0, "name"),
    "neuroscript.ToolSpec": (1, "group"),
    "neuroscript.tool": (1, "group"),
}
"""Calls that take a group, and the position and name of that argument."""

MAKERS: Final = frozenset({"builtins.list()", "builtins.dict()", "builtins.set()", "builtins.bytearray()"})


def check_function_tool(module: Module, tool: FunctionTool) -> Iterator[Finding]:
    """Yield the findings for a tool that is derived from a function."""
    yield from _name_findings(module, tool.call, "tool", tool.name)
    yield from _documented(module, tool)
    yield from _parameters(module, tool)
    yield from _result(module, tool)


def check_spec_tool(module: Module, tool: SpecTool) -> Iterator[Finding]:
    """Yield the findings for a tool with an explicit spec."""
    yield from _name_findings(module, tool.spec, "tool", tool.name)
    if not is_open(tool.spec):
        description = keyword(tool.spec, "description")
        text = "" if description is None else text_of(description)
        if text is not None:
            yield from _sentence(
                module,
                tool.spec,
                tool.name,
                text,
                "add a description in the imperative, such as 'Return the title of a page.'",
            )
    if tool.function is not None:
        yield from _callable(module, tool, tool.function)
        yield from _defaults(module, tool.function)


def arguments(module: Module) -> Iterator[Finding]:
    """Yield a finding for each ArgSpec without a description, including keys of maps."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or module.dotted(node.func) != "neuroscript.ArgSpec" or is_open(node):
            continue
        description = keyword(node, "description")
        if description is None or text_of(description) == "":
            name = text_of(argument(node, 0, "name"))
            which = "" if name is None else f" {quote_untrusted(name)}"
            yield module.finding(node, "lint.argument", f"argument{which} has no description; describe it")


def groups(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield each group that a module names, in canonical form, and where."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and module.dotted(node.func) in GROUPED:
            named = text_of(argument(node, *GROUPED[module.dotted(node.func)]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tool":
            named = text_of(keyword(node, "group"))
        else:
            continue
        if named is not None:
            yield node, canonical(named)


def check_groups(module: Module) -> Iterator[Finding]:
    """Yield a finding for each invalid group name."""
    for node, group in groups(module):
        for word in group.split("."):
            yield from _name_findings(module, node, "group", word)


def _name_findings(module: Module, node: ast.AST, what: str, name: str) -> Iterator[Finding]:
    if name and not is_word(canonical(name)):
        text = f"{quote_untrusted(name)} is not a valid {what} name; use lowercase letters, digits and single _"
        yield module.finding(node, "lint.name", text)


def _documented(module: Module, tool: FunctionTool) -> Iterator[Finding]:
    function, name = tool.function, quote_untrusted(tool.name)
    text = ast.get_docstring(function)
    if text is None:
        yield module.finding(
            function,
            "lint.description",
            f"{name} has no docstring; describe the tool in the imperative, such as 'Return the title of a page.'",
        )
        return
    try:
        described = parse_docstring(inspect.cleandoc(text))
    except ValueError as error:
        yield module.finding(function, "lint.description", f"{name}: {error}")
        return
    yield from _sentence(
        module,
        function,
        tool.name,
        described.summary,
        "describe it in the imperative, such as 'Return the title of a page.'",
    )
    parameters = [each.arg for each in _all(function)]
    for parameter in (each.arg for each in _all(function) if not _is_runtime(module, each)):
        if parameter != RUNTIME and not described.args.get(parameter):
            yield module.finding(
                function,
                "lint.argument",
                f"argument {parameter} of {name} has no description; describe it under Args:",
            )
    for stranger in described.args:
        if stranger not in parameters:
            yield module.finding(
                function, "lint.argument", f"the docstring of {name} describes {stranger}, which is not a parameter"
            )


def _sentence(module: Module, node: ast.AST, name: str, text: str, instead: str) -> Iterator[Finding]:
    if not text:
        yield module.finding(node, "lint.description", f"{quote_untrusted(name)} is not described; {instead}")
    elif SENTENCE.fullmatch(text) is None:
        yield module.finding(
            node,
            "lint.description",
            f"the description of {quote_untrusted(name)} is not a sentence; write one in the imperative, such as "
            "'Return the title of a page.'",
        )


def _parameters(module: Module, tool: FunctionTool) -> Iterator[Finding]:
    function, name = tool.function, quote_untrusted(tool.name)
    positional = [*function.args.posonlyargs, *function.args.args]
    takes_runtime = bool(positional) and positional[0].arg == RUNTIME
    positional_args = positional[takes_runtime:]
    for parameter in positional_args:
        if parameter.arg == RUNTIME:
            yield module.finding(
                parameter, "lint.parameter", f"{name} takes {RUNTIME}, but not first; make it the first parameter"
            )
        elif _is_runtime(module, parameter):
            instead = "name it rt" if parameter is positional[0] else "name it rt and make it the first parameter"
            yield module.finding(parameter, "lint.parameter", f"{parameter.arg} of {name} is the Runtime; {instead}")
        else:
            yield from _annotated(module, parameter, name)
    for parameter in (*filter(None, [function.args.vararg]), *function.args.kwonlyargs):
        yield from _annotated(module, parameter, name)
    if function.args.kwarg is not None:
        text = f"{function.args.kwarg.arg} of {name}: {ANY_NAME}"
        yield module.finding(function.args.kwarg, "lint.parameter", text)
    yield from _defaults(module, function)


def _is_runtime(module: Module, parameter: ast.arg) -> bool:
    return module.dotted(parameter.annotation) == "neuroscript.Runtime"


def _annotated(module: Module, parameter: ast.arg, name: str) -> Iterator[Finding]:
    where = f"{parameter.arg} of {name}"
    if parameter.annotation is None:
        yield module.finding(parameter, "lint.annotation", f"{where}: has no annotation; use {KNOWN}")
        return
    try:
        hint_of(resolve_annotation(parameter.annotation, module))
    except UnsupportedAnnotation as error:
        yield module.finding(parameter, "lint.annotation", f"{where}: {error}")
    except UnknownAnnotation:
        return


def _result(module: Module, tool: FunctionTool) -> Iterator[Finding]:
    annotation: Any = inspect.Signature.empty
    if tool.function.returns is not None:
        try:
            annotation = resolve_annotation(tool.function.returns, module)
        except UnknownAnnotation:
            return
    faults: list[str] = []
    read_return(item(annotation)[0], faults)
    for fault in faults:
        node = tool.function.returns or tool.function
        yield module.finding(node, "lint.annotation", f"{quote_untrusted(tool.name)}: {fault}")


def _defaults(module: Module, function: Function) -> Iterator[Finding]:
    for default in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
        if isinstance(default, MUTABLE) or module.dotted(default) in MAKERS:
            yield module.finding(
                default,
                "lint.default",
                f"a default of {function.name} is mutable; use None and create the value in the function",
            )


def _callable(module: Module, tool: SpecTool, function: Function) -> Iterator[Finding]:
    """Yield a finding if the parameters of a function do not match its spec, when both are in the source."""
    expected = _argument_names(module, tool.spec)
    if expected is None or function.args.vararg is not None:
        return
    found = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    needed = [
        each.arg
        for each, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if default is None
    ]
    if needed:
        text = f"{function.name} is called with positional arguments, but {', '.join(needed)} is keyword-only"
        yield module.finding(function, "lint.parameter", text)
    if found != expected:
        text = f"{function.name} must take ({', '.join(expected)}), not ({', '.join(found)})"
        yield module.finding(function, "lint.parameter", text)


def _argument_names(module: Module, spec: ast.Call) -> list[str] | None:
    if is_open(spec):
        return None
    args = argument(spec, 2, "args")
    parts: Iterable[ast.expr] = args.elts if isinstance(args, (ast.Tuple, ast.List)) else [] if args is None else [args]
    names = [
        text_of(argument(each, 0, "name"))
        if isinstance(each, ast.Call) and module.dotted(each.func) == "neuroscript.ArgSpec"
        else None
        for each in parts
    ]
    return None if None in names else [RUNTIME, *map(str, names)]


def _all(function: Function) -> list[ast.arg]:
    args = function.args
    return [*args.posonlyargs, *args.args, *filter(None, [args.vararg]), *args.kwonlyargs, *filter(None, [args.kwarg])]
