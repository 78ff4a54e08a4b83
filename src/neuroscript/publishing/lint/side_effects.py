"""Checks for side effects that bypass the Runtime, and for side effects of importing a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module, top_level

NEED: Final = re.compile(r"(?P<resource>[a-z_]+):[a-z_]+(,[a-z_]+)*(:\S+)?")
"""A capability string, as in a `ToolPolicy`."""


@attrs.frozen(eq=False, repr=False)
class SideEffect:
    """A kind of side effect.

    Attributes:
        names: Matches the dotted names that cause it, without the parentheses of calls.
        what: What happens, for a message.
        instead: What to do instead.
        resources: Resources of capabilities, one of which declares it. If empty, it is never permitted.
        code: The code of the finding.
    """

    names: re.Pattern[str]
    what: str
    instead: str
    resources: tuple[str, ...] = ()
    code: str = "lint.undeclared-access"


def _names(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns))


OF_OS: Final = (
    "access|chmod|chown|link|listdir|lstat|makedirs|mkdir|mkfifo|open|readlink|remove|removedirs|rename|renames|replace"
    "|rmdir|scandir|stat|symlink|truncate|unlink|utime|walk"
)
OF_PATHS: Final = (
    "chmod|exists|glob|hardlink_to|is_dir|is_file|iterdir|mkdir|open|read_bytes|read_text|rename|replace|rglob|rmdir"
    "|stat|symlink_to|touch|unlink|walk|write_bytes|write_text"
)

SIDE_EFFECTS: Final = (
    SideEffect(
        _names(r"builtins\.print", r"sys\.(stdout|stderr)(\.\w+)*"),
        "prints",
        "use rt.println(…)",
        code="lint.print",
    ),
    SideEffect(
        _names(r"builtins\.input", r"sys\.stdin(\.\w+)*", r"getpass\.getpass"),
        "reads from the terminal",
        "use rt.prompt_user(…)",
        code="lint.print",
    ),
    SideEffect(
        _names(
            r"(builtins|io|codecs|gzip|bz2|lzma)\.open",
            rf"os\.({OF_OS})",
            r"os\.path\.(exists|getsize|isdir|isfile|islink)",
            r"shutil\.(copy\w*|move|rmtree|make_archive|unpack_archive)",
            r"tempfile\.\w+",
            r"glob\.i?glob",
            rf"pathlib\.\w*Path(\(\)|\.\w+)*\.({OF_PATHS})",
        ),
        "accesses files",
        "use rt.fs, which is confined to the sandbox and checks grants",
        ("shell",),
    ),
    SideEffect(
        _names(
            r"subprocess\.(run|call|check_call|check_output|getoutput|getstatusoutput|Popen)",
            r"os\.(system|popen|startfile|exec[lv]\w*|spawn\w+|posix_spawnp?|fork|forkpty)",
            r"pty\.(spawn|fork)",
            r"asyncio\.create_subprocess_(exec|shell)",
        ),
        "runs a program",
        "declare the capability shell:exec:… in its ToolPolicy, or call shell.execute with rt.call_tool",
        ("shell",),
    ),
    SideEffect(
        _names(
            r"socket\.(socket|create_connection|create_server|getaddrinfo|gethostby\w+)",
            r"(http\.client|ftplib|imaplib|poplib|smtplib|telnetlib|xmlrpc\.client)\.[A-Z]\w*",
            r"urllib\.request\.\w+",
            r"asyncio\.(open_connection|start_server)",
            r"(httpx|requests|aiohttp|urllib3|websockets)\.([a-z]+|(Async|Http)?Client|(Client)?Session|PoolManager)",
        ),
        "accesses the network",
        "declare the capability net:read:… or net:write:… in its ToolPolicy, or call http.get with rt.call_tool",
        ("net",),
    ),
    SideEffect(
        _names(r"os\.(environb?(\.\w+)?|getenvb?|putenv|unsetenv)"),
        "reads the environment",
        "declare the capability env:read:… in its ToolPolicy, or read values of the host with rt.get_var or rt.secret",
        ("env", "shell"),
    ),
)
"""Every known kind of side effect. A capability to run programs also covers files and the environment."""

BUSY: Final = _names(
    r"neuroscript\.Engine",
    r"logging\.(basicConfig|config\.\w+)",
    r"threading\.(Thread|Timer)",
    r"time\.sleep",
    r"asyncio\.run",
    r"(signal\.signal|atexit\.register|os\.(chdir|umask|putenv)|random\.seed|locale\.setlocale)",
)
"""Further calls that should not run on import."""


def needs(modules: Iterable[Module]) -> frozenset[str]:
    """Return the resources of all capabilities in some modules, such as ``net``."""
    found = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = NEED.fullmatch(node.value)
                found.add(match["resource"] if match else "")
    return frozenset(found - {""})


def outside(module: Module, stated: frozenset[str]) -> Iterator[Finding]:
    """Yield a finding for each side effect of a module that bypasses the Runtime and is not declared.

    Args:
        stated: The resources of the declared capabilities.
    """
    early = {id(node) for node in _early(module)}
    for node in (use for statement in _body(module) for use in _uses(statement)):
        name = module.dotted(node)
        effect = _side_effect(name)
        if effect is not None and stated.isdisjoint(effect.resources) and id(node) not in early:
            yield module.finding(
                node, effect.code, f"{_short(name)} {effect.what} without the Runtime; {effect.instead}"
            )


def at_import(module: Module) -> Iterator[Finding]:
    """Yield a finding for each side effect of importing a module."""
    called = {id(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
    for node in _early(module):
        name = module.dotted(node)
        if _side_effect(name) or (id(node) in called and BUSY.fullmatch(name)):
            told = f"{_short(name)} runs when the module is imported; move it into the tool that needs it"
            yield module.finding(node, "lint.import-effect", told)


def _side_effect(name: str) -> SideEffect | None:
    return next((each for each in SIDE_EFFECTS if each.names.fullmatch(name)), None)


def _early(module: Module) -> Iterator[ast.expr]:
    """Yield the expressions that are evaluated while a module is imported."""
    for statement in top_level(_body(module)):
        yield from _now(statement)


def _body(module: Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module, except blocks for scripts and for type checkers."""
    return (node for node in module.tree.body if not (isinstance(node, ast.If) and _is_guard(module, node.test)))


def _is_guard(module: Module, test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__")):
            return True
    return module.dotted(test) in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING")


def _now(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions that are evaluated when a statement is executed, without the bodies of functions."""
    if isinstance(statement, ast.ClassDef):
        yield from (use for each in top_level(statement.body) for use in _now(each))
    for part in _parts(statement):
        if isinstance(part, (ast.expr, ast.withitem)):
            yield from _uses(part, waiting=False)


def _uses(node: ast.AST, *, waiting: bool = True) -> Iterator[ast.expr]:
    """Yield each longest dotted expression, without the names accessed on the results of calls.

    Args:
        waiting: Whether to include code that runs later, such as lambdas.
    """
    if isinstance(node, ast.Lambda) and not waiting:
        return
    if isinstance(node, (ast.Attribute, ast.Name)):
        yield node
    for each in _parts(node):
        yield from _uses(each, waiting=waiting)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    """Return the children of a node, without annotations and without the parts of dotted names."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
        case ast.AnnAssign():
            return [each for each in (node.target, node.value) if each is not None]
        case ast.Attribute(value=ast.Attribute() | ast.Name() as value):
            return _parts(value)
    return list(ast.iter_child_nodes(node))


def _short(name: str) -> str:
    return name.removeprefix("builtins.").replace("()", "(…)")
