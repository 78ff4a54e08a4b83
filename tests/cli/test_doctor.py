"""``neuroscript doctor``: its findings, the commands that fix them, and what it never prints."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tomllib
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, CommandResult, command, environment
from tests.core_only import alone, installed
from tests.distributions import TOOLSET, Published

from neuroscript import __version__
from neuroscript._imports import install_hint
from neuroscript.cli.doctor.command import PARTS, run_check
from neuroscript.cli.doctor.installed import CORE, LIBRARIES

PLUGIN = '''
def who() -> str:
    """Say who it is."""
    return "it"

def register(registrar):
    registrar.toolset("mine").tool()(who)
'''


@pytest.fixture(autouse=True)
def home(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with valid directories, and no enabled plugin."""
    monkeypatch.delenv("TMPDIR", raising=False)  # the output has the names of variables instead of their values
    for name in ("data", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
        (tmp_path / name / "neuroscript").mkdir(parents=True)
    config.parent.mkdir()
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "")
    return tmp_path


def found(result: CommandResult, code: int = 0) -> dict[str, dict[str, dict[str, str]]]:
    """Return the findings by part and subject."""
    data = json.loads(result.out)
    assert (result.code, data["ok"], result.err) == (code, code == 0, "")
    parts: dict[str, dict[str, dict[str, str]]] = {}
    for finding in data["checks"]:
        parts.setdefault(finding["part"], {})[finding["subject"]] = finding
    return parts


def doctor(*words: str, code: int = 0) -> dict[str, dict[str, dict[str, str]]]:
    """Run ``doctor`` in this process."""
    return found(command("doctor", "--json", *words, make_engine=None), code)


def test_valid_installation_has_no_problems(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """Each part is present, with versions, tools and directories."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "@files")
    parts = doctor()

    assert [part for part in parts if part != "terminal"] == [
        *("versions", "extras", "plugins", "sandbox", "directories", "policy", "isolation", "environment")
    ]
    assert {finding["state"] for findings in parts.values() for finding in findings.values()} <= {"ok", "optional"}
    assert parts["versions"]["Python"]["text"].startswith(".".join(map(str, sys.version_info[:3])))
    assert parts["versions"]["neuroscript"]["text"] == f"{__version__}, runtime API 1.2"
    assert {*CORE} < {*parts["versions"]}
    assert re.fullmatch(r"\d+ tools", parts["plugins"][f"neuroscript-std {__version__}"]["text"])
    assert {*parts["environment"]} >= {"NEUROSCRIPT_PLUGINS", "XDG_CONFIG_HOME", "COLUMNS"}
    assert parts["directories"]["configuration"]["text"] == "$XDG_CONFIG_HOME/neuroscript"
    assert parts["directories"]["plugins"]["fix"] == "mkdir -p -m 700 $XDG_CONFIG_HOME/neuroscript/plugins"


def test_readable_output_contains_the_same_findings() -> None:
    """It contains the parts, the install commands of optional parts, and the counts."""
    result = command("doctor", make_engine=None)

    assert (result.code, result.err) == (0, "")
    assert "\n\nplugins\n  plugins           warning   no plugin is enabled, so there are no tools\n" in result.out
    assert f"\n                              {install_hint('std')}\n" in result.out
    assert "\n  configuration     ok        $XDG_CONFIG_HOME/neuroscript\n" in result.out
    assert re.search(r"\n\neverything in use works; 1 warning; \d optional parts? (is|are) not set up\n$", result.out)


def test_checked_extras_are_those_of_the_project() -> None:
    """The dependencies of the core are complete too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    assert {extra: tuple(re.split(r"[\[<>=]", each)[0] for each in extras[extra]) for extra in LIBRARIES} == LIBRARIES
    assert tuple(re.split("[<>=]", each)[0] for each in project["dependencies"]) == CORE


# Installed packages

DOCTOR = "import sys\nfrom neuroscript.cli import main\nsys.exit(main(['doctor', *sys.argv[1:]]))"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with only the core and its libraries installed."""
    return installed(tmp_path_factory.mktemp("core"))


def asked_alone(core: Path, *words: str, **settings: str) -> CommandResult:
    """Run ``doctor`` in a process that finds only the core."""
    done = alone(core, DOCTOR, *words, env=environment(**settings))
    return CommandResult(done.returncode, done.stdout, done.stderr)


def test_missing_extra_is_optional(core: Path) -> None:
    """Its finding contains the install command."""
    parts = found(asked_alone(core, "--json"))

    assert {extra: (finding["state"], finding["fix"]) for extra, finding in parts["extras"].items()} == {
        extra: ("optional", install_hint(extra)) for extra in ("std", "fs", "git", "http", "shell", *LIBRARIES)
    }
    assert parts["extras"]["cli"]["text"] == "rich and argcomplete are not installed"


def test_missing_enabled_plugin_is_broken(core: Path) -> None:
    """A bundle requests it, but it is not installed."""
    parts = found(asked_alone(core, "--json", NEUROSCRIPT_PLUGINS="@online"), 1)

    assert [*parts["plugins"].values()] == [
        {
            "part": "plugins",
            "subject": f"neuroscript-{extra}",
            "state": "broken",
            "text": "is enabled but not installed",
            "fix": install_hint(extra),
        }
        for extra in ("std", "http")
    ]


@pytest.fixture
def with_site(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that runs ``doctor`` in this process with additional distributions."""
    site = tmp_path / "site"

    def ask(*published: Published, code: int = 1, **settings: str) -> Any:
        for each in published:
            each.install(site)
        chosen = ",".join(each.name for each in published)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(site))
            for name, value in {"NEUROSCRIPT_PLUGINS": chosen, **settings}.items():
                patch.setenv(name, value)
            return doctor("--timeout", "3", code=code)

    return ask


