"""Checks of installed packages: versions, extras, plugins, and the programs that plugins use."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final

from neuroscript import RUNTIME_API, __version__
from neuroscript._imports import direct_path, install_hint
from neuroscript.cli.doctor.check import Finding
from neuroscript.cli.env.choices import PLUGINS_VARIABLE, confined_imports, plugin_keywords
from neuroscript.cli.env.plugin_reports import contents, isolated_entries
from neuroscript.discovery.bundles import BUNDLES, EXTRAS
from neuroscript.discovery.catalog import check_distributions, select_offers
from neuroscript.discovery.installed import Distribution, distributions, normalize_name
from neuroscript.errors import PluginError

CORE: Final = ("attrs", "cattrs", "pluggy", "platformdirs")
"""The dependencies of the core."""

LIBRARIES: Final = {
    "cli": ("rich", "argcomplete"),
    "console": ("starlette", "uvicorn", "jinja2", "python-multipart"),
    "functions": ("docstring-parser",),
    "llm": ("llm", "openai"),
    "anthropic": ("anthropic", "llm", "llm-anthropic"),
    "crewai": ("crewai",),
    "durable": ("sqlalchemy", "psycopg"),
    "fastmcp": ("fastmcp", "mcp", "jsonschema-rs"),
    "google-adk": ("google-adk",),
    "inspect-ai": ("inspect-ai",),
    "langchain": ("langchain-core",),
    "llama-index": ("llama-index-core",),
    "mcp": ("mcp", "jsonschema-rs"),
    "msgspec": ("msgspec",),
    "openai-agents": ("openai-agents",),
    "pydantic": ("pydantic",),
    "pydantic-ai": ("pydantic-ai-slim",),
    "otel": ("opentelemetry-api",),
}
"""The libraries of each extra."""

GIT_SECONDS: Final = 5.0
"""Time limit of ``git --version``."""

CONFINEMENT: Final = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from neuroscript_shell.confinement import check
print(json.dumps(check()))
"""
"""Prints whether programs always end with their call, and why."""

CONFINEMENT_SECONDS: Final = 15.0
"""Time limit of the program in `CONFINEMENT`."""

CONFLICT_CODES: Final = ("plugin.duplicate", "plugin.duplicate_entry_point", "plugin.reserved_name")
"""Error codes of a distribution that conflicts with another one."""


def versions(options: Namespace) -> Iterator[Finding]:
    """Check Python, neuroscript and the dependencies of the core."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", "ok", f"{python}, {sys.implementation.name} on {sys.platform}")
    yield Finding("neuroscript", "ok", f"{__version__}, runtime API {'.'.join(map(str, RUNTIME_API))}")
    minimums = _minimum_versions()
    for name in CORE:
        found, least = _version(name), minimums.get(name, "")
        fix = f'pip install "{name}>={least}"' if least else f"pip install {name}"
        if found is None:
            yield Finding(name, "broken", "is not installed", fix)
        elif _numbers(found) < _numbers(least):
            yield Finding(name, "broken", f"{found}, but {least} or later is required", fix)
        else:
            yield Finding(name, "ok", found)


def _minimum_versions() -> dict[str, str]:
    """Return the minimum version of each dependency of the core, from its metadata."""
    try:
        lines = requires("neuroscript") or []
    except PackageNotFoundError:
        lines = []
    found = (re.match(r"([\w.-]+)>=([\d.]+)", line) for line in lines if ";" not in line)
    return {normalize_name(each[1]): each[2] for each in found if each is not None}


def _numbers(version: str) -> tuple[int, ...]:
    numbers = re.match(r"[\d.]*", version)
    return tuple(int(each) for each in (numbers[0] if numbers else "").split(".") if each)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def extras(options: Namespace) -> Iterator[Finding]:
    """Check which extras are installed."""
    for extra, names in {**{extra: (name,) for extra, name in EXTRAS.items()}, **LIBRARIES}.items():
        found = {name: _version(name) for name in names}
        lacking = [name for name, number in found.items() if number is None]
        if lacking:
            is_are = "is" if len(lacking) == 1 else "are"
            yield Finding(extra, "optional", f"{' and '.join(lacking)} {is_are} not installed", install_hint(extra))
        else:
            yield Finding(extra, "ok", ", ".join(f"{name} {number}" for name, number in found.items()))


def plugins(options: Namespace) -> Iterator[Finding]:
    """Load each enabled plugin in a separate process."""
    try:
        found, missing = _selected_distributions(options)
    except PluginError:
        yield Finding(
            PLUGINS_VARIABLE,
            "broken",
            f"names an unknown bundle; choose from {', '.join(BUNDLES)}",
            f"unset {PLUGINS_VARIABLE}",
        )
        return
    yield from _missing_plugins(missing)
    if not found and not missing:
        yield Finding("plugins", "warning", "no plugin is enabled, so there are no tools", install_hint("std"))
    elif found:
        from neuroscript.discovery.probe import TIMEOUT_SECONDS

        with confined_imports(vars(options)) as imports:
            for report in check_distributions(found, options.timeout or TIMEOUT_SECONDS, imports):
                yield _probed(report, isolated_entries(report.distribution, imports))


def _selected_distributions(options: Namespace) -> tuple[Sequence[Distribution], Sequence[PluginError]]:
    keywords = plugin_keywords(vars(options))
    only = keywords.get("plugins")
    return select_offers(distributions(), [] if only == "none" else only, keywords.get("without", ()))


def _missing_plugins(errors: Sequence[PluginError]) -> Iterator[Finding]:
    """Report the missing plugins in the environment variable; only names of this project's distributions are shown."""
    ours = {name: extra for extra, name in EXTRAS.items()}
    known = [normalize_name(error.distribution) for error in errors if normalize_name(error.distribution) in ours]
    for name in known:
        yield Finding(name, "broken", "is enabled but not installed", install_hint(ours[name]))
    others = len(errors) - len(known)
    if others:
        text = f"names {others} distribution{'s' * (others != 1)} that cannot be found"
        yield Finding(PLUGINS_VARIABLE, "broken", text, "neuroscript plugins list")


