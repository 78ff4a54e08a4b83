"""The core in a process of its own that finds its libraries, and nothing else that is installed here."""

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
    """Install the core's libraries into a folder, and return it."""
    for name in (*CORE, "typing-extensions"):
        library: Any = distribution(name)
        for top in {Path(str(file)).parts[0] for file in library.files} - {".."}:
            (folder / top).symlink_to(library.locate_file(top))
    return folder


def alone(core: Path, code: str, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a process that finds nothing but the core.

    Args:
        core: What `installed` returned.
        words: Its arguments.
    """
    whole = [sys.executable, "-c", f"{BEGIN}{code}", str(SOURCE), str(core), *words]
    return subprocess.run(whole, capture_output=True, text=True, env=env, cwd=core)