def test_plugins_are_loaded_in_separate_processes(with_site: Callable[..., Any]) -> None:
    """A plugin that hangs or exits is reported, and the others are checked."""
    plugins = with_site(
        Published("acme-good", TOOLSET.format(group="acme", name="good")),
        Published("acme-thief", TOOLSET.format(group="acme", name="thief")),
        Published("acme-hang", "import time; time.sleep(600)"),
        Published("acme-exit", "raise SystemExit(3)"),
    )["plugins"]

    assert {name: (finding["state"], finding["text"], finding["fix"]) for name, finding in plugins.items()} == {
        "acme-good 1.0": ("ok", "1 tool", ""),
        "acme-thief 1.0": (
            *(
                "broken",
                "claims acme.who, which acme-good 1.0 already provides (plugin.duplicate)",
                "pip uninstall acme-thief",
            ),
        ),
        "acme-hang 1.0": (
            *("broken", "did not load within 3 seconds (plugin.timeout)", "pip install --upgrade acme-hang"),
        ),
        "acme-exit 1.0": (
            "broken",
            "entry point acme-exit cannot be loaded: SystemExit: 3 (acme_exit_module.py, line 1) (plugin.exit)",
            "pip install --upgrade acme-exit",
        ),
    }


def test_broken_plugin_is_installed_again_from_where_it_came(with_site: Callable[..., Any], tmp_path: Path) -> None:
    """pip does not search for a distribution that came from a directory, nor for one of this project."""
    local, own = Published("acme-exit", "raise SystemExit(3)"), Published("neuroscript-git", "raise SystemExit(3)")
    (metadata := tmp_path / "site" / "acme_exit-1.0.dist-info").mkdir(parents=True)
    (metadata / "direct_url.json").write_text(json.dumps({"url": tmp_path.as_uri(), "dir_info": {"editable": True}}))

    plugins = with_site(local, own)["plugins"]

    assert plugins["acme-exit 1.0"]["fix"] == f"pip install --force-reinstall --no-deps -e {tmp_path}"
    assert plugins["neuroscript-git 1.0"]["fix"] == install_hint("git")


def test_git_is_checked_if_its_toolset_is_enabled(with_site: Callable[..., Any], tmp_path: Path) -> None:
    """git must run; relative directories in PATH are ignored."""
    git = Published("neuroscript-git", TOOLSET.format(group="git", name="git"))
    there = with_site(git, code=0)["programs"]["git"]
    (tmp_path / "empty").mkdir()
    gone = with_site(git, PATH=str(tmp_path / "empty"))["programs"]["git"]
    fake = tmp_path / "empty" / "git"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    silent = with_site(git, PATH=str(tmp_path / "empty"))["programs"]["git"]

    assert there["state"] == "ok" and re.fullmatch(r"[\d.]+", there["text"])
    assert (gone["state"], gone["text"]) == ("broken", "is not installed, but neuroscript-git needs it")
    assert (silent["state"], silent["text"]) == ("broken", "does not print its version")


