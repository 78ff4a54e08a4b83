"""A process with the core and its dependencies, and no other installed package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.doctor.installed import CORE

SOURCE: Final = Path(__file__).parents[1] / "src"

BEGIN: Final = """\
import sys
own = [folder for folder in sys.path if "plugins" not in folder and "-packages" not in folder]
sys.path[:] = sys.argv[1:3] + own
del sys.argv[1:3]
"""


def installed(folder: Path) -> Path:
    """Install the core and its dependencies into a folder, and return the folder."""
    for name in (*CORE, "typing-extensions"):
        library: Any = distribution(name)
        for top in {Path(str(file)).parts[0] for file in library.files} - {".."}:
            (folder / top).symlink_to(library.locate_file(top))
    return folder


def alone(core: Path, code: str, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a process that can import only the core.

    Args:
        core: The folder from `installed`.
        words: The arguments of the process.
    """
    whole = [sys.executable, "-c", f"{BEGIN}{code}", str(SOURCE), str(core), *words]
    return subprocess.run(whole, capture_output=True, text=True, env=env, cwd=core)
