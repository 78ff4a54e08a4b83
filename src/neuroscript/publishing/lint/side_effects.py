"""What a module does past the Runtime: files, programs, the network, the environment, the terminal, and all at import.

Source: design.md, rules 3 and 8; contract section 5.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module, top_level

NEED: Final = re.compile(r"(?P<resource>[a-z_]+):[a-z_]+(,[a-z_]+)*(:\S+)?")
"""A need, as the text of a `ToolPolicy`."""


@attrs.frozen(eq=False, repr=False)
class Door:
    """A way out.

    Attributes:
        names: What stands for it in the source, anchored, without the brackets of a call.
        what: What is done, for a sentence.
        instead: What to write.
        resources: Words of needs, one of which says so; with none of them no need helps.
        code: The code of the finding.
    """

    names: re.Pattern[str]
    what: str
    instead: str
    resources: tuple[str, ...] = ()
    code: str = "lint.outside"


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

DOORS: Final = (
    Door(
        _names(r"builtins\.print", r"sys\.(stdout|stderr)(\.\w+)*"),
        "prints",
        "write rt.println(…)",
        code="lint.print",
    ),
    Door(
        _names(r"builtins\.input", r"sys\.stdin(\.\w+)*", r"getpass\.getpass"),
        "asks at the terminal",
        "write rt.prompt_user(…)",
        code="lint.print",
    ),
    Door(
        _names(
            r"(builtins|io|codecs|gzip|bz2|lzma)\.open",
            rf"os\.({OF_OS})",
            r"os\.path\.(exists|getsize|isdir|isfile|islink)",
            r"shutil\.(copy\w*|move|rmtree|make_archive|unpack_archive)",
            r"tempfile\.\w+",
            r"glob\.i?glob",
            rf"pathlib\.\w*Path(\(\)|\.\w+)*\.({OF_PATHS})",
        ),
        "reaches files",
        "use rt.fs, which stays in the sandbox and asks for the grant",
        ("shell",),
    ),
    Door(
        _names(
            r"subprocess\.(run|call|check_call|check_output|getoutput|getstatusoutput|Popen)",
            r"os\.(system|popen|startfile|exec[lv]\w*|spawn\w+|posix_spawnp?|fork|forkpty)",
            r"pty\.(spawn|fork)",
            r"asyncio\.create_subprocess_(exec|shell)",
        ),
        "runs a program",
        "state the need shell:exec:… in its ToolPolicy, or call shell.execute through rt.call_tool",
        ("shell",),
    ),
    Door(
        _names(
            r"socket\.(socket|create_connection|create_server|getaddrinfo|gethostby\w+)",
            r"(http\.client|ftplib|imaplib|poplib|smtplib|telnetlib|xmlrpc\.client)\.[A-Z]\w*",
            r"urllib\.request\.\w+",
            r"asyncio\.(open_connection|start_server)",
            r"(httpx|requests|aiohttp|urllib3|websockets)\.([a-z]+|(Async|Http)?Client|(Client)?Session|PoolManager)",
        ),
        "reaches the network",
        "state the need net:read:… or net:write:… in its ToolPolicy, or call http.get through rt.call_tool",
        ("net",),
    ),
    Door(
        _names(r"os\.(environb?(\.\w+)?|getenvb?|putenv|unsetenv)"),
        "looks into the environment",
        "state the need env:read:… in its ToolPolicy, or take what the host lends with rt.get_var or rt.secret",
        ("env", "shell"),
    ),
)
"""Every way out that is known by its name. A program reaches files and the environment, so who may run one may too."""

BUSY: Final = _names(
    r"neuroscript\.Engine",
    r"logging\.(basicConfig|config\.\w+)",
    r"threading\.(Thread|Timer)",
    r"time\.sleep",
    r"asyncio\.run",
    r"(signal\.signal|atexit\.register|os\.(chdir|umask|putenv)|random\.seed|locale\.setlocale)",
)
"""What else nothing that is imported should do."""


def needs(modules: Iterable[Module]) -> frozenset[str]:
    """Return the resources that the needs in some modules name, such as ``net``."""
    found = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = NEED.fullmatch(node.value)
                found.add(match["resource"] if match else "")
    return frozenset(found - {""})


def outside(module: Module, stated: frozenset[str]) -> Iterator[Finding]:
    """Yield what a module does past the Runtime, but for what the tools' needs say.

    Args:
        stated: The resources that they name.
    """
    early = {id(node) for node in _early(module)}
    for node in (use for statement in _body(module) for use in _uses(statement)):
        name = module.dotted(node)
        door = _door(name)
        if door is not None and stated.isdisjoint(door.resources) and id(node) not in early:
            yield module.finding(node, door.code, f"{_short(name)} {door.what} past the Runtime; {door.instead}")


def at_import(module: Module) -> Iterator[Finding]:
    """Yield what a module does when it is imported."""
    called = {id(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
    for node in _early(module):
        name = module.dotted(node)
        if _door(name) or (id(node) in called and BUSY.fullmatch(name)):
            told = f"{_short(name)} runs when the module is imported; do it in the tool that needs it"
            yield module.finding(node, "lint.import-effect", told)


def _door(name: str) -> Door | None:
    return next((each for each in DOORS if each.names.fullmatch(name)), None)


def _early(module: Module) -> Iterator[ast.expr]:
    """Yield what is used while a module is imported."""
    for statement in top_level(_body(module)):
        yield from _now(statement)


def _body(module: Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module, but for what is there for programs or type checkers."""
    return (node for node in module.tree.body if not (isinstance(node, ast.If) and _is_guard(module, node.test)))


def _is_guard(module: Module, test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__")):
            return True
    return module.dotted(test) in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING")


def _now(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield what is used as soon as a statement is reached: nothing of what waits in a function."""
    if isinstance(statement, ast.ClassDef):
        yield from (use for each in top_level(statement.body) for use in _now(each))
    for part in _parts(statement):
        if isinstance(part, (ast.expr, ast.withitem)):
            yield from _uses(part, waiting=False)


def _uses(node: ast.AST, *, waiting: bool = True) -> Iterator[ast.expr]:
    """Yield each longest expression of names and dots, with what is called behind it left out.

    Args:
        waiting: Whether to go into what only runs later, such as a lambda.
    """
    if isinstance(node, ast.Lambda) and not waiting:
        return
    if isinstance(node, (ast.Attribute, ast.Name)):
        yield node
    for each in _parts(node):
        yield from _uses(each, waiting=waiting)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    """Return what stands within a node, without annotations, and without the names before a dot."""
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
