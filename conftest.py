"""The code in the documents is run: Python blocks and doctests in this process, console blocks in a shell."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sybil import Example, Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from tests.consoles import FLAGS, commands, is_output

ROOT = Path(__file__).parent
NOWHERE = str(ROOT / "nowhere")
"""Where the user has no policy."""

if "PYTEST_XDIST_WORKER" not in os.environ:
    # The tests of all workers, and the processes that they start, share what they have read of distributions.
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="neuroscript-cache-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

os.environ.setdefault("PYTEST_ADDOPTS", "-p no:langsmith_plugin")
"""The options of each pytest that the tests start; this plugin of another package takes a second to load."""

PLACE = "place of this page"
"""Under which name that directory is kept; no code of a page can have it."""

APART = {"first-toolset.md"}
"""Pages that write files: their commands are run in a directory of their own, one after the other."""


def run_console(example: Example) -> str | None:
    """Run each line that begins with ``$`` in a shell and compare what it prints with the lines below it."""
    for command, expected in commands(example.parsed):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "XDG_CONFIG_HOME": NOWHERE}
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=place_of(example),
            env=environment,
            text=True,
            stdout=-1,
            stderr=subprocess.STDOUT,
        )
        if not is_output(expected, done.stdout):
            return f"$ {command}\nexpected:\n{expected}\ngot:\n{done.stdout}"
    return None


def end_programs(namespace: dict[str, object]) -> None:
    """End the programs that a page has started, if another worker runs the block that would end them."""
    for value in namespace.values():
        if isinstance(value, subprocess.Popen) and value.poll() is None:
            value.terminate()
            value.wait()


def place_of(example: Example) -> Path:
    """Return the directory in which the commands of a page are run."""
    if Path(example.path).name not in APART:
        return ROOT
    if PLACE not in example.namespace:
        example.namespace[PLACE] = Path(tempfile.mkdtemp(prefix="neuroscript-docs-"))
        atexit.register(shutil.rmtree, example.namespace[PLACE])
    place: Path = example.namespace[PLACE]
    return place


pytest_plugins = ["tests.pages", "tests.progress", "tests.reports"]

pytest_collect_file = (
    Sybil(
        parsers=[
            PythonCodeBlockParser(doctest_optionflags=FLAGS),
            CodeBlockParser(language="console", evaluator=run_console),
            SkipParser(),
        ],
        teardown=end_programs,
        patterns=["*.md"],
        excludes=["CHANGELOG.md", "sandbox/**"],
    )
    + Sybil(
        parsers=[DocTestParser(FLAGS)],
        patterns=["src/neuroscript/*.py", "src/neuroscript/*/*.py", "src/neuroscript/*/*/*.py"],
        document_types={".py": PythonDocStringDocument},
    )
).pytest()