# Files and directories


def own(path: Path, files: dict[str, str]) -> Path:
    """Create a plugin directory."""
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def test_local_plugins_are_loaded_in_separate_processes(config: Path, tmp_path: Path) -> None:
    """They come from the user's own directory, from ``--plugins-dir`` and from ``-p``."""
    mine = own(
        config.parent / "plugins",
        {"good.py": PLUGIN, "hang.py": "import time; time.sleep(600)", "exit.py": "import os; os._exit(4)"},
    )
    other = own(tmp_path / "other", {"bad.py": "1 +", "open.py": PLUGIN})
    (other / "open.py").chmod(0o666)
    named = tmp_path / "named.py"
    named.write_text(f"print('loud')\n{PLUGIN}")

    words = ("--plugins-dir", str(other), "-p", str(named), "-p", "no:nothing", "--timeout", "2")
    findings = doctor(*words, code=1)["plugins of your own"]
    assert {Path(name).name: (finding["state"], finding["text"]) for name, finding in findings.items()} == {
        "exit.py": ("broken", "exited the process while it was loaded (exit code 4)"),
        "good.py": ("ok", "1 tool"),
        "hang.py": ("broken", "did not load within 2 seconds"),
        "bad.py": ("broken", "cannot be loaded: SyntaxError: invalid syntax (bad.py, line 1)"),
        "open.py": (
            *(
                "broken",
                f"it is not loaded: other users can write to {other / 'open.py'}; run 'chmod go-w' to fix this",
            ),
        ),
        "named.py": ("ok", "1 tool"),
    }
    assert findings[str(other / "open.py")]["fix"] == f"chmod go-w {other / 'open.py'}"
    assert "$XDG_CONFIG_HOME/neuroscript/plugins/good.py" in findings
    assert mine.is_dir()


def test_sandbox_is_checked_and_not_created(home: Path) -> None:
    """The default one is created on demand; a named one may be a file."""
    before = doctor()["sandbox"]
    (home / "file").write_text("")
    broken = doctor("--sandbox", str(home / "file"), code=1)["sandbox"]["directory"]
    (home / "there").mkdir()
    there = doctor("--sandbox", str(home / "there"))["sandbox"]

    text = "$XDG_DATA_HOME/neuroscript/sandbox does not exist yet; it is created when a tool needs it"
    assert (before["directory"]["state"], before["directory"]["text"]) == ("ok", text)
    assert not (home / "data" / "neuroscript" / "sandbox").exists()
    assert broken["text"] == f"{home / 'file'} cannot be used: is not a directory (sandbox.type)"
    assert there["directory"]["text"] == f"{home / 'there'} can be used"
    back_ends = {before["back end"]["text"].partition(":")[0], there["back end"]["text"].partition(":")[0]}
    assert back_ends in ({"openat2"}, {"walk"})


def test_commands_fix_their_problems(config: Path, home: Path) -> None:
    """A shell runs them unchanged; afterwards no directory is optional or broken."""
    config.parent.chmod(0o777)
    (home / "data" / "neuroscript").chmod(0o770)
    (home / "cache" / "neuroscript").rmdir()
    (home / "cache" / "neuroscript").write_text("")
    before = doctor(code=1)["directories"]
    for finding in before.values():
        subprocess.run(["bash", "-c", finding["fix"]], check=True, cwd=home)
    between = doctor()["directories"]
    subprocess.run(["bash", "-c", between["cache"]["fix"]], check=True, cwd=home)

    assert {name: finding["state"] for name, finding in before.items()} == {
        "configuration": "broken",
        "data": "broken",
        "cache": "broken",
        "plugins": "optional",
    }
    assert before["data"]["text"] == ("$XDG_DATA_HOME/neuroscript: other users can write to $XDG_DATA_HOME/neuroscript")
    assert before["cache"]["text"] == "$XDG_CACHE_HOME/neuroscript is not a directory"
    assert {finding["state"] for finding in doctor()["directories"].values()} == {"ok"}


def test_directory_of_another_user_is_broken(config: Path) -> None:
    """That user could change the policy."""
    os.chown(config.parent, 65534, 65534)
    finding = doctor(code=1)["directories"]["configuration"]
    os.chown(config.parent, 0, 0)

    assert finding["text"] == "$XDG_CONFIG_HOME/neuroscript: $XDG_CONFIG_HOME/neuroscript belongs to another user"
    assert finding["fix"] == "sudo chown $(id -u) $XDG_CONFIG_HOME/neuroscript"


