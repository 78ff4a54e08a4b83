"""Tools of ours in ``llm``, in its Python API and in its command, and tools and toolboxes of ``llm`` in ours."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llm
import pytest
from click import ClickException
from tests.interop.llm_models import AsyncScripted, Scripted
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.server import ModelServer, asks, call, says
from tests.terminals import Terminal

from neuroscript import (
    Approval,
    ApprovalRequest,
    Engine,
    ExecutionPolicy,
    PolicyError,
    RegistryError,
    SpecError,
    ToolFailed,
    ToolPolicy,
    Toolset,
    from_function,
)
from neuroscript.audit import MemoryAudit
from neuroscript.cli.chat.llm_toolbox import NeuroScript, renamed
from neuroscript.interop.llm import from_llm, to_llm
from neuroscript.llm.offered_tools import offered

ROOT = Path(__file__).parents[2]
GIF = b"GIF89a\x01\x00\x01\x00"


WRONG = (
    "Error: error coercion.format: count: expected int, got str (a string must be a decimal integer, such as 42). "
    "Fix the arguments and call again."
)
"""What a model reads where it has written no number."""


NOTHING = ToolPolicy()


def engine_of(*functions: Callable[..., Any], needs: ToolPolicy = NOTHING, **options: Any) -> Engine:
    """Return an engine whose tools are these functions, in the group ``g``."""
    tools = tuple(from_function(each, group="g", policy=needs) for each in functions)
    return Engine(toolsets=[Toolset("g", tools)], plugins="none", **options)


def times(text: str, count: int) -> str:
    """Repeat a text."""
    return text * count


# Out: the Python API


def test_arguments_arrive_exact_that_llm_alone_delivers_as_they_were_written() -> None:
    """It checks nothing: the very function gets a text where it wants a number."""
    alone = Scripted([("times", {"text": "ab", "count": "2"})], "")
    alone.chain("", tools=[times]).text()
    model = Scripted([("g__times", {"text": "ab", "count": "2"})], "done")

    with engine_of(times) as engine:
        text = model.conversation().chain("Say it twice", tools=to_llm(engine)).text()

    assert alone.heard == ["Error: can't multiply sequence by non-int of type 'str'"]
    assert (model.heard, text) == (["abab"], "done")


def test_an_error_names_the_argument_and_the_model_mends_the_call() -> None:
    """What it reads is our text, behind what ``llm`` writes before each error."""
    model = Scripted([("g__times", {"text": "ab", "count": "two"})], [("g__times", {"text": "ab", "count": 2.0})], "")

    with engine_of(times) as engine:
        model.chain("", tools=to_llm(engine)).text()

    assert model.heard == [WRONG, "abab"]


def test_a_denied_tool_is_not_offered_and_can_not_be_called() -> None:
    """Nor can it be asked for by a pattern."""
    ran: list[str] = []

    def wipe() -> int:
        ran.append("wipe")
        return 1

    model = Scripted([("g__wipe", {})], "")
    with engine_of(times, wipe) as engine:
        denying = engine.session(policy=ExecutionPolicy(deny=["g.wipe"]))
        tools = to_llm(denying)
        model.chain("", tools=tools).text()
        with pytest.raises(SpecError) as caught:
            to_llm(denying, tools="g.wipe")
        with pytest.raises(SpecError):
            to_llm(denying, tools=["g.times", "h.*"])

    assert ([each.name for each in tools], ran) == (["g__times"], [])
    assert model.heard == ['Error: tool "g__wipe" does not exist']
    assert str(caught.value) == "to_llm: tools: g.wipe matches no tool that may be called here"


def test_what_is_denied_later_is_refused_when_the_model_asks() -> None:
    """The tool was offered before."""
    model = Scripted([("g__times", {"text": "a", "count": 1})], "")

    with engine_of(times) as engine, engine.session() as session:
        tools = to_llm(session)
        session._stop()
        model.chain("", tools=tools).text()

    assert model.heard == [
        "Error: error policy.stopped: the session was stopped by an approver. "
        "Only the host can change that; do not repeat this call."
    ]


def test_who_approves_and_the_trail_see_the_exact_values() -> None:
    """And the trail knows the call."""
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approval:
        asked.append(request)
        return Approval.approve()

    audit = MemoryAudit()
    model = Scripted([("g__times", {"text": "ab", "count": "2"})], "")
    policy = ExecutionPolicy(approver=approve)

    with engine_of(times, needs=ToolPolicy(requires_approval=True), policy=policy, audit=audit) as engine:
        model.chain("", tools=to_llm(engine)).text()

    assert [each.arguments for each in asked] == [{"text": "ab", "count": 2}]
    assert [(each.tool, each.types) for each in audit.records if each.kind == "outcome"] == [("g.times", (str, int))]


def test_a_call_that_is_not_approved_is_refused() -> None:
    """A tool that nobody here can approve is not even offered."""
    model = Scripted([("g__times", {"text": "ab", "count": 2})], "")
    alone = Scripted([("g__times", {"text": "ab", "count": 2})], "")
    policy = ExecutionPolicy(approver=lambda request: Approval.reject("not today"))

    with engine_of(times, needs=ToolPolicy(requires_approval=True), policy=policy) as engine:
        model.chain("", tools=to_llm(engine)).text()
    with engine_of(times, needs=ToolPolicy(requires_approval=True)) as engine:
        alone.chain("", tools=to_llm(engine)).text()

    assert model.heard == [
        "Error: error policy.rejected: was not approved: not today. This call cannot succeed; do not repeat it."
    ]
    assert alone.heard == ['Error: tool "g__times" does not exist']


def test_calls_of_one_turn_run_at_once_for_an_async_model() -> None:
    """Each waits for the other."""
    meeting = threading.Barrier(2, timeout=20)

    def meet(at: int) -> int:
        meeting.wait()
        return at

    model = AsyncScripted([("g__meet", {"at": "1"}), ("g__meet", {"at": "2"})], "done")

    async def run() -> str:
        return str(await model.conversation().chain("", tools=to_llm(engine, is_async=True)).text())

    with engine_of(meet, needs=ToolPolicy(blocking=True)) as engine:
        text = asyncio.run(run())

    assert (model.heard, text) == (["1", "2"], "done")


def test_a_cancelled_loop_cancels_its_calls() -> None:
    """The tool is told, and nothing of it goes on."""
    heard: list[str] = []

    async def run() -> None:
        begun = asyncio.Event()

        async def wait() -> int:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                heard.append("cancelled")
                raise
            return 1

        async with engine_of(wait) as engine:
            tools = to_llm(engine, is_async=True)
            chain = AsyncScripted([("g__wait", {})], "").chain("", tools=tools)
            task = asyncio.ensure_future(chain.text())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())

    assert heard == ["cancelled"]


def test_an_async_model_takes_the_tools_of_a_sync_one_and_the_other_way_round() -> None:
    """One after the other then; errors are errors there too."""
    sync, wrong = Scripted([("g__times", {"text": "a", "count": "2"})], ""), {"text": "a", "count": "x"}
    later = AsyncScripted([("g__times", {"text": "a", "count": "2"})], [("g__times", wrong)], "")

    async def run(engine: Engine) -> None:
        await later.chain("", tools=to_llm(engine)).text()

    with engine_of(times) as engine:
        sync.chain("", tools=to_llm(engine, is_async=True)).text()
        asyncio.run(run(engine))

    assert sync.heard == ["aa"]
    assert later.heard == ["aa", WRONG]


def test_a_sync_model_may_be_asked_where_a_loop_runs() -> None:
    """As in a notebook; a coroutine tool runs in a loop of the engine then."""

    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    async def cell(engine: Engine) -> str:
        return str(model.chain("", tools=to_llm(engine)).text())

    model = Scripted([("g__later", {"text": "tea"})], "done")
    with engine_of(later) as engine:
        text = asyncio.run(cell(engine))

    assert (model.heard, text) == (["TEA"], "done")


def test_an_image_is_attached() -> None:
    """Other values are texts, or JSON."""

    def draw() -> bytes:
        return GIF

    def numbers() -> dict[str, int]:
        return {"tea": 2}

    model = Scripted([("g__draw", {}), ("g__numbers", {})], "")
    with engine_of(draw, numbers) as engine:
        model.chain("", tools=to_llm(engine)).text()

    assert model.heard == ["attached: image/gif", '{"tea": 2}']
    assert [(each.type, each.content) for each in model.attached] == [("image/gif", GIF)]


def test_a_tool_may_be_called_by_hand() -> None:
    """Without a call of a model."""
    with engine_of(times) as engine:
        (tool,) = to_llm(engine)

        assert tool.implementation(text="ab", count="2").output == "abab"


# Out: the command

PLUGIN = '''
"""Tools of a shop; each says in the file "ran" what it got."""

from pathlib import Path

from neuroscript import ToolPolicy


def ran(*values):
    with Path("ran").open("a") as file:
        print(*values, file=file)


def register(registrar):
    tools = registrar.toolset("shop")

    @tools.tool(policy=ToolPolicy(effects=("writes",)))
    def add(tea: int) -> int:
        """Add to the stock."""
        ran("add", repr(tea))
        return tea + 1

    @tools.tool(policy=ToolPolicy(effects=("deletes",), requires_approval=True))
    def clear() -> int:
        """Throw all away."""
        ran("clear")
        return 0
'''


class Place:
    """A user of the command ``llm`` with a model of their own and with the plugin above."""

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
        """The variables of the process."""
        path = os.pathsep.join([str(self.folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
        own = {"LLM_USER_PATH": "llm", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache"}
        folders = {name: str(self.folder / each) for name, each in own.items()}
        return {**os.environ, **folders, "PYTHONPATH": path, "NEUROSCRIPT_PLUGINS": "", "LLM_LOAD_PLUGINS": "shop-llm"}

    def policy(self, text: str, name: str = "config/neuroscript/neuroscript.toml") -> None:
        """Write a policy, by default the user's own."""
        (self.folder / name).write_text(text)

    def run(self, *words: str, code: int = 0) -> str:
        """Run the command, which is to end with a code, and return all that it writes."""
        done = subprocess.run(
            [sys.executable, "-m", "llm", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that no terminal of whoever runs the tests is found
        )
        assert code == done.returncode, done.stdout
        return done.stdout

    @property
    def ran(self) -> str:
        """What the tools have got."""
        file = self.folder / "ran"
        return file.read_text() if file.exists() else ""

    @property
    def told(self) -> list[str]:
        """What the model was told of its calls, in its last request."""
        return [each["content"] for each in self.server.requests[-1].body["messages"] if each["role"] == "tool"]

    @property
    def offered(self) -> list[str]:
        """The tools that it was offered, in its last request."""
        return [each["function"]["name"] for each in self.server.requests[-1].body.get("tools", ())]


ENTRY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["llm"]["neuroscript"]


@pytest.fixture
def place(tmp_path: Path, server: ModelServer) -> Place:
    return Place(tmp_path, server)


def test_the_command_offers_what_its_user_permits(place: Place) -> None:
    """Exact values arrive, an error comes back, and ``llm -c`` goes on with the same toolbox."""
    place.policy("[policy]\ngrants = []\n")
    add = "NeuroScript_shop__add"
    place.server.script(asks(call(add, {"tea": "2"})), asks(call(add, {"tea": "two"})), says("done"))
    first = place.run("-m", "local", "-T", "NeuroScript", "hi")
    told, offered = place.told, place.offered
    place.server.script(asks(call(add, {"tea": 7})), says("again"))
    second = place.run("-c", "more")

    assert (first, second, offered) == ("done\n", "again\n", [add])
    assert told == ["3", WRONG.replace("count", "tea")]
    assert (place.told[-1], place.ran) == ("8", "add 2\nadd 7\n")


@pytest.fixture
def here(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same place, in this process."""
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
    ids=["pattern", "profile", "policy", "number", "nothing", "among texts"],
)
def test_what_is_wrong_is_said_in_a_line(here: Place, words: dict[str, Any], text: str) -> None:
    """That is what ``llm`` makes of such an exception."""
    with pytest.raises(ClickException) as caught:
        NeuroScript(**words)

    assert (str(caught.value), caught.value.__context__) == (text, None)


def test_a_policy_that_is_named_holds(here: Place) -> None:
    """What it denies is not offered, and is not called when the model asks."""
    here.policy('[policy]\ndeny = ["shop.add"]\npreapproved = ["shop.clear"]\n', "mine.toml")
    model = Scripted([("NeuroScript_shop__add", {"tea": 1}), ("NeuroScript_shop__clear", {})], "")
    model.chain("", tools=[NeuroScript(policy="mine.toml")]).text()

    assert (model.heard, here.ran) == (['Error: tool "NeuroScript_shop__add" does not exist', "0"], "clear\n")


def test_a_policy_of_the_working_directory_is_not_read(here: Place) -> None:
    """It may be anybody's; the user's own is."""
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


def test_near_names_are_those_that_the_model_knows(here: Place) -> None:
    """A name that is too long for a wire is cut as all are, and stays one of its own."""
    names = [f"{'very_' * 12}{each}" for each in ("long", "lone")]

    with engine_of(*(_named(name) for name in names)) as engine:
        tools = renamed(offered(engine, subject="llm"))

    assert len({each.name for each in tools}) == 2 and all(len(each.name) <= 64 for each in tools)
    assert all(each.name.startswith("NeuroScript_g__very_") for each in tools)
    assert tools[0].names.tool(tools[0].name) == f"g.{names[1]}"


def test_two_tools_of_one_name_are_no_toolbox() -> None:
    """A tool may be called as another one is cut to behind the name of the toolbox; neither hides the other."""
    long = "x" * 60
    with engine_of(_named(long)) as engine:
        (cut,) = renamed(offered(engine, subject="llm"))
        engine.register(from_function(_named(cut.name.removeprefix("NeuroScript_g__")), group="g"))
        with pytest.raises(RegistryError) as caught:
            renamed(offered(engine, subject="llm"))

    assert str(caught.value).endswith(f"and g.{long} would both be named {cut.name}")


def _named(name: str) -> Callable[..., Any]:
    def tell() -> int:
        return 1

    tell.__name__ = name
    return tell


TYPED = """
import os, sys
os.chdir({folder!r})
os.environ.clear()
os.environ.update({environment!r})
os.execv(sys.executable, [sys.executable, "-m", "llm", "-m", "local", "--no-stream", "-T", "NeuroScript", "hi"])
"""


def test_whoever_sits_at_the_terminal_is_asked(place: Place) -> None:
    """As by the command of our own."""
    place.server.script(asks(call("NeuroScript_shop__clear")), says("done"))
    terminal = Terminal(TYPED.format(folder=str(place.folder), environment=place.environment))
    try:
        card = terminal.see("Allow shop.clear? [n] ")
        before = place.ran
        terminal.type("y\n")
        terminal.see("done\r\n")
        terminal.close()
    finally:
        terminal.child.kill()

    assert "about:     | Throw all away." in card
    assert (before, place.ran, place.told) == ("", "clear\n", ["0"])


LOADED = """
import sys
import llm
print(*sorted(llm.get_tools()), *[name for name in sys.modules if name.startswith("neuroscript")])
from neuroscript.llm import model
print(model("local").name)
"""


def test_llm_loads_nothing_of_ours_before_it_is_used(place: Place) -> None:
    """So nothing of a broken policy troubles the rest of it, and our own door to it goes on to open."""
    place.policy("nonsense = 1\n")
    done = subprocess.run([sys.executable, "-c", LOADED], env=place.environment, capture_output=True, text=True)
    ours = ["", ".cli", ".cli.chat", "._imports", ".cli.chat.llm_toolbox"]
    loaded = [f"neuroscript{name}" for name in ours]

    assert done.stderr == ""
    assert done.stdout.split() == ["NeuroScript", "llm_time", "llm_version", *loaded, "local"]


# In

GRANTING = ExecutionPolicy(grants=["llm:call:*/*"])
"""Of a host that lets all tools of llm be called, those that need no approval."""


class Store(llm.Toolbox):
    """What is in stock."""

    prepared = 0

    def __init__(self, tea: int = 0) -> None:
        self._tea = tea
        self._log: list[str] = []

    def prepare(self) -> None:
        """Bring one more tool."""
        self._log.append("prepared")
        self.add_tool(self._history)

    def add(self, tea: int) -> int:
        """Add to the stock."""
        self._tea += tea
        return self._tea

    def _history(self) -> list[str]:
        return self._log


def test_a_function_gets_exact_values_under_our_policy() -> None:
    """Unless its host trusts it, each call has to be approved."""
    with Engine(toolsets=[from_llm(times, group="words")], plugins="none", policy=GRANTING) as engine:
        with pytest.raises(PolicyError) as caught:
            engine.call_named("words.times", {"text": "a", "count": 2})
        untrusted = engine.tools["words.times"]
    with Engine(toolsets=[from_llm(times, group="words", trusted=True)], plugins="none", policy=GRANTING) as engine:
        result = engine.call_named("words.times", {"text": "ab", "count": "2"})
        spec = engine.tools["words.times"].spec
    with Engine(toolsets=[from_llm(times, group="words", trusted=True)], plugins="none") as engine:
        with pytest.raises(PolicyError) as ungranted:
            engine.call_named("words.times", {"text": "ab", "count": "2"})
    given = from_llm(times, group="words", policy=ToolPolicy(effects=("pure",)))

    assert (caught.value.code, caught.value.retry, result, spec.description) == (
        "policy.approval",
        "host",
        "abab",
        "Repeat a text.",
    )
    assert untrusted.policy == ToolPolicy(
        capabilities=("llm:call:words/times",), effects=("net", "reads", "writes", "deletes"), requires_approval=True
    )
    assert (ungranted.value.code, ungranted.value.retry) == ("policy.capability", "host")
    assert given.tools[0].policy == ToolPolicy(effects=("pure",))


def test_a_toolbox_keeps_its_state_and_is_prepared_once() -> None:
    """With the configuration that it was made with; its class makes one without."""
    store = Store(tea=3)
    with Engine(
        toolsets=[from_llm(store, group="shop", trusted=True), from_llm([Store], group="empty", trusted=True)],
        plugins="none",
        policy=GRANTING,
    ) as engine:
        results = [engine.call_named("shop.add", {"tea": "2"}), engine.call_named("shop.add", {"tea": 1})]
        other = engine.call("empty.add", [1])
        names = sorted(engine.tools)
        history = engine.call("shop.history")
    from_llm(store, group="again")

    assert (results, other, history) == ([5, 6], 1, ["prepared"])
    assert names == ["empty.add", "empty.history", "shop.add", "shop.history"]
    assert store._log == ["prepared"]


class Leaving(llm.Toolbox):
    """One that ends before it is ready."""

    async def prepare_async(self) -> None:
        """Leave."""
        raise SystemExit(3)


def test_a_toolbox_that_leaves_while_it_is_made_ready_is_not_ready() -> None:
    """Whoever takes it sees how it left, as where no coroutine does that."""
    box = Leaving()
    with pytest.raises(SystemExit):
        from_llm(box, group="g")

    assert not box._async_prepared


class Later(llm.Toolbox):
    """One that a coroutine makes ready."""

    async def prepare_async(self) -> None:
        """Bring the only tool."""

        async def shout(text: str) -> str:
            await asyncio.sleep(0)
            return text.upper()

        self.add_tool(shout)


@pytest.mark.parametrize("in_loop", [False, True], ids=["alone", "loop"])
def test_a_toolbox_that_a_coroutine_makes_ready(in_loop: bool) -> None:
    """Wherever it is taken; coroutine functions are awaited."""

    async def taken() -> Toolset:
        return from_llm(Later, group="later", trusted=True)

    toolset = asyncio.run(taken()) if in_loop else from_llm(Later, group="later", trusted=True)

    with Engine(toolsets=[toolset], plugins="none", policy=GRANTING) as engine:
        assert engine.call("later.shout", ["tea"]) == "TEA"


def test_what_was_taken_in_goes_out_again() -> None:
    """A toolbox of ``llm`` in its own loop, with exact values that it would not get there."""
    model = Scripted([("shop__add", {"tea": "2"})], [("shop__add", {"tea": "two"})], "")
    with Engine(toolsets=[from_llm(Store, group="shop", trusted=True)], plugins="none", policy=GRANTING) as engine:
        model.chain("", tools=to_llm(engine, tools="shop.add")).text()

    assert model.heard == ["2", WRONG.replace("count", "tea")]


def test_what_may_be_left_out_is_left_to_the_function() -> None:
    """Its defaults hold; None is None, and a list is a list of exact items."""

    def order(tea: int, price: float = 2.5, notes: list[int] | None = None) -> str:
        return repr((tea, price, notes))

    with Engine(toolsets=[from_llm(order, group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        assert engine.call_named("g.order", {"tea": "1"}) == "(1, 2.5, None)"
        assert engine.call_named("g.order", {"tea": 1, "price": 3, "notes": [1]}) == "(1, 3.0, [1])"


def test_attachments_are_told_and_never_fetched() -> None:
    """What has no attachment is the output alone, as ``llm`` would write it."""

    def draw() -> llm.ToolOutput:
        found = [llm.Attachment(type="image/gif", content=GIF), llm.Attachment(url="http://127.0.0.1:1/a.png")]
        return llm.ToolOutput({"drawn": 2}, found)

    def plain() -> llm.ToolOutput:
        return llm.ToolOutput(output=(1, Path("a")))

    with Engine(toolsets=[from_llm([draw, plain], group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        drawn, other = engine.call("g.draw"), engine.call("g.plain")

    assert drawn["output"] == {"drawn": 2}
    assert drawn["attachments"] == [
        {"media_type": "image/gif", "data": GIF},
        {"media_type": None, "url": "http://127.0.0.1:1/a.png"},
    ]
    assert other == [1, repr(Path("a"))]


@pytest.mark.parametrize(
    ("error", "code", "text", "retry"),
    [
        (ValueError("PRIVATE"), "tool.failed", "", "never"),
        (llm.CancelToolCall("not now"), "llm.cancelled", "the tool cancelled the call: not now", "never"),
        (llm.CancelToolCall(), "llm.cancelled", "the tool cancelled the call", "never"),
        (llm.PauseChain(), "llm.paused", "the tool requested a pause, which is not supported here", "host"),
    ],
    ids=["bug", "cancelled", "silent", "paused"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_what_a_tool_raises_is_told(error: Exception, code: str, text: str, retry: str, is_async: bool) -> None:
    """A bug without its text."""

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    tool = llm.Tool("fail", implementation=fail_later if is_async else fail)
    with Engine(toolsets=[from_llm(tool, group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.fail")

    assert (caught.value.code, caught.value.retry) == (code, retry)
    assert "PRIVATE" not in str(caught.value) and text in str(caught.value)


def test_a_function_that_asks_for_the_call_gets_it() -> None:
    """With the exact values; nobody else sees that argument."""

    def tell(text: str, llm_tool_call: llm.ToolCall) -> str:
        return f"{llm_tool_call.name} {llm_tool_call.arguments} {text}"

    with Engine(toolsets=[from_llm(tell, group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        assert [arg.name for arg in engine.tools["g.tell"].spec.args] == ["text"]
        assert engine.call("g.tell", ["a"]) == "tell {'text': 'a'} a"


def test_a_text_from_outside_is_one_safe_line() -> None:
    """Descriptions of a tool, and of its arguments."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "x\n\x1b[2J"}}}
    tool = llm.Tool("f", "Do\nthis\x1b[2J" + "!" * 2000, schema, lambda a: a)

    (taken,) = from_llm(tool, group="g").tools

    assert taken.spec.description.startswith("Do this\\x1b[2J!!!") and len(taken.spec.description) == 1000
    assert taken.spec.args[0].description == "x \\x1b[2J"


class Needy(llm.Toolbox):
    """One that can not be made without words."""

    def __init__(self, place: str) -> None:
        self._place = place


def test_a_function_that_is_built_in_is_called() -> None:
    """Nobody knows what its parameters are, so none of them asks for the call."""
    tool = llm.Tool("made", None, {"type": "object", "properties": {"a": {"type": "integer"}}}, dict)
    with Engine(toolsets=[from_llm(tool, group="far", trusted=True)], plugins="none", policy=GRANTING) as engine:
        assert engine.call_named("far.made", {"a": "1"}) == {"a": 1}


def test_a_schema_that_is_too_deep_is_refused() -> None:
    """In a sentence."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(500):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SpecError) as caught:
        from_llm(llm.Tool("deep", None, schema, lambda a: a), group="g")

    assert caught.value.problems == ("deep: #: nests deeper than 64 levels",)


def test_all_that_can_not_be_taken_is_said_at_once() -> None:
    """With the name of each."""
    other = llm.Tool("times", implementation=lambda: 1)
    lost = llm.Tool("lost")
    far = llm.ServerSideTool({"type": "search"})
    strange = llm.Tool("日", implementation=lambda: 1)
    odd = llm.Tool("odd", None, {"type": "array"}, lambda: 1)

    with pytest.raises(SpecError) as caught:
        from_llm([times, other, lost, far, strange, odd, lambda: 1, Needy], group="g")
    with pytest.raises(SpecError) as group:
        from_llm(times, group="no group")

    assert caught.value.problems == (
        "ServerSideTool: runs on the server of the model provider, not here",
        "日: cannot be used as a name; expected ASCII letters or digits",
        "<lambda>: cannot be loaded (ValueError)",
        "Needy: cannot be loaded (TypeError)",
        "times and times have the same name here, times; load each into a separate group",
        "lost: has no implementation in this process",
        "odd: #: the arguments of a tool are an object; write type: object",
    )
    assert str(group.value) == "toolset no group: the name is not a valid group name"
