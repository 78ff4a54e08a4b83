"""Detection of the tools in a module: by decorator, by `neuroscript.tool`, or by a `ToolSpec`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import attrs

from neuroscript.publishing.lint.sources import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen(eq=False, repr=False)
class FunctionTool:
    """A tool that is derived from a function.

    Attributes:
        function: The function.
        call: The call that makes it a tool, with its options.
    """

    function: Function
    call: ast.Call

    @property
    def name(self) -> str:
        """The name of the tool, if the source determines it."""
        return text_of(keyword(self.call, "name")) or self.function.name

    @property
    def node(self) -> ast.AST:
        """The node that shows where it is."""
        return self.function

    @property
    def is_without_policy(self) -> bool:
        """Whether the source shows that it has no policy."""
        return not is_open(self.call) and keyword(self.call, "policy") is None


@attrs.frozen(eq=False, repr=False)
class SpecTool:
    """A tool with an explicit spec.

    Attributes:
        spec: The call of `ToolSpec`.
        function: Its implementation, if that is a function in the module.
        addition: The call that adds it to a toolset, if it contains the spec.
    """

    spec: ast.Call
    function: Function | None
    addition: ast.Call | None

    @property
    def name(self) -> str:
        """The name of the tool, if the source determines it."""
        return text_of(argument(self.spec, 0, "name")) or ""

    @property
    def node(self) -> ast.AST:
        """The node that shows where it is."""
        return self.spec

    @property
    def is_without_policy(self) -> bool:
        """Whether the source shows that it has no policy."""
        add = self.addition
        return add is not None and not is_open(add) and argument(add, 2, "policy") is None


def find_tools(module: Module) -> tuple[list[FunctionTool], list[SpecTool]]:
    """Return the tools of a module by kind of declaration, each in source order."""
    sets = _toolsets(module)
    calls = sorted(
        (node for node in ast.walk(module.tree) if isinstance(node, ast.Call)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    return [*_decorated(module, sets), *_function_tools(module, calls, sets)], [*_spec_tools(module, calls)]


def declares(module: Module) -> bool:
    """Return whether a module declares tools or contains a toolset."""
    return any(find_tools(module)) or any(
        module.dotted(node) == "neuroscript.Toolset()" for node in ast.walk(module.tree)
    )


def _toolsets(module: Module) -> set[str]:
    """Return the names that are, or may be, toolsets; imported names may be."""
    found = {name for name in module.names if name == "toolset"}
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                if module.dotted(call) == "neuroscript.Toolset()" or _of_registrar(call):
                    found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as call):
                if module.dotted(call) == "neuroscript.Toolset()":
                    found.add(name)
    return found


def _of_registrar(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "toolset"


def _decorated(module: Module, sets: set[str]) -> Iterator[FunctionTool]:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from (FunctionTool(node, _as_call(each)) for each in node.decorator_list if _is_tool(each, sets))


def _as_call(decorator: ast.expr) -> ast.Call:
    """Return ``@toolset.tool`` as the equivalent call without options."""
    if isinstance(decorator, ast.Call):
        return decorator
    return ast.copy_location(ast.Call(func=decorator, args=[], keywords=[]), decorator)


def _is_tool(node: ast.expr, sets: set[str]) -> bool:
    """Return whether an expression is ``toolset.tool`` or a call of it."""
    match node.func if isinstance(node, ast.Call) else node:
        case ast.Attribute(value=ast.Name(id=name), attr="tool"):
            return name in sets
        case ast.Attribute(value=ast.Call() as made, attr="tool"):
            return _of_registrar(made)
    return False


def _function_tools(module: Module, calls: list[ast.Call], sets: set[str]) -> Iterator[FunctionTool]:
    """Yield the functions that are passed to `tool`, to `toolset.tool`, or to what ``toolset.tool(…)`` returns."""
    for call in calls:
        makes = module.dotted(call.func) == "neuroscript.tool" or _is_tool(call.func, sets)
        function = module.top.get(_name(call.args[0])) if makes and call.args else None
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield FunctionTool(function, call.func if isinstance(call.func, ast.Call) else call)


def _spec_tools(module: Module, calls: list[ast.Call]) -> Iterator[SpecTool]:
    functions: dict[int, Function] = {}
    additions: dict[int, ast.Call] = {}
    for call in calls:
        match call:
            case ast.Call(func=ast.Attribute(attr="add"), args=[ast.Call() as spec, *_]):
                additions[id(spec)] = call
        match [*call.args, *(each.value for each in call.keywords if each.arg == "func")]:
            case [ast.Call() as spec, ast.Name(id=name), *_]:
                function = module.top.get(name)
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    functions[id(spec)] = function
    for call in calls:
        if module.dotted(call.func) == "neuroscript.ToolSpec":
            yield SpecTool(call, functions.get(id(call)), additions.get(id(call)))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """Return the argument of a call for a parameter, by position or by name."""
    if place < len(call.args):
        return call.args[place]
    return keyword(call, name)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the keyword argument of a call with this name."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def is_open(call: ast.Call) -> bool:
    """Return whether a call unpacks arguments, as ``*values`` or ``**options``, that the source does not show."""
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    return starred or any(each.arg is None for each in call.keywords)


def text_of(node: ast.AST | None) -> str | None:
    """Return the value of a string literal, or None for any other node."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
