"""The doctor: what it finds, what it calls broken, the line that mends it, and what it never says."""

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
from tests.cli.conftest import ROOT, Ran, command, environment, process
from tests.core_only import alone, installed
from tests.distributions import TOOLSET, Published

from neuroscript import __version__
from neuroscript.cli.doctor.command import PARTS, looks
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
    """A user with directories of their own that are sound, and a choice of no plugin."""
    for name in ("data", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
        (tmp_path / name / "neuroscript").mkdir(parents=True)
    config.parent.mkdir()
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "")
    return tmp_path


def found(ran: Ran, code: int = 0) -> dict[str, dict[str, dict[str, str]]]:
    """Return what the doctor has found, by part and subject."""
    data = json.loads(ran.out)
    assert (ran.code, data["ok"], ran.err) == (code, code == 0, "")
    parts: dict[str, dict[str, dict[str, str]]] = {}
    for look in data["looks"]:
        parts.setdefault(look["part"], {})[look["subject"]] = look
    return parts


def doctor(*words: str, code: int = 0) -> dict[str, dict[str, dict[str, str]]]:
    """Ask it in this process."""
    return found(command("doctor", "--json", *words, make_engine=None), code)


def test_everything_that_is_chosen_works(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    """Each part is there, with versions, tools and directories."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "@files")
    parts = doctor()

    assert [part for part in parts if part != "terminal"] == [
        *("versions", "extras", "plugins", "sandbox", "directories", "policy", "environment")
    ]
    assert {look["state"] for looks in parts.values() for look in looks.values()} <= {"ok", "optional"}
    assert parts["versions"]["Python"]["text"].startswith(".".join(map(str, sys.version_info[:3])))
    assert parts["versions"]["neuroscript"]["text"] == f"{__version__}, runtime API 1.0"
    assert {*CORE} < {*parts["versions"]}
    assert re.fullmatch(r"\d+ tools", parts["plugins"][f"neuroscript-std {__version__}"]["text"])
    assert {*parts["environment"]} >= {"NEUROSCRIPT_PLUGINS", "XDG_CONFIG_HOME", "COLUMNS"}
    assert parts["directories"]["configuration"]["text"] == "$XDG_CONFIG_HOME/neuroscript"
    assert parts["directories"]["plugins"]["mend"] == "mkdir -p -m 700 $XDG_CONFIG_HOME/neuroscript/plugins"


def test_a_person_sees_the_same() -> None:
    """The parts, what sets up what is optional below it, and at last the counts."""
    ran = command("doctor", make_engine=None)

    assert (ran.code, ran.err) == (0, "")
    assert "\n\nplugins\n  plugins           warning   none is chosen, so there are no tools\n" in ran.out
    assert '\n                              pip install "neuroscript[std]"\n' in ran.out
    assert "\n  configuration     ok        $XDG_CONFIG_HOME/neuroscript\n" in ran.out
    assert re.search(
        r"\n\neverything that is chosen works; 1 warning; \d optional parts? (is|are) not set up\n$", ran.out
    )


def test_the_extras_of_libraries_are_those_of_the_project() -> None:
    """And the core needs what is looked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    assert {extra: tuple(re.split("[<>=]", each)[0] for each in extras[extra]) for extra in LIBRARIES} == LIBRARIES
    assert tuple(re.split("[<>=]", each)[0] for each in project["dependencies"]) == CORE


# What is installed

DOCTOR = "import sys\nfrom neuroscript.cli import main\nsys.exit(main(['doctor', *sys.argv[1:]]))"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the core and its libraries are installed, and nothing else."""
    return installed(tmp_path_factory.mktemp("core"))


def asked_alone(core: Path, *words: str, **settings: str) -> Ran:
    """Ask it in a process that finds nothing but the core."""
    done = alone(core, DOCTOR, *words, env=environment(**settings))
    return Ran(done.returncode, done.stdout, done.stderr)


def test_an_extra_that_is_not_installed_is_no_fault(core: Path) -> None:
    """It is optional, and the line that brings it stands beside it."""
    parts = found(asked_alone(core, "--json"))

    assert {extra: (look["state"], look["mend"]) for extra, look in parts["extras"].items()} == {
        extra: ("optional", f'pip install "neuroscript[{extra}]"')
        for extra in ("std", "fs", "git", "http", "shell", *LIBRARIES)
    }
    assert parts["extras"]["cli"]["text"] == "rich and argcomplete are not installed"


def test_one_that_is_chosen_is(core: Path) -> None:
    """A bundle asks for what is not there."""
    parts = found(asked_alone(core, "--json", NEUROSCRIPT_PLUGINS="@web"), 1)

    assert [*parts["plugins"].values()] == [
        {
            "part": "plugins",
            "subject": f"neuroscript-{extra}",
            "state": "broken",
            "text": "is chosen, and is not installed",
            "mend": f'pip install "neuroscript[{extra}]"',
        }
        for extra in ("std", "http")
    ]


@pytest.fixture
def with_site(tmp_path: Path) -> Callable[..., Any]:
    """Return what asks it in a process that finds some distributions besides."""
    site = tmp_path / "site"

    def ask(*published: Published, code: int = 1, **settings: str) -> Any:
        for each in published:
            each.install(site)
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        chosen = ",".join(each.name for each in published)
        settings = {"NEUROSCRIPT_PLUGINS": chosen, "PYTHONPATH": path, **settings}
        return found(process("doctor", "--json", "--seconds", "3", **settings), code)

    return ask


def test_each_plugin_is_loaded_apart(with_site: Callable[..., Any]) -> None:
    """One that hangs and one that ends its process are told of, and the others are looked at."""
    plugins = with_site(
        Published("acme-good", TOOLSET.format(group="acme", name="good")),
        Published("acme-thief", TOOLSET.format(group="acme", name="thief")),
        Published("acme-hang", "while True: pass"),
        Published("acme-exit", "raise SystemExit(3)"),
    )["plugins"]

    assert {name: (look["state"], look["text"], look["mend"]) for name, look in plugins.items()} == {
        "acme-good 1.0": ("ok", "1 tool", ""),
        "acme-thief 1.0": (
            *("broken", "claims acme.who, which acme-good 1.0 has (plugin.duplicate)", "pip uninstall acme-thief"),
        ),
        "acme-hang 1.0": (
            *("broken", "has not been loaded after 3 seconds (plugin.hang)", "pip install --upgrade acme-hang"),
        ),
        "acme-exit 1.0": (
            "broken",
            "entry point acme-exit cannot be loaded: SystemExit: 3 (acme_exit_module.py, line 1) (plugin.exit)",
            "pip install --upgrade acme-exit",
        ),
    }


def test_git_is_looked_for_where_its_toolset_is_chosen(with_site: Callable[..., Any], tmp_path: Path) -> None:
    """And runs; what the path of the environment names relatively does not count."""
    git = Published("neuroscript-git", TOOLSET.format(group="git", name="git"))
    there = with_site(git, code=0)["programs"]["git"]
    (tmp_path / "empty").mkdir()
    gone = with_site(git, PATH=str(tmp_path / "empty"))["programs"]["git"]
    fake = tmp_path / "empty" / "git"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    silent = with_site(git, PATH=str(tmp_path / "empty"))["programs"]["git"]

    assert there["state"] == "ok" and re.fullmatch(r"[\d.]+", there["text"])
    assert (gone["state"], gone["text"]) == ("broken", "is not there, and neuroscript-git needs it")
    assert (silent["state"], silent["text"]) == ("broken", "does not say its version")


# Files and directories


def own(path: Path, files: dict[str, str]) -> Path:
    """Make a directory of plugins."""
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def test_plugins_of_files_are_loaded_apart(config: Path, tmp_path: Path) -> None:
    """Those of the user's own directory, of one that is named, and files that are named."""
    mine = own(
        config.parent / "plugins",
        {"good.py": PLUGIN, "hang.py": "while True: pass", "exit.py": "import os; os._exit(4)"},
    )
    other = own(tmp_path / "other", {"bad.py": "1 +", "open.py": PLUGIN})
    (other / "open.py").chmod(0o666)
    named = tmp_path / "named.py"
    named.write_text(f"print('loud')\n{PLUGIN}")

    words = ("--plugins-dir", str(other), "-p", str(named), "-p", "no:nothing", "--seconds", "2")
    looks = doctor(*words, code=1)["plugins of your own"]
    assert {Path(name).name: (look["state"], look["text"]) for name, look in looks.items()} == {
        "exit.py": ("broken", "ended its process while it was loaded (exit code 4)"),
        "good.py": ("ok", "1 tool"),
        "hang.py": ("broken", "has not been loaded after 2 seconds"),
        "bad.py": ("broken", "cannot be loaded: SyntaxError: invalid syntax (bad.py, line 1)"),
        "open.py": (
            *(
                "broken",
                f"it is not loaded: others than its owner may write to {other / 'open.py'}; 'chmod go-w' mends that",
            ),
        ),
        "named.py": ("ok", "1 tool"),
    }
    assert looks[str(other / "open.py")]["mend"] == f"chmod go-w {other / 'open.py'}"
    assert "$XDG_CONFIG_HOME/neuroscript/plugins/good.py" in looks
    assert mine.is_dir()


def test_the_sandbox_is_tried_and_not_made(home: Path) -> None:
    """Its own is made when it is needed; one that is named may be no directory."""
    before = doctor()["sandbox"]
    (home / "file").write_text("")
    broken = doctor("--sandbox", str(home / "file"), code=1)["sandbox"]["directory"]
    (home / "there").mkdir()
    there = doctor("--sandbox", str(home / "there"))["sandbox"]

    text = "$XDG_DATA_HOME/neuroscript/sandbox is not there yet, and is made when a tool needs it"
    assert (before["directory"]["state"], before["directory"]["text"]) == ("ok", text)
    assert not (home / "data" / "neuroscript" / "sandbox").exists()
    assert broken["text"] == f"{home / 'file'} can not be used: is not a directory (sandbox.type)"
    assert there["directory"]["text"] == f"{home / 'there'} can be used"
    back_ends = {before["back end"]["text"].partition(":")[0], there["back end"]["text"].partition(":")[0]}
    assert back_ends in ({"openat2"}, {"walk"})


def test_each_line_mends_what_it_stands_beside(config: Path, home: Path) -> None:
    """They are run by a shell as they stand; then nothing of the directories is optional or broken."""
    config.parent.chmod(0o777)
    (home / "data" / "neuroscript").chmod(0o770)
    (home / "cache" / "neuroscript").rmdir()
    (home / "cache" / "neuroscript").write_text("")
    before = doctor(code=1)["directories"]
    for look in before.values():
        subprocess.run(["bash", "-c", look["mend"]], check=True, cwd=home)
    between = doctor()["directories"]
    subprocess.run(["bash", "-c", between["cache"]["mend"]], check=True, cwd=home)

    assert {name: look["state"] for name, look in before.items()} == {
        "configuration": "broken",
        "data": "broken",
        "cache": "broken",
        "plugins": "optional",
    }
    assert before["data"]["text"] == (
        "$XDG_DATA_HOME/neuroscript: others than its owner may write to $XDG_DATA_HOME/neuroscript"
    )
    assert before["cache"]["text"] == "$XDG_CACHE_HOME/neuroscript is no directory"
    assert {look["state"] for look in doctor()["directories"].values()} == {"ok"}


def test_a_directory_of_another_user_is_told_of(config: Path) -> None:
    """That user could change what the policy says."""
    os.chown(config.parent, 65534, 65534)
    look = doctor(code=1)["directories"]["configuration"]
    os.chown(config.parent, 0, 0)

    assert look["text"] == "$XDG_CONFIG_HOME/neuroscript: $XDG_CONFIG_HOME/neuroscript belongs to another user"
    assert look["mend"] == "sudo chown $(id -u) $XDG_CONFIG_HOME/neuroscript"


def test_the_policy_in_use_is_read(config: Path, home: Path) -> None:
    """The user's own, or the one that is named; one that is wrong, or that others may write to, is broken."""
    none = doctor()["policy"]["policy"]
    config.write_text("nonsense = 1\n")
    wrong = doctor(code=1)["policy"]["policy"]
    config.write_text('[policy]\nallow = ["math.*"]\n')
    right = doctor()["policy"]["policy"]
    config.chmod(0o666)
    exposed = doctor(code=1)["policy"]["policy"]
    named = doctor("--policy", str(home / "nowhere.toml"), code=1)["policy"]["policy"]

    assert none["text"].startswith("no file: ")
    assert (wrong["state"], wrong["text"]) == ("broken", "neuroscript.toml:1: nonsense: is not known")
    assert wrong["mend"] == "neuroscript policy check --policy $XDG_CONFIG_HOME/neuroscript/neuroscript.toml"
    assert right["text"] == "$XDG_CONFIG_HOME/neuroscript/neuroscript.toml is in use"
    assert exposed["mend"] == "chmod go-w $XDG_CONFIG_HOME/neuroscript/neuroscript.toml"
    assert (named["state"], "nowhere.toml" in named["text"]) == ("broken", True)


# What is around it


@pytest.fixture
def terminal() -> Iterator[int]:
    ours, theirs = pty.openpty()
    yield theirs
    os.close(ours)
    os.close(theirs)


def test_a_terminal_is_found_where_there_is_one(terminal: int) -> None:
    """At any of the three streams."""
    words = [sys.executable, "-m", "neuroscript", "doctor", "--json"]
    nothing = subprocess.DEVNULL
    done = subprocess.run(words, stdin=nothing, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment())
    there = found(Ran(done.returncode, done.stdout))["terminal"]["terminal"]
    done = subprocess.run(words, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, text=True, env=environment())
    none = found(Ran(done.returncode, done.stdout))["terminal"]["terminal"]

    assert (there["state"], there["text"]) == ("ok", "at stderr: approvals can be asked for")
    assert (none["state"], none["mend"]) == ("optional", "neuroscript call --suspend DIR …")


CANARY = "canary7f3a"


def test_no_value_of_the_environment_is_said(tmp_path: Path) -> None:
    """Neither of those that are looked at, nor of any other, whatever is wrong with it."""
    names = ("API_KEY", "NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "NO_COLOR", "TERM", "LANG", "EDITOR")
    settings = dict.fromkeys(names, CANARY)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        folder = tmp_path / f"{CANARY}-{name.lower()}"
        (folder / "neuroscript" / "plugins").mkdir(parents=True)
        (folder / "neuroscript").chmod(0o777)
        (folder / "neuroscript" / "neuroscript.toml").write_text("1 +")
        (folder / "neuroscript" / "sandbox").write_text("")
        settings[name] = str(folder)
    for chosen in (f"{CANARY},neuroscript-std", f"@{CANARY}"):
        for words in ((), ("--json",), ("--plugins-dir", settings["XDG_CONFIG_HOME"] + "/neuroscript/plugins")):
            ran = process("doctor", *words, **{**settings, "NEUROSCRIPT_PLUGINS": chosen})

            assert ran.code == 1
            assert CANARY not in ran.out + ran.err
            assert "NEUROSCRIPT_PLUGINS" in ran.out
            assert ran.out.count("$XDG_CONFIG_HOME/neuroscript") >= 2


def test_a_look_that_fails_is_told_of_and_stops_no_other() -> None:
    """Whatever it raises."""
    (failed,) = looks("doctor.installed:no_such_look", Namespace())
    (other,) = looks("looks_files:sandbox", Namespace())

    assert (failed.state, failed.text) == ("broken", "it can not be looked at further (AttributeError)")
    assert other.state == "broken"
    assert len(PARTS) == 10


def test_it_works_where_hardly_anything_does() -> None:
    """Without a home, without a path, without streams to be asked at, in a directory that has gone."""
    script = 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$0" -m neuroscript doctor --json < /dev/null'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        env={"PATH": "/bin", "HOME": "relative", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )

    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    assert {look["part"] for look in json.loads(done.stdout)["looks"]} >= {"versions", "extras", "sandbox", "policy"}
