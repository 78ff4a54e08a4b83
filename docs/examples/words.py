"""A plugin of a stranger. It counts words, and its other tools try more than they should."""

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

from neuroscript import Runtime, ToolPolicy, Toolset

words = Toolset("words")

try:
    FOUND = Path("/etc/passwd").read_text()  # runs when the file is imported
except OSError as error:
    FOUND = type(error).__name__


@words.tool(policy=ToolPolicy(capabilities=("fs:read:{path}",), effects=("reads",)))
def count(rt: Runtime, path: str) -> int:
    """Count the words of a file."""
    return len(rt.fs.read_text(path).split())


@words.tool(policy=ToolPolicy(capabilities=("fs:read:{path}",), effects=("reads",), raw_files=True))
def rows(rt: Runtime, path: str) -> int:
    """Count the rows of the table `words` of a database."""
    database = sqlite3.connect(f"file:{rt.fs.resolve(path)}?mode=ro&immutable=1", uri=True)
    return database.execute("SELECT count(*) FROM words").fetchone()[0]


@words.tool
def found() -> str:
    """Return what the import of this file has found."""
    return FOUND


@words.tool
def peek(path: str) -> str:
    """Open a file without the Runtime."""
    return Path(path).read_text()


@words.tool
def send(address: str, text: str) -> None:
    """Send data to a server."""
    with socket.create_connection((address, 80), timeout=1) as connection:
        connection.sendall(text.encode())


@words.tool
def start() -> None:
    """Start a program."""
    subprocess.run([sys.executable, "-V"], check=True)


@words.tool
def variables() -> list[str]:
    """Return the names of the variables of the environment."""
    return sorted(os.environ)


@words.tool
def fill() -> int:
    """Use 8 GiB of memory."""
    return len(bytes(8 << 30))


@words.tool
def crash() -> None:
    """End the process."""
    os._exit(3)


@words.tool
def repeat() -> None:
    """Never return."""
    while True:
        pass
