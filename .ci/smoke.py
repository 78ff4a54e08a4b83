"""Build every distribution, and use the built wheels in an environment that has nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for project in PROJECTS:
            run(sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(project))
        wheels = sorted((folder / "dist").glob("*.whl"))
        for wheel in wheels:
            check_wheel(wheel)
        use(wheels, folder)
    print(f"{len(wheels)} wheels and as many source distributions built, installed and used")


def check_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("/py.typed") for name in names), f"{wheel.name} has no py.typed"
    assert not any(name.startswith("tests/") for name in names), f"{wheel.name} brings tests along"


def use(wheels: list[Path], folder: Path) -> None:
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *map(str, wheels))
    code = (
        "from neuroscript import Engine; engine = Engine(); "
        "print(engine.call('math.add', (2, ' 3 ')), 'fs.read' in engine.tools, engine.plugin_errors)"
    )
    assert run(python, "-c", code, cwd=folder) == "5.0 True ()\n"


def run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{command[1:4]} failed:\n{done.stdout}"
    return done.stdout


if __name__ == "__main__":
    main()
