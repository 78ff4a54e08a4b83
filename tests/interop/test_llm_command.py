"""The toolbox of an engine in the command ``llm``."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from tests.interop.llm_calls import WRONG, engine_of
from tests.interop.llm_models import Scripted
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.server import ModelServer, asks, call, says
from tests.terminals import Terminal

from neuroscript import RegistryError, from_function
from neuroscript.cli.chat.llm_toolbox import NeuroScript, with_toolbox_prefix
from neuroscript.llm.offered_tools import offer_tools

ROOT = Path(__file__).parents[2]


PLUGIN = '''
"""Tools of a shop; each records its calls in the file "calls"."""

from pathlib import Path

from neuroscript import ToolPolicy


def calls(*values):
    with Path("calls").open("a") as file:
        print(*values, file=file)


def register(registrar):
    tools = registrar.toolset("shop")

    @tools.tool(policy=ToolPolicy(effects=("writes",)))
    def add(tea: int) -> int:
        """Add to the stock."""
        calls("add", repr(tea))
        return tea + 1

    @tools.tool(policy=ToolPolicy(effects=("deletes",), requires_approval=True))
    def clear() -> int:
        """Throw all away."""
        calls("clear")
        return 0
'''


class Place:
    """A user of the command ``llm`` with a local model and the plugin above."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.folder, self.server = folder, server
        info = folder / "site" / "shop_llm-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-llm\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[llm]\nneuroscript = {ENTRY}\n")
        plugins = folder / "config" / "neuroscript" / "plugins"
        plugins.mkdir(parents=True, mode=0o700)
        (plugins / "shop.py").write_text(PLUGIN)
        (folder / "llm").mkdir()
        model = {"model_id": "local", "model_name": "tiny", "api_base": server.base_url(), "supports_tools": True}
        (folder / "llm" / "extra-openai-models.yaml").write_text(json.dumps([model]))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the process."""
        path = os.pathsep.join([str(self.folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
        own = {"LLM_USER_PATH": "llm", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache"}
        folders = {name: str(self.folder / each) for name, each in own.items()}
        return {**os.environ, **folders, "PYTHONPATH": path, "NEUROSCRIPT_PLUGINS": "", "LLM_LOAD_PLUGINS": "shop-llm"}

    def policy(self, text: str, name: str = "config/neuroscript/neuroscript.toml") -> None:
        """Write a policy, by default the user's own."""
        (self.folder / name).write_text(text)

    def run(self, *words: str, code: int = 0) -> str:
        """Run the command, check its exit code, and return its output."""
        done = subprocess.run(
            [sys.executable, "-m", "llm", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # hides the terminal of the test run
        )
        assert code == done.returncode, done.stdout
        return done.stdout

    @property
    def calls(self) -> str:
        """The calls of the tools, one per line."""
        file = self.folder / "calls"
        return file.read_text() if file.exists() else ""

    @property
    def results(self) -> list[str]:
        """The results in the last request to the model."""
        return [each["content"] for each in self.server.requests[-1].body["messages"] if each["role"] == "tool"]

    @property
    def offered(self) -> list[str]:
        """The names of the tools in the last request."""
        return [each["function"]["name"] for each in self.server.requests[-1].body.get("tools", ())]


ENTRY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["llm"]["neuroscript"]


@pytest.fixture
def place(tmp_path: Path, server: ModelServer) -> Place:
    return Place(tmp_path, server)


TYPED = """
import os, sys
os.chdir({folder!r})
os.environ.clear()
os.environ.update({environment!r})
os.execv(sys.executable, [sys.executable, "-m", "llm", "-m", "local", "--no-stream", "-T", "NeuroScript", "hi"])
"""


@pytest.mark.slow
def test_the_command_offers_the_permitted_tools(place: Place) -> None:
    """Values are exact, an error is returned, and an approval is requested at the terminal, as by our own command.

    ``llm -c`` continues with the same toolbox. Without a terminal it does not offer what needs an approval.
    """
    place.policy("[policy]\ngrants = []\n")
    add, clear = "NeuroScript_shop__add", "NeuroScript_shop__clear"
    place.server.script(asks(call(add, {"tea": "2"})), asks(call(add, {"tea": "two"})), asks(call(clear)), says("done"))
    terminal = Terminal(TYPED.format(folder=str(place.folder), environment=place.environment))
    try:
        card = terminal.see("Allow shop.clear? [n] ")
        before = place.calls
        terminal.type("y\n")
        terminal.see("done\r\n")
        terminal.close()
    finally:
        terminal.child.kill()
    results, offered = place.results, place.offered
    place.server.script(asks(call(add, {"tea": 7})), says("again"))
    second = place.run("-c", "more")

    assert "about:     | Throw all away." in card
    assert (before, results) == ("add 2\n", ["3", WRONG.replace("count", "tea"), "0"])
    assert (sorted(offered), second, place.offered) == ([add, clear], "again\n", [add])
    assert (place.results[-1], place.calls) == ("8", "add 2\nclear\nadd 7\n")


@pytest.fixture
def here(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same environment, in this process."""
    monkeypatch.chdir(place.folder)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "NEUROSCRIPT_PLUGINS"):
        monkeypatch.setenv(name, place.environment[name])
    return place


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"tools": "stock.*"}, "llm: tools: stock.* matches no tool that may be called here"),
        (
            {"tools": ["shop.*"], "profile": "night"},
            "--profile needs a policy file; add --policy FILE",
        ),
        ({"policy": "none.toml"}, "none.toml: cannot be read: no such file or directory"),
        ({"tools": 5}, "llm: tools: expected patterns as strings, such as math.*"),
        ({"tools": None}, "llm: tools: expected patterns as strings, such as math.*"),
        ({"tools": ["shop.*", 5]}, "llm: tools: expected patterns as strings, such as math.*"),
    ],
    ids=["pattern", "profile", "policy", "number", "nothing", "among strings"],
)
def test_an_invalid_option_is_one_line(here: Place, words: dict[str, Any], text: str) -> None:
    """``llm`` shows such an exception without a traceback."""
    with pytest.raises(ClickException) as caught:
        NeuroScript(**words)

    assert (str(caught.value), caught.value.__context__) == (text, None)


def test_an_explicit_policy_applies(here: Place) -> None:
    """A denied tool is not offered, and not called if the model requests it."""
    here.policy('[policy]\ndeny = ["shop.add"]\npreapproved = ["shop.clear"]\n', "mine.toml")
    model = Scripted([("NeuroScript_shop__add", {"tea": 1}), ("NeuroScript_shop__clear", {})], "")
    model.chain("", tools=[NeuroScript(policy="mine.toml")]).text()

    assert (model.results, here.calls) == (['Error: tool "NeuroScript_shop__add" does not exist', "0"], "clear\n")


def test_a_policy_in_the_working_directory_is_ignored(here: Place) -> None:
    """Another user may have written it; the user's own policy applies."""
    here.policy('[policy]\ndeny = ["*"]\n', "neuroscript.toml")
    before = [each.name for each in NeuroScript("shop.*").tools()]
    here.policy('[policy]\nallow = ["shop.clear"]\npreapproved = ["shop.clear"]\n')
    after = [each.name for each in NeuroScript(["shop.*"]).tools()]

    assert (before, after) == (["NeuroScript_shop__add"], ["NeuroScript_shop__clear"])


def test_the_engine_ends_with_the_toolbox(here: Place) -> None:
    """Or with the process, whichever comes first."""
    box = NeuroScript("shop.add")
    (tool,) = box.tools()
    session = box._offered[0].session
    value, before = tool.implementation(tea="1").output, session.is_closed
    del box, tool
    gc.collect()

    assert (value, before, session.is_closed) == ("2", False, True)


def test_truncated_names_are_unique(here: Place) -> None:
    """A name that is too long for the API is truncated, and the model's name leads to the right tool."""
    names = [f"{'very_' * 12}{each}" for each in ("long", "lone")]

    with engine_of(*(_named(name) for name in names)) as engine:
        tools = with_toolbox_prefix(offer_tools(engine, subject="llm"))

    assert len({each.name for each in tools}) == 2 and all(len(each.name) <= 64 for each in tools)
    assert all(each.name.startswith("NeuroScript_g__very_") for each in tools)
    assert tools[0].names.tool(tools[0].name) == f"g.{names[1]}"


def test_a_name_collision_is_refused() -> None:
    """The prefix of the toolbox can truncate a name to that of another tool; neither may hide the other."""
    long = "x" * 60
    with engine_of(_named(long)) as engine:
        (cut,) = with_toolbox_prefix(offer_tools(engine, subject="llm"))
        engine.register(from_function(_named(cut.name.removeprefix("NeuroScript_g__")), group="g"))
        with pytest.raises(RegistryError) as caught:
            with_toolbox_prefix(offer_tools(engine, subject="llm"))

    assert str(caught.value).endswith(f"and g.{long} would both be named {cut.name}")


def _named(name: str) -> Callable[..., Any]:
    def tell() -> int:
        return 1

    tell.__name__ = name
    return tell


LOADED = """
import sys
import llm
print(*sorted(llm.get_tools()), *[name for name in sys.modules if name.startswith("neuroscript")])
from neuroscript.llm import model
print(model("local").name)
"""


@pytest.mark.slow
def test_llm_imports_our_modules_lazily(place: Place) -> None:
    """A broken policy does not affect other plugins, and our own command still works."""
    place.policy("nonsense = 1\n")
    done = subprocess.run([sys.executable, "-c", LOADED], env=place.environment, capture_output=True, text=True)
    ours = ["", ".cli", ".cli.chat", "._imports", ".cli.chat.llm_toolbox"]
    loaded = [f"neuroscript{name}" for name in ours]

    assert done.stderr == ""
    assert done.stdout.split() == ["NeuroScript", "llm_time", "llm_version", *loaded, "local"]
