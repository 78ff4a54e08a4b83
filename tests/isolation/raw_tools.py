"""Tools that open files by path, and that start programs."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess

from neuroscript import Runtime, ToolPolicy, Toolset

raw = Toolset("raw")

TREE = ("fs:read:{directory}/**", "fs:write:{directory}/**", "fs:delete:{directory}/**")


def attempt(path: str, how: str) -> str:
    """Return what came of the use of a path."""
    try:
        if how == "read":
            with open(path, encoding="utf-8") as file:
                return file.read()
        if how == "list":
            return ",".join(sorted(os.listdir(path)))
        if how == "write":
            with open(path, "w", encoding="utf-8") as file:
                return str(file.write("new"))
        os.unlink(path)
    except OSError as error:
        return "PermissionError" if error.errno == errno.EROFS else type(error).__name__
    return "deleted"


@raw.tool(policy=ToolPolicy(raw_files=True, capabilities=("fs:read:{permitted}",), effects=("reads",)))
def read(rt: Runtime, permitted: str, path: str) -> str:
    """Read a file by path."""
    return attempt(os.path.join(rt.sandbox_dir, path), "read")


@raw.tool(policy=ToolPolicy(raw_files=True, capabilities=TREE, effects=("reads", "writes", "deletes")))
def use(rt: Runtime, directory: str, path: str, how: str) -> str:
    """Use a file of a directory by path."""
    return attempt(os.path.join(rt.sandbox_dir, path), how)


@raw.tool(policy=ToolPolicy(raw_files=True, capabilities=("fs:read:data/*", "fs:read:any?"), effects=("reads",)))
def by_glob(rt: Runtime, path: str) -> str:
    """Read a file that globs within a name permit, which the kernel does not know."""
    return attempt(os.path.join(rt.sandbox_dir, path), "read") + " " + rt.fs.read_text(path)


@raw.tool(policy=ToolPolicy(capabilities=TREE, effects=("reads",)))
def undeclared(rt: Runtime, directory: str, path: str) -> str:
    """Read a file by path without having declared that."""
    return attempt(os.path.join(rt.sandbox_dir, path), "read")


@raw.tool(policy=ToolPolicy(capabilities=TREE, effects=("reads",)))
def pin(rt: Runtime, directory: str) -> str:
    """Pin a path without having declared that."""
    with rt.fs.pinned(directory) as path:
        return path


@raw.tool(policy=ToolPolicy(raw_files=True, capabilities=TREE, effects=("reads", "writes", "deletes")))
def database(rt: Runtime, directory: str) -> list[int]:
    """Create and read a database."""
    with rt.fs.pinned(directory) as path:
        connection = sqlite3.connect(os.path.join(path, "own.db"))
        connection.execute("create table t (x integer)")
        connection.executemany("insert into t values (?)", [(1,), (2,)])
        connection.commit()
        found = [row[0] for row in connection.execute("select x from t")]
        connection.close()
    return found


@raw.tool(policy=ToolPolicy(capabilities=("shell:exec:{program}",), effects=("exec",)))
def run(program: str, other: str) -> str:
    """Run a program that may differ from the granted one."""
    try:
        return subprocess.run([other, "x"], capture_output=True, text=True, check=False).stdout
    except OSError as error:
        return type(error).__name__