def test_policy_in_use_is_checked(config: Path, home: Path) -> None:
    """The user's own file or a named one is broken if it is invalid or other users can write to it."""
    none = doctor()["policy"]["policy"]
    config.write_text("nonsense = 1\n")
    wrong = doctor(code=1)["policy"]["policy"]
    config.write_text('[policy]\nallow = ["math.*"]\n')
    right = doctor()["policy"]["policy"]
    config.chmod(0o666)
    exposed = doctor(code=1)["policy"]["policy"]
    named = doctor("--policy", str(home / "nowhere.toml"), code=1)["policy"]["policy"]

    assert none["text"].startswith("no file: ")
    assert (wrong["state"], wrong["text"]) == ("broken", "neuroscript.toml:1: nonsense: unknown key")
    assert wrong["fix"] == "neuroscript policy check --policy $XDG_CONFIG_HOME/neuroscript/neuroscript.toml"
    assert right["text"] == "$XDG_CONFIG_HOME/neuroscript/neuroscript.toml is in use"
    assert exposed["fix"] == "chmod go-w $XDG_CONFIG_HOME/neuroscript/neuroscript.toml"
    assert (named["state"], "nowhere.toml" in named["text"]) == ("broken", True)


# Environment


@pytest.fixture
def terminal() -> Iterator[int]:
    ours, theirs = pty.openpty()
    yield theirs
    os.close(ours)
    os.close(theirs)


def test_terminal_is_found_on_any_stream(terminal: int) -> None:
    words = [sys.executable, "-m", "neuroscript", "doctor", "--json"]
    nothing = subprocess.DEVNULL
    done = subprocess.run(words, stdin=nothing, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment())
    there = found(CommandResult(done.returncode, done.stdout))["terminal"]["terminal"]
    done = subprocess.run(words, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, text=True, env=environment())
    none = found(CommandResult(done.returncode, done.stdout))["terminal"]["terminal"]

    assert (there["state"], there["text"]) == ("ok", "stderr: tools can ask for approval")
    assert (none["state"], none["fix"]) == ("optional", "neuroscript call --suspend DIR …")


CANARY = "canary7f3a"


def test_values_of_the_environment_are_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for every variable and every problem."""
    names = ("API_KEY", "NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "NO_COLOR", "TERM", "LANG", "EDITOR")
    settings = dict.fromkeys(names, CANARY)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        folder = tmp_path / f"{CANARY}-{name.lower()}"
        (folder / "neuroscript" / "plugins").mkdir(parents=True)
        (folder / "neuroscript").chmod(0o777)
        (folder / "neuroscript" / "neuroscript.toml").write_text("1 +")
        (folder / "neuroscript" / "sandbox").write_text("")
        settings[name] = str(folder)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for chosen in (f"{CANARY},neuroscript-std", f"@{CANARY}"):
        monkeypatch.setenv("NEUROSCRIPT_PLUGINS", chosen)
        for words in ((), ("--json",), ("--plugins-dir", settings["XDG_CONFIG_HOME"] + "/neuroscript/plugins")):
            result = command("doctor", *words, make_engine=None)

            assert result.code == 1
            assert CANARY not in result.out + result.err
            assert "NEUROSCRIPT_PLUGINS" in result.out
            assert result.out.count("$XDG_CONFIG_HOME/neuroscript") >= 2


def test_failing_check_is_reported_and_stops_no_other() -> None:
    """It may raise any exception."""
    (failed,) = run_check("doctor.installed:no_such_check", Namespace())
    (other,) = run_check("looks_files:sandbox", Namespace())

    assert (failed.state, failed.text) == ("broken", "the check failed (AttributeError)")
    assert other.state == "broken"
    assert len(PARTS) == 11


@pytest.mark.slow
def test_doctor_works_in_a_broken_environment() -> None:
    """There is no home, no PATH, no terminal, and the working directory is gone."""
    script = 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$0" -m neuroscript doctor --json < /dev/null'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        env={"PATH": "/bin", "HOME": "relative", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )

    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    assert {finding["part"] for finding in json.loads(done.stdout)["checks"]} >= {
        "versions",
        "extras",
        "sandbox",
        "policy",
    }
