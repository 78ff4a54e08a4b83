"""Tools and hooks of distributions that are imported when they are first needed, once, by any entry point."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.distributions import TOOLSET, Published, age, ship

from neuroscript import (
    ArgumentError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    LimitError,
    Limits,
    PolicyError,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolImplementation,
    ToolInfo,
    Toolset,
    ToolSpec,
    Value,
    hookimpl,
)

COUNTING = "import counted\ncounted.imports.append(__name__)\n"
"""The start of a module that records its imports."""

TOOLS = f"""{COUNTING}
from collections.abc import AsyncIterator, Iterator
from neuroscript import Toolset
toolset = Toolset("acme")

@toolset.tool()
def who() -> str:
    return "acme"

@toolset.tool()
async def later() -> str:
    return "later"

@toolset.tool()
def letters(text: str) -> Iterator[str]:
    yield from text

@toolset.tool()
async def slowly(text: str) -> AsyncIterator[str]:
    for letter in text:
        yield letter
"""

GATE = f"""{COUNTING}
import os
from neuroscript import Toolset, hookimpl

@hookimpl
def neuroscript_decide(call):
    return "not today" if call.tool == "host.shut" else None

@hookimpl
def neuroscript_call_finished(record):
    counted.events.append(record.tool)

@hookimpl
def neuroscript_tool_registered(tool, origin):
    counted.events.append("+" + tool.spec.full_name)

@hookimpl
def neuroscript_engine_closed(left):
    counted.events.append("closed")