def _probed(report: Any, isolated: Collection[str]) -> Finding:
    name = str(report.distribution)
    if report.is_usable:
        text = contents(report, isolated)
        return Finding(name, "ok", f"{text}; {report.reason}" if report.reason else text)
    return Finding(name, "broken", f"{report.reason} ({report.code})", _plugin_fix(report))


def _plugin_fix(report: Any) -> str:
    """Return the command that removes a conflicting distribution, or installs a broken one again."""
    key = report.distribution.key
    if report.code in CONFLICT_CODES:
        return f"pip uninstall {key}"
    own = next((extra for extra, name in EXTRAS.items() if name == key), None)
    if own is not None:
        return install_hint(own)
    path, is_editable = direct_path(key) or (None, False)
    if path is None:
        return f"pip install --upgrade {key}"
    return f"pip install --force-reinstall --no-deps {'-e ' if is_editable else ''}{shlex.quote(str(path))}"


def programs(options: Namespace) -> Iterator[Finding]:
    """Check the programs that the enabled toolsets need."""
    try:
        found, _ = _selected_distributions(options)
    except PluginError:
        return
    keys = {each.key for each in found}
    if EXTRAS["git"] in keys:
        yield _git()
    if EXTRAS["shell"] in keys and hasattr(os, "killpg"):
        yield _confinement()


def _confinement() -> Finding:
    """Check in a separate process whether programs of neuroscript-shell always end with their call here."""
    import json

    from neuroscript.cli.terminal.subprocess import run_with_timeout

    words = [sys.executable, "-P", "-c", CONFINEMENT, json.dumps(sys.path)]
    code, out, _ = run_with_timeout(words, CONFINEMENT_SECONDS, {})
    if code != 0:
        return Finding("shell.execute", "broken", "cannot run a program", install_hint("shell"))
    is_promised, text = json.loads(out)
    return Finding("shell.execute", "ok" if is_promised else "warning", text)


def _git() -> Finding:
    import shutil
    import subprocess

    folders = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]  # noqa: PTH117
    program = shutil.which("git", path=os.pathsep.join(folders))
    if program is None:
        return Finding("git", "broken", "is not installed, but neuroscript-git needs it", "apt-get install git")
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=GIT_SECONDS)  # noqa: S603
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Finding("git", "broken", f"cannot be run ({type(error).__name__})", "apt-get install --reinstall git")
    version = re.search(r"\d+(?:\.\d+)+", done.stdout)
    if done.returncode != 0 or version is None:
        return Finding("git", "broken", "does not print its version", "apt-get install --reinstall git")
    return Finding("git", "ok", version[0])
