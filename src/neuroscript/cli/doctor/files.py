"""Checks of files and directories: the user's own plugins, the sandbox, the user directories and the policy."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from neuroscript.cli.doctor.check import Finding, place, word
from neuroscript.cli.env.choices import NO_AUTOLOAD_VARIABLE, file_of, files, isolation_in_use
from neuroscript.cli.env.engine import directories as directories_of
from neuroscript.discovery.local_plugins import check_owner, plugin_files
from neuroscript.errors import NeuroScriptError, PluginError, SandboxError
from neuroscript.io.private_files import Exposure, exposure
from neuroscript.io.text import quote_path
from neuroscript.io.user_cache import cache_file, config_file, plugins_directory
from neuroscript.runtime.host import Host
from neuroscript.sandbox import Sandbox

if TYPE_CHECKING:
    from neuroscript.policy.isolation import Isolation

CHILD: Final = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from neuroscript.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""Runs the command in another process with the same import path."""

SAYS: Final = "neuroscript: "
"""The prefix of every message of the command."""

PLUGIN_TIMEOUT_SECONDS: Final = 10.0
"""Default seconds to load a local plugin."""

BACKENDS: Final = {
    "openat2": "the kernel rejects every link in a path",
    "walk": "opens each directory of a path separately and follows no link",
    "named": "best effort, for Windows",
}
"""The back ends of a sandbox, and what they guarantee."""


def own_plugins(options: Namespace) -> Iterator[Finding]:
    """Load each local plugin that a command would load, in a separate process, which does not import isolated ones."""
    isolation = isolation_in_use(vars(options))
    for directory in directories_of(vars(options), is_own=True):
        try:
            found = plugin_files(directory)
        except PluginError as error:
            yield Finding(place(directory), "broken", error.reason, _fix(directory))
            continue
        for path in found:
            yield _guarded(path, options.timeout or PLUGIN_TIMEOUT_SECONDS, isolation)
    for path in files(vars(options)):
        yield _tried(path, options.timeout or PLUGIN_TIMEOUT_SECONDS, isolation)


def _fix(path: str | os.PathLike[str]) -> str:
    """Return the command that removes other users' access to a path, or ``""``."""
    try:
        exposed = exposure(path)
    except OSError:
        return ""
    return "" if exposed is None else _restrict_command(exposed)


def _restrict_command(exposed: Exposure) -> str:
    """Return the command that removes other users' access."""
    return f"{'sudo chown $(id -u)' if exposed.is_foreign else 'chmod go-w'} {word(exposed.place)}"


def _guarded(path: str, seconds: float, isolation: Isolation | None) -> Finding:
    try:
        check_owner(path)
    except PluginError as error:
        return Finding(place(path), "broken", error.reason, _fix(path))
    return _tried(path, seconds, isolation)


def _tried(path: str, seconds: float, isolation: Isolation | None) -> Finding:
    """List the tools of one plugin in a separate process."""
    import json

    from neuroscript.cli.terminal.subprocess import run_with_timeout

    file = os.path.abspath(path)  # noqa: PTH100
    isolated = () if isolation is None else isolation.plugins
    words = ["list", "--json", f"--plugin={file}", *(f"--isolate-plugins={each}" for each in isolated)]
    note = "; isolated" if isolation is not None and isolation.isolates_import(file) else ""
    code, out, err = run_with_timeout(
        [sys.executable, "-P", "-c", CHILD, json.dumps(sys.path), *words], seconds, {NO_AUTOLOAD_VARIABLE: "1"}
    )
    name = place(path)
    if code is None:
        return Finding(name, "broken", f"did not load within {seconds:g} seconds")
    if code == 0:
        with suppress(ValueError, IndexError):  # the plugin may print something at exit
            tools = len(json.loads(out.splitlines()[-1]))
            return Finding(name, "ok", f"{tools} tool{'s' * (tools != 1)}{note}")
        return Finding(name, "ok", f"loads{note}")
    message = err.splitlines()[-1] if err else ""
    if not message.startswith(SAYS):
        return Finding(name, "broken", f"exited the process while it was loaded (exit code {code})")
    return Finding(name, "broken", message.removeprefix(SAYS).removeprefix(f"{quote_path(file)}: "))


def sandbox(options: Namespace) -> Iterator[Finding]:
    """Check whether the sandbox can be used, and report its back end."""
    directory = Host(sandbox_dir=options.sandbox).directory()
    name = place(directory)
    if Path(directory).exists():
        try:
            back_end = _backend(directory)
            yield from (Finding("directory", "ok", f"{name} can be used"), back_end)
        except SandboxError as error:
            text = f"{name} cannot be used: {error.text.removeprefix('sandbox: ')} ({error.code})"
            yield Finding("directory", "broken", text, "neuroscript call --sandbox DIR …")
        return
    if options.sandbox is not None:
        yield Finding("directory", "broken", f"{name} does not exist", f"mkdir -p {word(directory)}")
        return
    above = next(each for each in Path(directory).absolute().parents if each.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        yield Finding("directory", "ok", f"{name} does not exist yet; it is created when a tool needs it")
    else:
        text = f"{name} does not exist and cannot be created"
        yield Finding("directory", "broken", text, f"chmod u+rwx {word(str(above))}")
    with TemporaryDirectory(prefix="neuroscript-") as folder:
        yield _backend(folder)


def _backend(directory: str) -> Finding:
    opened = Sandbox(directory)
    try:
        return Finding("back end", "ok", f"{opened.backend}: {BACKENDS.get(opened.backend, 'unknown')}")
    finally:
        opened.close()


def directories(options: Namespace) -> Iterator[Finding]:
    """Check the user's directories."""
    config = config_file()
    yield _directory("configuration", None if config is None else str(Path(config).parent))
    yield _directory("data", str(Path(Host().directory()).parent))
    cache = cache_file("any")
    yield _directory("cache", None if cache is None else str(Path(cache).parent))
    yield _directory("plugins", plugins_directory())


def _directory(subject: str, directory: str | None) -> Finding:
    if directory is None:
        return Finding(subject, "warning", "the environment does not define this directory", 'export HOME="…"')
    name = place(directory)
    try:
        if not Path(directory).exists():
            return Finding(subject, "optional", f"{name} does not exist", f"mkdir -p -m 700 {word(directory)}")
        exposed = exposure(directory)
    except OSError as error:
        return Finding(subject, "broken", f"{name} cannot be accessed ({type(error).__name__})")
    if not Path(directory).is_dir():
        fix = f"mv {word(directory)} {word(directory + '.old')}"
        return Finding(subject, "broken", f"{name} is not a directory", fix)
    if exposed is not None:
        return Finding(subject, "broken", f"{name}: {exposed.reason}", _restrict_command(exposed))
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return Finding(subject, "broken", f"{name} is not writable", f"chmod u+rwx {word(directory)}")
    return Finding(subject, "ok", name)


def policy(options: Namespace) -> Iterator[Finding]:
    """Check whether the policy file in use is valid, and whether other users can change it."""
    file = file_of(vars(options))
    if file is None:
        yield Finding("policy", "ok", "no file: only tools that need nothing run, unless options grant more")
        return
    from neuroscript.config.policy_file import load_policy

    name = place(file)
    try:
        load_policy(file, profile=options.profile)
        exposed = exposure(file)
    except (NeuroScriptError, OSError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        yield Finding("policy", "broken", lines[0], f"neuroscript policy check --policy {word(file)}")
        return
    if exposed is not None:
        yield Finding("policy", "broken", exposed.reason, _restrict_command(exposed))
    else:
        yield Finding("policy", "ok", f"{name} is in use")
