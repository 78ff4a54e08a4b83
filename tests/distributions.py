"""Distributions as publishers build them and installers leave them: sound ones, and fourteen kinds of broken ones."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Final

import attrs

TOOLSET: Final = """
from neuroscript import Toolset
toolset = Toolset("{group}")

@toolset.tool()
def who() -> str:
    return "{name}"
"""

COMPUTED: Final = """
from neuroscript import Toolset, ToolSpec, hookimpl
calls = []

@hookimpl
def neuroscript_toolsets():
    return [Toolset(name) for name in ("even", "odd")] + [numbers()]

def numbers():
    toolset = Toolset("numbers")
    for name, value in (("one", 1), ("two", 2)):
        toolset.add(ToolSpec(name, "numbers", return_type="int"), constant(value))
    return toolset

def constant(value):
    return lambda rt: value

@hookimpl
def neuroscript_decide(call):
    if call.tool == "numbers.two":
        return "is one too many"

@hookimpl
def neuroscript_call_finished(record):
    calls.append(record.tool)
"""


@attrs.frozen
class Published:
    """A distribution of one module with one entry point.

    Attributes:
        code: The source of the module.
        entry: The name of the entry point.
        target: The object in the module; ``""`` is the module itself.
        group: The group of the entry point, ``toolsets`` or ``plugins``.
    """

    name: str
    code: str
    entry: str = ""
    target: str = "toolset"
    group: str = "toolsets"
    version: str = "1.0"

    @property
    def module(self) -> str:
        """The name of its module."""
        return f"{self.name.replace('-', '_').replace('.', '_').lower()}_module"

    def files(self) -> dict[str, str]:
        """Return its files as they are installed."""
        info = f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        colon = ":" if self.target else ""
        return {
            f"{self.module}.py": self.code,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": (
                f"[neuroscript.{self.group}]\n{self.entry or self.name} = {self.module}{colon}{self.target}\n"
            ),
        }

    def install(self, site: Path) -> None:
        """Install it into a folder, as an installer does."""
        for name, text in self.files().items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text)

    def wheel(self, folder: Path) -> Path:
        """Build it, and return the wheel."""
        stem = f"{self.name.replace('-', '_')}-{self.version}"
        record = f"{stem}.dist-info/RECORD"
        path = folder / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            lines = []
            for name, text in self.files().items():
                wheel.writestr(name, text)
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
                lines.append(f"{name},sha256={digest},{len(text.encode())}\n")
            wheel.writestr(record, "".join([*lines, f"{record},,\n"]))
        return path


HEALTHY: Final = (
    Published("acme-good", TOOLSET.format(group="acme", name="good"), "acme"),
    Published("zeta-good", COMPUTED, target="", group="plugins"),
)


@attrs.frozen
class Broken:
    """A fault of a distribution, and its error."""

    published: Published
    code: str
    reason: str


def _broken(name: str, code: str, told: str, reason: str, **how: str) -> Broken:
    return Broken(Published(f"broken-{name}", code, **how), f"plugin.{told}", reason)


_DECLARING = 'from neuroscript import Toolset\ntoolset = Toolset("g", runtime_api={api})\n'
_SPEC = "from neuroscript import ArgSpec, Toolset, ToolSpec\n"

BROKEN: Final = (
    _broken(
        "import",
        "raise ImportError('canary')",
        "import",
        "entry point broken-import cannot be loaded: ImportError: canary (broken_import_module.py, line 1)",
    ),
    _broken(
        "exit",
        "raise SystemExit(3)",
        "exit",
        "entry point broken-exit cannot be loaded: SystemExit: 3 (broken_exit_module.py, line 1)",
    ),
    _broken("hang", "import threading\nthreading.Event().wait()", "timeout", "did not load within {limit:g} seconds"),
    _broken("object", "toolset = 5", "object", "entry point broken-object is not a Toolset but a int"),
    _broken(
        "halfway",
        "from neuroscript import Toolset, hookimpl\n"
        "@hookimpl\ndef neuroscript_toolsets():\n    made = [Toolset('half')]\n    made[0].tool()(good)\n"
        "    raise ValueError('canary')\n\ndef good() -> int:\n    return 1\n",
        "hook",
        "entry point broken-halfway cannot be used: neuroscript_toolsets failed: "
        "ValueError: canary (broken_halfway_module.py, line 6)",
        target="",
        group="plugins",
    ),
    _broken(
        "duplicate",
        f"{TOOLSET.format(group='acme', name='thief')}\n@toolset.tool()\ndef more() -> int:\n    return 1\n",
        "duplicate",
        "claims acme.who, which acme-good 1.0 already provides",
    ),
    _broken(
        "canonical",
        f"{_SPEC}toolset = Toolset('other')\ntoolset.add(ToolSpec('WHO', 'Tool.tool.ACME'), lambda rt: 1)\n",
        "duplicate",
        "claims acme.who, which acme-good 1.0 already provides",
    ),
    _broken(
        "old-api",
        _DECLARING.format(api=(0, 9)),
        "api",
        "entry point broken-old-api requires runtime API 0.9, but this is 1.2",
    ),
    _broken(
        "new-api",
        _DECLARING.format(api=(2, 0)),
        "api",
        "entry point broken-new-api requires runtime API 2.0, but this is 1.2",
    ),
    _broken(
        "spec",
        f"{_SPEC}toolset = Toolset('bad')\n"
        "toolset.add(ToolSpec('f', 'bad', [ArgSpec('x', 'int', default=1, minimum=2)]), lambda rt, x: x)\n",
        "spec",
        "entry point broken-spec cannot be loaded: argument x: the default does not fit: "
        "expected int of at least 2, got int out of bounds",
    ),
    _broken(
        "mutating",
        f"{_SPEC}toolset = Toolset('calm')\nspec = ToolSpec('f', 'calm')\ntoolset.add(spec, lambda rt: 1)\n"
        "object.__setattr__(spec, 'group', 'acme')\n",
        "spec",
        "entry point broken-mutating cannot be used: toolset calm: calm.f was changed after it was added",
    ),
    _broken(
        "slow",
        f"import time\ntime.sleep(2.3)\n{TOOLSET.format(group='slow', name='slow')}",
        "slow",
        "takes more than {slow:g} seconds to load",
    ),
    _broken(
        "shadow",
        TOOLSET.format(group="fs", name="shadow"),
        "reserved_name",
        "uses the name fs, which belongs to neuroscript-fs",
    ),
    _broken(
        "twin",
        TOOLSET.format(group="twin", name="twin"),
        "duplicate_entry_point",
        "its entry point acme has the same name as one of acme-good 1.0",
        entry="acme",
    ),
)
"""The fourteen faults; each is detected with its code and message."""

SHIPPING: Final = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from neuroscript.discovery.package_index import FILE, METADATA, index_to_data
from neuroscript.discovery.index_builder import index, load
from neuroscript.discovery.installed import distributions
for each in distributions(sys.argv[1:2]):
    folder = os.path.join(each.folder, METADATA)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, FILE), "w") as file:
        json.dump(index_to_data(each, tuple(map(index, load(each)))), file)
"""


def age(folder: Path) -> None:
    """Set the times of all files of a folder to an hour ago, so that a reader notices each later change."""
    hour = time.time() - 3600
    for each in (*folder.rglob("*"), folder):
        os.utime(each, (hour, hour))


def ship(site: Path) -> None:
    """Add an index to each distribution in a folder, as its publisher would."""
    subprocess.run([sys.executable, "-c", SHIPPING, str(site)], check=True)