"""


class Counted:
    """The imports that modules recorded."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.events: list[str] = []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of installed distributions, none of which is imported yet."""
    (tmp_path / "counted.py").write_text("imports, events = [], []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path
    for name in [name for name, each in sys.modules.items() if str(tmp_path) in str(getattr(each, "__file__", ""))]:
        del sys.modules[name]


@pytest.fixture
def counted(site: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Return the imports recorded in this process."""
    found: Any = Counted()
    monkeypatch.setitem(sys.modules, "counted", found)
    return found


@pytest.fixture
def acme(site: Path, counted: Counted, install_with_index: Callable[..., None]) -> Iterator[Engine]:
    """Return an engine with tools that are not imported yet."""
    install_with_index(site, Published("acme-tools", TOOLS, "acme"))
    with Engine(plugins=["acme-tools"]) as engine:
        assert (counted.imports, engine.plugin_errors) == ([], ())
        yield engine


@pytest.fixture
def broken(site: Path, counted: Counted, install_with_index: Callable[..., None]) -> Iterator[Engine]:
    """Return an engine with tools of two distributions, one of which has an index but cannot be imported."""
    sound = Published("sound-tools", TOOLSET.format(group="sound", name="sound"), "sound")
    install_with_index(site, Published("acme-tools", TOOLS, "acme"), sound)
    (site / "acme_tools_module.py").write_text(f"{COUNTING}raise ValueError('canary')\n")
    with Engine(plugins=["acme-tools", "sound-tools"]) as engine:
        yield engine


async def items(stream: Any) -> list[Any]:
    return [each async for each in stream]


ENTRY_POINTS: dict[str, Callable[[Engine], Any]] = {
    "call": lambda engine: engine.call("acme.who"),
    "call_named": lambda engine: engine.call_named("acme.who", {}),
    "acall": lambda engine: asyncio.run(engine.acall("acme.who")),
    "acall_named": lambda engine: asyncio.run(engine.acall_named("acme.who", {})),
    "execute": lambda engine: engine.execute(ToolCall("acme.who")).value,
    "old spelling": lambda engine: engine.call("tool.ACME.Who"),
    "session": lambda engine: engine.session().call("acme.who"),
    "nested": lambda engine: nested(engine).call("host.outer"),
}


def nested(engine: Engine) -> Engine:
    engine.register(ToolImplementation(ToolSpec("outer", "host"), outer))
    return engine


def outer(rt: Runtime) -> Any:
    return rt.call_tool("acme.who")


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_tool_is_imported_when_it_is_called(acme: Engine, counted: Counted, entry_point: str) -> None:
    """Every entry point imports it, once."""
    assert [
        ENTRY_POINTS[entry_point](acme),
        ENTRY_POINTS[entry_point](acme) if entry_point != "nested" else "acme",
    ] == ["acme", "acme"]
    assert counted.imports == ["acme_tools_module"]


def test_coroutines_and_streams_are_imported_when_they_are_called(acme: Engine, counted: Counted) -> None:
    """They are of the kind that the index declares."""
    assert acme.tools["acme.later"].is_coroutine
    assert not acme.tools["acme.who"].is_coroutine
    assert acme.infos["acme.letters"].spec.stream
    assert counted.imports == []

    assert [*acme.stream("acme.letters", ("ab",))] == ["a", "b"]
    assert asyncio.run(items(acme.astream("acme.slowly", ("ab",)))) == ["a", "b"]
    assert asyncio.run(acme.acall("acme.later")) == acme.call("acme.later") == "later"
    assert counted.imports == ["acme_tools_module"]


def test_concurrent_calls_import_once(acme: Engine, counted: Counted) -> None:
    """Each call gets its result."""
    start, results = threading.Barrier(16), list[Any]()

    def call() -> None:
        start.wait()
        results.append(acme.call("acme.who"))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert results == ["acme"] * 16
    assert counted.imports == ["acme_tools_module"]


def test_tools_can_be_loaded_in_advance(acme: Engine, counted: Counted) -> None:
    """A pattern selects them."""
    assert acme.preload("other.*") == ()
    assert counted.imports == []
    assert acme.preload("acme.*") == ()
    assert counted.imports == ["acme_tools_module"]


def test_tool_of_one_engine_works_in_another(acme: Engine, counted: Counted) -> None:
    """Its function loads the module; coroutine functions and streams keep their kind."""
    found = {name: acme.tools[name] for name in acme.tools}
    with Engine(plugins="none") as other:
        for each in found.values():
            other.register(each)
        assert counted.imports == []

        assert other.call("acme.who") == "acme"
        assert asyncio.run(other.acall("acme.later")) == "later"
        assert [*other.stream("acme.letters", ("ab",))] == ["a", "b"]
        assert asyncio.run(items(other.astream("acme.slowly", ("ab",)))) == ["a", "b"]
    assert counted.imports == ["acme_tools_module"]
    assert acme.tools["acme.who"].spec is not None


CLASSES = f"""{COUNTING}
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from neuroscript import Toolset
toolset = Toolset("shop")

class Color(Enum):
    RED = "red"

@dataclass
class Item:
    day: date
    tags: set[Color]

@toolset.tool()
def later(items: list[Item], days: int) -> dict[str, list[Item]]:
    return {{"items": [Item(item.day + timedelta(days), item.tags | {{Color.RED}}) for item in items]}}

@toolset.tool()
async def days(*items: Item) -> list[date]:
    return [item.day for item in items]

@toolset.tool()
def each(items: list[Item]) -> Iterator[Item]:
    yield from items
"""


@pytest.mark.parametrize("is_exported", [False, True], ids=["indexed", "of another engine"])
def test_indexed_tool_receives_and_returns_instances(
    site: Path, counted: Counted, install_with_index: Callable[..., None], is_exported: bool
) -> None:
    """An index describes nested specs without their classes; the function still receives and returns instances."""
    install_with_index(site, Published("shop-tools", CLASSES, "shop"))
    item = {"day": "2020-01-31", "tags": ["red", "red"]}
    with Engine(plugins=["shop-tools"]) as engine, Engine(plugins="none") as other:
        assert (engine.plugin_errors, counted.imports) == ((), [])
        for tool in [engine.tools[name] for name in engine.tools] if is_exported else ():
            other.register(tool)
        calling = other if is_exported else engine
        assert counted.imports == []

        assert calling.call("shop.later", ('[{"day": "2020-01-31", "tags": []}]', "1")) == {
            "items": [{"day": "2020-02-01", "tags": ["red"]}]
        }
        assert asyncio.run(calling.acall("shop.days", (item, item))) == ["2020-01-31", "2020-01-31"]
        assert [*calling.stream("shop.each", ([item],))] == [{"day": "2020-01-31", "tags": ["red"]}]
        assert engine.infos["shop.later"].spec.returns is not None


REJECTING = f"""{COUNTING}
from dataclasses import dataclass
from neuroscript import Toolset
toolset = Toolset("odd")

@dataclass
class Odd:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2 == 0:
            raise ValueError(self.number)

@toolset.tool()
def take(odd: list[Odd], more: Odd) -> int:
    return sum(each.number for each in odd) + more.number

@toolset.tool()
async def wait(*odd: Odd) -> int:
    return sum(each.number for each in odd)

@toolset.tool()
def plain(number: int) -> int:
    return number
"""


ODD = Published("odd-tools", REJECTING, "odd")


@pytest.fixture
def odd_engine(site: Path, install_with_index: Callable[..., None]) -> Callable[..., Engine]:
    """Return a function that creates an engine that permits one call of tools from an index."""
    install_with_index(site, ODD)

    def made(*tools: str, **injected: Any) -> Engine:
        with Engine(plugins=["odd-tools"]) as source:
            found = [source.tools[name] for name in tools]
        engine = Engine(plugins="none", policy=ExecutionPolicy(limits=Limits(calls=1)))
        for each in found:
            engine.register(each.with_injected(**injected) if injected else each)
        return engine

    return made


def test_rejected_call_of_indexed_tool_costs_no_limit(odd_engine: Callable[..., Engine], counted: Counted) -> None:
    """The error names the place, and the tool is loaded by the first call that passes all other checks."""
    with odd_engine("odd.take") as engine:
        with pytest.raises(ArgumentError):
            engine.call("odd.take", ([{"number": "one"}], {"number": 1}))
        assert [] == counted.imports
        for _ in range(3):
            with pytest.raises(ArgumentError) as caught:
                engine.call("odd.take", ([{"number": 1}, {"number": "4815162342"}], {"number": 1}))
            assert "odd.take: odd[1]: expected a value that Odd accepts, got dict" == str(caught.value)
            assert ("coercion.class", "model") == (caught.value.code, caught.value.retry)
        assert 1 == len(counted.imports)

        assert 8 == engine.call("odd.take", ([{"number": 7}], {"number": 1}))
        with pytest.raises(LimitError):
            engine.call("odd.take", ([{"number": 7}], {"number": 1}))


def test_rejected_call_of_indexed_coroutine_costs_no_limit(odd_engine: Callable[..., Engine]) -> None:
    with odd_engine("odd.wait") as engine:
        with pytest.raises(ArgumentError) as caught:
            asyncio.run(engine.acall("odd.wait", ({"number": 1}, {"number": 2})))
        assert "odd.wait: odd: expected a value that Odd accepts, got dict" == str(caught.value)
        assert 4 == asyncio.run(engine.acall("odd.wait", ({"number": 1}, {"number": 3})))


def test_rejected_call_of_indexed_tool_with_injected_argument(odd_engine: Callable[..., Engine]) -> None:
    """A visible argument is an error of the caller, which costs no limit; an injected one is an error of the host."""
    with odd_engine("odd.take", more=Value({"number": 1})) as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call("odd.take", ([{"number": 2}],))
        assert "odd.take: odd[0]: expected a value that Odd accepts, got dict" == str(caught.value)
        assert 4 == engine.call("odd.take", ([{"number": 3}],))


def test_injected_value_that_an_indexed_class_rejects(odd_engine: Callable[..., Engine]) -> None:
    """The model cannot fix it, and the class is not known before the first call."""
    with odd_engine("odd.take", more=Value({"number": 2})) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("odd.take", ([{"number": 3}],))

    text = "odd.take: more: expected a value that Odd accepts, got dict (the host supplies this argument)"
    assert (text, "inject.invalid", "host") == (str(caught.value), caught.value.code, caught.value.retry)


def test_index_names_arguments_with_instances(odd_engine: Callable[..., Engine]) -> None:
    """Calls of other tools have nothing more to do than calls of tools that are loaded."""
    with odd_engine("odd.take", "odd.plain") as engine:
        assert {"odd.take": ["odd", "more"], "odd.plain": []} == {
            name: [*engine.tools[name].classes] for name in ("odd.take", "odd.plain")
        }


def test_index_that_omits_instances_is_stale(site: Path, install_with_index: Callable[..., None]) -> None:
    """Otherwise the function would receive maps."""
    install_with_index(site, ODD)
    (file,) = site.rglob("neuroscript.json")
    file.write_text(re.sub(r'"instances": \[[^\]]+\]', '"instances": []', file.read_text()))
    with Engine(plugins=["odd-tools"]) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("odd.take", ([{"number": 3}], {"number": 1}))

    assert (caught.value.code, caught.value.retry) == ("plugin.index", "host")


# Failed imports


@pytest.mark.parametrize("entry_point", [each for each in ENTRY_POINTS if each not in ("execute", "nested")])
def test_call_of_a_tool_that_cannot_be_imported_fails(broken: Engine, counted: Counted, entry_point: str) -> None:
    """Each call raises an error for the host; the import is tried and logged once, and other tools work."""
    for _ in range(3):
        with pytest.raises(ToolFailed) as caught:
            ENTRY_POINTS[entry_point](broken)
    (error,) = broken.plugin_errors

    assert (caught.value.code, caught.value.retry, caught.value.tool) == ("plugin.import", "host", "acme.who")
    assert str(error).startswith("acme-tools 1.0: entry point acme cannot be loaded: ValueError")
    assert str(caught.value) == "acme.who: cannot be loaded (plugin.import)"
    assert counted.imports == ["acme_tools_module"]
    assert broken.call("sound.who") == "sound"


def test_other_entry_points_report_a_failed_import(broken: Engine, counted: Counted) -> None:
    """The failure is an error result, the end of a stream, or an error in the calling tool."""
    result = broken.execute(ToolCall("acme.who"))
    assert result.error is not None
    assert (result.ok, result.error.code, result.error.retry) == (False, "plugin.import", "host")
    with pytest.raises(ToolFailed) as caught:
        [*broken.stream("acme.letters", ("ab",))]
    assert (caught.value.code, caught.value.retry) == ("plugin.import", "host")
    with pytest.raises(ToolFailed) as caught:
        asyncio.run(items(broken.astream("acme.slowly", ("ab",))))
    assert (caught.value.code, caught.value.retry) == ("plugin.import", "host")
    with pytest.raises(ToolFailed) as caught:
        nested(broken).call("host.outer")
    assert caught.value.tool == "host.outer"
    assert [each.code for each in broken.preload()] == ["plugin.import"]
    assert (len(broken.plugin_errors), counted.imports) == (1, ["acme_tools_module"])


def test_failed_import_fails_in_another_engine_too(broken: Engine) -> None:
    """The error code is the same."""
    with Engine(plugins="none") as other:
        other.register(broken.tools["acme.who"])
        with pytest.raises(ToolFailed) as caught:
            other.call("acme.who")

    assert (caught.value.code, caught.value.retry) == ("plugin.import", "host")


def test_repeated_error_holds_no_frames_of_a_call(broken: Engine) -> None:
    """Frames would keep the arguments of every failed call alive."""
    depths = []
    for _ in range(3):
        with pytest.raises(ToolFailed):
            broken.call("acme.letters", ("secret",))
        trace, depth = broken.plugin_errors[0].__traceback__, 0
        while trace is not None:
            trace, depth = trace.tb_next, depth + 1
        depths.append(depth)

    assert len({*depths}) == 1


def test_conflicting_old_name_affects_no_other_distribution(site: Path) -> None:
    """A warning gives the distribution that claims the name."""
    old = "toolset.alias('sound.who', 'acme.who')\n"
    Published("acme-tools", TOOLSET.format(group="acme", name="acme") + old, "acme").install(site)
    Published("sound-tools", TOOLSET.format(group="sound", name="sound"), "sound").install(site)
    Published("third-tools", TOOLSET.format(group="third", name="third"), "third").install(site)
    ship(site)

    with Engine(plugins=["sound-tools", "acme-tools", "third-tools"]) as engine:
        assert [engine.call("sound.who"), engine.call("third.who")] == ["sound", "third"]
        assert "acme.who" not in engine.tools
        assert [(each.distribution, each.code) for each in engine.plugin_errors] == [
            ("acme-tools 1.0", "plugin.duplicate")
        ]


# Hooks


@pytest.fixture
def gated(site: Path, counted: Counted) -> Iterator[Engine]:
    """Return an engine with hooks that are not imported yet, and two tools of its own."""
    Published("gate-tools", GATE, "gate", target="", group="plugins").install(site)
    age(site)
    host = Toolset("host")
    for name in ("open", "shut"):
        host.add(ToolSpec(name, "host"), lambda rt: 1)
    with Engine(plugins=["gate-tools"], toolsets=[host]) as engine:
        assert engine.plugin_errors == ()
        yield engine


def test_first_call_imports_hooks(gated: Engine, counted: Counted) -> None:
    """The guard decides about that call, and observers first learn about the tools registered before."""
    gated.register(ToolImplementation(ToolSpec("late", "host"), lambda rt: 1))
    assert (counted.imports, counted.events) == ([], [])

    with pytest.raises(PolicyError) as caught:
        gated.call("host.shut")
    assert gated.call("host.open") == 1
    gated.close()

    assert caught.value.text == "not today"
    assert counted.imports == ["gate_tools_module"]
    assert counted.events == ["+host.late", "host.shut", "host.open", "closed"]


def test_engine_without_calls_imports_no_hooks(gated: Engine, counted: Counted) -> None:
    """Closing the engine does not import them either."""
    gated.close()

    assert (counted.imports, counted.events) == ([], [])


def test_guard_that_cannot_be_imported_refuses_every_call(gated: Engine, site: Path, counted: Counted) -> None:
    """The check fails closed; the import is tried and logged once."""
    (site / "gate_tools_module.py").write_text(f"{COUNTING}raise ValueError\n")

    for name in ("host.open", "host.shut", "host.open"):
        with pytest.raises(PolicyError) as caught:
            gated.call(name)
        assert (caught.value.code, caught.value.retry) == ("policy.check_failed", "host")
    assert [each.code for each in gated.plugin_errors] == ["plugin.import"]
    assert counted.imports == ["gate_tools_module"]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(GATE.replace("@hookimpl\ndef neuroscript_decide", "def decide"), id="one is gone"),
        pytest.param(GATE.replace("neuroscript_call_finished", "neuroscript_call_started"), id="another"),
        pytest.param(GATE.replace("@hookimpl\ndef neuroscript_decide", "@hookimpl(tryfirst=True)\ndef neuroscript_decide"), id="another place"),
    ],
)  # fmt: skip
def test_plugin_whose_hooks_differ_from_its_index_refuses_every_call(gated: Engine, site: Path, code: str) -> None:
    """A guard that is missing from the index would never be asked."""
    (site / "gate_tools_module.py").write_text(code)

    with pytest.raises(PolicyError) as caught:
        gated.call("host.open")
    assert (caught.value.code, caught.value.retry) == ("policy.check_failed", "host")
    assert ["plugin.index"] == [each.code for each in gated.plugin_errors]


def test_index_with_an_unknown_hook_is_ignored(gated: Engine, site: Path) -> None:
    """Another version wrote it; other distributions work, and the next start reads this one again."""
    (kept,) = (site / "cache" / "neuroscript").glob("index-*")
    kept.write_text(kept.read_text().replace("neuroscript_decide", "neuroscript_gone"))

    with Engine(plugins=["gate-tools"]) as engine:
        assert ["plugin.index"] == [each.code for each in engine.plugin_errors]
    assert not kept.exists()


def test_plugin_that_provides_a_guard_only_sometimes_is_detected(site: Path, counted: Counted) -> None:
    """Its tools are refused, because they would run without the guard."""
    code = (
        "import os\nfrom neuroscript import Toolset, ToolSpec, hookimpl\n@hookimpl\ndef neuroscript_toolsets():\n"
        "    made = Toolset('acme')\n    made.add(ToolSpec('who', 'acme'), lambda rt: 1)\n    return [made]\n"
        "if 'GATED' in os.environ:\n    @hookimpl\n    def neuroscript_decide(call):\n        return 'no'\n"
    )
    Published("acme-tools", code, "acme", target="", group="plugins").install(site)

    with Engine(plugins=["acme-tools"]) as engine, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATED", "1")
        with pytest.raises(ToolFailed) as caught:
            engine.call("acme.who")
    assert (caught.value.code, caught.value.retry) == ("plugin.index", "host")


def test_concurrent_calls_load_hooks_once(gated: Engine, counted: Counted) -> None:
    """Each observer is notified once."""
    gated.register(ToolImplementation(ToolSpec("late", "host"), lambda rt: 1))
    start = threading.Barrier(8)

    def call() -> None:
        start.wait()
        gated.call("host.open")

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert counted.imports == ["gate_tools_module"]
    assert counted.events == ["+host.late", *["host.open"] * 8]


def test_host_observers_see_tools_that_are_not_imported(acme: Engine, counted: Counted) -> None:
    """They receive the specs from the index."""
    received: list[str] = []

    class Observer:
        @hookimpl
        def neuroscript_tool_registered(self, tool: ToolInfo, origin: str) -> None:
            received.append(f"{tool.spec.full_name} of {origin}")

        @hookimpl
        def neuroscript_call_finished(self, record: CallRecord) -> None:
            received.append(f"{record.tool} {record.code}")

    with Engine(plugins=["acme-tools"], hooks=[Observer()], policy=ExecutionPolicy(deny=["acme.later"])) as engine:
        with pytest.raises(PolicyError):
            engine.call("acme.later")
        assert counted.imports == []
        assert engine.call("acme.who") == "acme"

    names = ("who", "later", "letters", "slowly")
    assert received == [
        *(f"acme.{name} of acme-tools 1.0" for name in names),
        "acme.later policy.denied",
        "acme.who ok",
    ]
