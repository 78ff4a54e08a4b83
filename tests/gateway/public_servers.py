"""Twelve public MCP servers, each at one version: six from npm, and six from PyPI in environments of their own."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final

from tests import npm_packages

NPM: Final = {
    "everything": ("@modelcontextprotocol/server-everything", "2026.8.31"),
    "files": ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    "memory": ("@modelcontextprotocol/server-memory", "2026.8.31"),
    "thinking": ("@modelcontextprotocol/server-sequential-thinking", "2026.8.31"),
    "context": ("@upstash/context7-mcp", "4.1.1"),
    "calc": ("@coo-quack/calc-mcp", "2.1.1"),
}
"""The package and the version of each server."""

PYPI: Final = {
    "mcp-2": (
        "mcp==2.3.0",
        "mcp-server-time==2026.10.19",
        "mcp-server-git==2026.10.19",
        "mcp-server-fetch==2026.10.24",
        "markitdown-mcp==0.0.1a8",
    ),
    "mcp-1": ("mcp<2", "mcp-server-sqlite==2025.4.25", "mcp-server-calculator==0.2.0"),
}
"""The packages of each environment: some servers need an earlier SDK."""

INSTALL_SECONDS: Final = 600
"""How long an installation may take."""


def environment(name: str) -> Path:
    """Return the directory with the programs of an environment; the first call installs it.

    Raises:
        OSError: The packages cannot be installed.
    """
    place = npm_packages.CACHE / f"servers-{name}-{sys.version_info.major}.{sys.version_info.minor}"
    done = place / "installed"
    if not done.exists():
        venv.create(place, symlinks=True, clear=True)
        pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet"]
        try:
            subprocess.run([*pip, *PYPI[name]], check=True, timeout=INSTALL_SECONDS)
        except subprocess.SubprocessError:
            raise OSError(f"{', '.join(PYPI[name])} cannot be installed") from None
        done.touch()
    return place / "bin"


def commands(directory: Path) -> dict[str, list[str]]:
    """Return the command of each server.

    Args:
        directory: The directory that the servers use: an empty one, which becomes a repository of git.

    Raises:
        OSError: A server cannot be installed.
    """
    repository, files = directory / "repository", directory / "files"
    files.mkdir()
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    found = {name: npm_packages.installed(*package, "dist/index.js") for name, package in NPM.items()}
    found["files"] = [*found["files"], str(files)]
    new, old = environment("mcp-2"), environment("mcp-1")
    return {
        **found,
        "time": [str(new / "mcp-server-time"), "--local-timezone", "UTC"],
        "git": [str(new / "mcp-server-git"), "--repository", str(repository)],
        "fetch": [str(new / "mcp-server-fetch"), "--ignore-robots-txt", "--allow-private-ips"],
        "markdown": [str(new / "markitdown-mcp")],
        "sqlite": [str(old / "mcp-server-sqlite"), "--db-path", str(directory / "data.sqlite")],
        "calculator": [str(old / "mcp-server-calculator")],
    }


def calls(directory: Path, url: str, mark: str) -> dict[str, tuple[str, dict[str, Any], str]]:
    """Return a call of each server with arguments that contain a mark, and what its result has to contain.

    Args:
        directory: The one of `commands`.
        url: A page on this machine that responds with its own path.
        mark: A word of one client; the results of servers that return their arguments contain it.
    """
    thought = {"thought": mark, "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    file, note = str(directory / "files" / f"{mark}.txt"), directory / "files" / f"{mark}.md"
    note.write_text(f"# {mark}\n")
    entity = {"name": mark, "entityType": "note", "observations": [mark]}
    repository = str(directory / "repository")
    return {
        "everything": ("echo", {"message": mark}, mark),
        "files": ("write_file", {"path": file, "content": mark}, mark),
        "memory": ("create_entities", {"entities": [entity]}, ""),
        "thinking": ("sequentialthinking", thought, "thoughtNumber"),
        "context": ("resolve_library_id", {"query": mark, "libraryName": mark}, ""),
        "calc": ("base64", {"input": mark, "action": "encode"}, ""),
        "time": ("convert_time", {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}, "21:30"),
        "git": ("git_status", {"repo_path": repository}, "Repository status"),
        "fetch": ("fetch", {"url": f"{url}/{mark}", "raw": True}, mark),
        "markdown": ("convert_to_markdown", {"uri": note.as_uri()}, mark),
        "sqlite": ("read_query", {"query": f"SELECT '{mark}' AS mark"}, mark),
        "calculator": ("calculate", {"expression": f"{len(mark)} * 1000 + 7"}, str(len(mark) * 1000 + 7)),
    }
