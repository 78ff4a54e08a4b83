"""Toolsets derived from others: prefixed, renamed, filtered, with other needs, or with hidden arguments."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    Example,
    ExecutionPolicy,
    Host,
    PolicyError,
    Registrar,
    RegistryError,
    Runtime,
    SpecError,
    ToolCall,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
    spec_from_data,
    spec_to_data,
)


def sample() -> Toolset:
    """Return a toolset of four tools, with every kind of function."""
    tools = Toolset("files", origin="acme-files 1.0")

    def copy(rt: Runtime, source: str, target: str, tags: list[str], mode: int) -> list[Any]:
        return [source, target, tags, mode]

    tools.add(
        ToolSpec(
            "copy",
            "files",
            (
                ArgSpec("source", ArgType.STRING),
                ArgSpec("target", ArgType.STRING, default="out"),
                ArgSpec("tags", ArgType.SLICE_STRING, default=["a"]),
                ArgSpec("mode", ArgType.INT, default=7, minimum=0, maximum=9),
            ),
            return_type=ArgType.SLICE_ANY,
            examples=(
                Example(("x",), ["x", "out", ["a"], 7]),
                Example(("x", "out", ["a"], "7"), ["x", "out", ["a"], 7]),
                Example({"source": "x", "mode": 8}, ["x", "out", ["a"], 8]),
                Example(("x", "out", ["a"], 99), error="coercion.bounds"),
                Example((5,), error="coercion.type"),
            ),
        ),
        copy,
        ToolPolicy(
            capabilities=("fs:read:{source}", "fs:write:{target}/{tags}", "env:read"), effects=("reads", "writes")
        ),
    )

    @tools.tool()
    def plain(text: str, times: int = 2) -> str:
        """Repeat a string."""
        return text * times

    @tools.tool()
    async def awaited(text: str, times: int = 2) -> str:
        """Repeat a string."""
        await asyncio.sleep(0)
        return text * times

    @tools.tool()
    def letters(text: str, times: int = 2) -> Iterator[str]:
        """Give letters."""
        yield from text * times

    return tools


NAMES = ("files.copy", "files.plain", "files.awaited", "files.letters")
WORDS = st.from_regex(r"[a-z][a-z0-9]{0,3}", fullmatch=True)
PATTERNS = st.sampled_from(["*", "files.*", "files.c*", "*.plain", "x*", "files.?????"])


def contents(tools: Toolset) -> list[Any]:
    """Return everything that callers see of a toolset."""
    return [tools.name, tools.origin, tools.aliases, [(each.spec, each.policy) for each in tools]]


def engine_of(tools: Toolset, **options: Any) -> Engine:
    return Engine(toolsets=[tools], plugins="none", **options)


# Algebraic properties


@given(PATTERNS, WORDS)
def test_prefix_and_filter_commute(pattern: str, prefix: str) -> None:
    """Filtering with the prefixed pattern after prefixing finds the same tools."""
    tools = sample()

    assert contents(tools.filtered(pattern).prefixed(prefix)) == contents(
        tools.prefixed(prefix).filtered(f"{prefix}.{pattern}")
    )


@given(PATTERNS, PATTERNS)
def test_two_filters_equal_one_filter(first: str, second: str) -> None:
    """The order of the filters does not matter, and a repeated filter changes nothing."""
    tools = sample()
    both = tools.filtered(first).filtered(second)

    assert contents(both) == contents(tools.filtered(second).filtered(first))
    assert contents(both) == contents(both.filtered(second))
    assert {each.name for each in both} == {
        each.name for each in tools if each in tuple(tools.filtered(first)) and each in tuple(tools.filtered(second))
    }


@given(st.lists(WORDS, min_size=8, max_size=8, unique=True))
def test_renames_compose_and_can_be_reversed(words: list[str]) -> None:
    """All names of one rename change together, so they can be exchanged."""
    tools = sample()
    first = {name: f"g.{word}" for name, word in zip(NAMES, words[:4], strict=True)}
    second = {f"g.{word}": f"h.{other}" for word, other in zip(words[:4], words[4:], strict=True)}
    once = tools.renamed({name: second[new] for name, new in first.items()})

    assert contents(tools.renamed(first).renamed(second)) == contents(once)
    assert contents(once.renamed({new: old for old, new in zip(NAMES, second.values(), strict=True)})) == contents(
        tools
    )


@given(st.permutations(NAMES))
def test_names_can_be_exchanged(names: list[str]) -> None:
    """Each tool keeps its behavior."""
    tools = sample().renamed(dict(zip(NAMES, names, strict=True)))
    with engine_of(tools, policy=ExecutionPolicy(grants=["fs:*:*", "env:*:*"])) as engine:
        new = dict(zip(NAMES, names, strict=True))
        assert engine.call(new["files.plain"], ["ab"]) == "abab"
        assert engine.call(new["files.awaited"], ["ab"]) == "abab"
        assert engine.call(new["files.letters"], ["ab"]) == ["a", "b", "a", "b"]
        assert engine.call(new["files.copy"], ["x"]) == ["x", "out", ["a"], 7]


TEXT = st.text(st.sampled_from("ab*:,{}\\/ .é"), min_size=1, max_size=6)


@given(TEXT, TEXT, st.lists(TEXT, max_size=3), st.sets(st.sampled_from(["source", "target", "tags", "mode"])))
def test_hiding_keeps_the_call_and_its_needs(source: str, target: str, tags: list[str], hidden: set[str]) -> None:
    """With any hidden arguments, the function receives the same values and the call needs the same capabilities."""
    values: dict[str, Any] = {"source": source, "target": target, "tags": tags, "mode": 3}
    needed = ("vault:read:{source}", "vault:write:{target}/{tags}", "vault:read", "vault:delete:{mode}")
    tools = sample().with_policy("*.copy", capabilities=needed)
    whole = tools.tools[0]
    part = tools.with_fixed("files.copy", **{name: values[name] for name in hidden}).tools[0]
    left = {name: value for name, value in values.items() if name not in hidden}

    def needs(tool: ToolImplementation, given: Mapping[str, Any]) -> set[str]:
        return {str(need) for template in tool.templates for need in template.fill([*given.values()])}

    assert needs(whole, values) == needs(part, left)
    assert part.func(None, *left.values()) == [source, target, tags, 3]


# Prefixes, names, filters


def test_prefix_precedes_the_group() -> None:
    """The original toolset does not change."""
    tools = sample()
    tools.alias("files.cp", "files.copy")
    made = tools.prefixed("Tool.Acme.v2")

    assert [each.name for each in made] == [f"acme.v2.{name}" for name in NAMES]
    assert (made.name, made.origin, made.aliases) == (
        "acme.v2.files", "acme-files 1.0", {"acme.v2.files.cp": "acme.v2.files.copy"},
    )  # fmt: skip
    assert [each.name for each in tools] == [*NAMES]
    with pytest.raises(SpecError):
        tools.prefixed("A B")


def test_rename_takes_a_full_name_or_a_word() -> None:
    """A word without a group keeps the tool in its group."""
    made = sample().renamed({"files.copy": "cp", "FILES.plain": "text.repeat"})

    assert [each.name for each in made] == ["files.cp", "text.repeat", "files.awaited", "files.letters"]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda t: t.renamed({"files.copy": "plain"}), RegistryError,
         "toolset files: files.copy and files.plain would both be named files.plain"),
        (lambda t: t.renamed({"files.copy": "x", "files.plain": "x"}), RegistryError,
         "toolset files: files.copy and files.plain would both be named files.x"),
        (lambda t: t.renamed({"files.cp": "x"}), RegistryError, "toolset files has no tool called files.cp"),
        (lambda t: t.renamed({"files.copy": "a b"}), SpecError, "files.copy: a b is not a valid tool name"),
        (lambda t: t.filtered("a b"), SpecError, "pattern: a b is not a valid pattern; use a name, or a pattern such as fs.*"),
        (lambda t: t.with_policy("fs.*", timeout=1), RegistryError, "toolset files has no tool that matches fs.*"),
        (lambda t: t.with_policy("*.copy", tiemout=1), SpecError, "files.copy: tiemout: not a field of ToolPolicy"),
        (lambda t: t.with_policy("*.copy", timeout=-1), SpecError, "policy: timeout must be a positive, finite number of seconds, or None"),
        (lambda t: t.with_policy("*.plain", capabilities=("fs:read:{path}",)), SpecError,
         "files.plain: policy: fs:read:{path}: {path} is not an argument of the tool"),
        (lambda t: t.with_docs("*", name="x"), SpecError, "files.copy: name: only description, when_to_use, return_help, "
         "category, error_conditions, deprecated can be described"),
        (lambda t: t.with_fixed("files.cp", mode=1), RegistryError, "toolset files has no tool called files.cp"),
        (lambda t: t.with_fixed("files.copy", mood=1, mode=99, source=None), SpecError,
         "files.copy: it has no argument mood (did you mean mode?); source: expected string, got None; mode: expected int from 0 to 9, got int out of bounds"),
        (lambda t: t.alias("files.plain", "files.copy"), RegistryError,
         "toolset files: files.plain refers to files.plain and cannot be an old name of files.copy"),
        (lambda t: t.alias("files.cp", "files.nothing"), RegistryError, "toolset files has no tool called files.nothing"),
        (lambda t: t.alias("cp", "files.copy"), SpecError, "toolset files: cp is not a valid tool name"),
    ],
)  # fmt: skip
def test_invalid_derivation_is_a_spec_error(
    change: Callable[[Toolset], object], error: type[Exception], text: str
) -> None:
    """The error gives both names, or every problem."""
    with pytest.raises(error) as caught:
        change(sample())

    assert text == str(caught.value)


def test_origin_is_preserved() -> None:
    """An engine reports the origin of each tool unless the host sets another one."""
    tools = sample().prefixed("acme").filtered("*.plain")
    with engine_of(tools) as engine:
        assert engine.infos["acme.files.plain"].origin == "acme-files 1.0"
    with Engine(plugins="none") as engine:
        engine.register(tools, origin="other")
        assert engine.infos["acme.files.plain"].origin == "other"


def test_needs_and_descriptions_can_be_changed() -> None:
    """The change applies to all tools that match a pattern."""
    made = sample().with_policy("*.plain", requires_trust=True).with_docs("*.plain", description="Say it again.")

    assert [each.policy.requires_trust for each in made] == [False, True, False, False]
    assert made.tools[1].spec.description == "Say it again."
    assert made.tools[0].spec == sample().tools[0].spec
    with engine_of(made) as engine, pytest.raises(PolicyError, match="trust"):
        engine.call("files.plain", ["x"])


# Hidden arguments


@pytest.mark.parametrize("name", ["plain", "awaited", "letters"])
def test_hidden_argument_cannot_be_set(name: str) -> None:
    """The function receives the value that was coerced when the toolset was derived."""
    with engine_of(sample().with_fixed(f"files.{name}", times="3")) as engine:
        assert "".join(engine.call(f"files.{name}", ["ab"])) == "ababab"
        assert [arg.name for arg in engine.tools[f"files.{name}"].spec.args] == ["text"]
        with pytest.raises(ArgumentError, match="times"):
            engine.call_named(f"files.{name}", {"text": "ab", "times": 1})
        with pytest.raises(ArgumentError, match="expected"):
            engine.call(f"files.{name}", ["ab", 1])


def test_examples_drop_the_hidden_argument() -> None:
    """Examples whose value equals the hidden value stay; the others are removed."""
    examples = sample().with_fixed("files.copy", mode=7).tools[0].spec.examples

    assert [(each.args, each.result, each.error) for each in examples[:2]] == [
        (("x",), ["x", "out", ["a"], 7], ""),
        (("x", "out", ["a"]), ["x", "out", ["a"], 7], ""),
    ]
    assert [each.error for each in examples] == ["", "", "coercion.type"]


def test_needs_use_the_hidden_value() -> None:
    """A hidden path narrows its scope, globs are literal, no tags need nothing, None needs the whole resource."""

    def needs(**values: Any) -> tuple[str, ...]:
        return sample().with_fixed("files.copy", **values).tools[0].policy.capabilities

    assert needs(source="data/*") == (r"fs:read:data/\*", "fs:write:{target}/{tags}", "env:read")
    assert needs(target="o", tags=["a", "b,c"]) == ("fs:read:{source}", "fs:write:o/a", r"fs:write:o/b\,c", "env:read")
    assert needs(tags=[]) == ("fs:read:{source}", "env:read")
    grants = ExecutionPolicy(grants=["fs:read:data/**", "fs:write:**", "env:*:*"])
    with engine_of(sample().with_fixed("files.copy", source="data/../b"), policy=grants) as engine:
        with pytest.raises(PolicyError, match="fs:read"):
            engine.call("files.copy")


def test_hidden_url_needs_its_host() -> None:
    """The host is the one a client connects to; a URL without a host is refused when the toolset is derived."""
    tools = Toolset("net")
    spec = ToolSpec("get", "net", (ArgSpec("url", ArgType.STRING),))
    tools.add(spec, lambda rt, url: url, ToolPolicy(capabilities=("net:read:{url.host}",)))

    made = tools.with_fixed("net.get", url="https://EXAMPLE.com/x")
    assert made.tools[0].policy.capabilities == ("net:read:example.com:443",)
    with engine_of(made, policy=ExecutionPolicy(grants=["net:read:example.com:443"])) as engine:
        assert engine.call("net.get") == "https://EXAMPLE.com/x"
    with pytest.raises(SpecError, match=r"net\.get: url: expected a URL with an ASCII host"):
        tools.with_fixed("net.get", url="nowhere")


def test_variadic_values_can_be_hidden() -> None:
    """The tool is no longer variadic, and a single value needs no list."""
    tools = Toolset("g")
    spec = ToolSpec("join", "g", (ArgSpec("sep", ArgType.STRING), ArgSpec("parts", ArgType.STRING)), variadic=True,
                    return_type=ArgType.STRING, examples=(Example(("-", "a", "b"), "a-b"), Example(("-", "a"), "a")))  # fmt: skip
    tools.add(spec, lambda rt, sep, *parts: sep.join(parts))

    with engine_of(tools.with_fixed("g.join", parts=["a", "b"])) as engine:
        assert engine.call("g.join", ["-"]) == "a-b"
        assert [each.args for each in engine.tools["g.join"].spec.examples] == [("-",)]
    with engine_of(tools.with_fixed("g.join", sep="+")) as engine:
        assert engine.call("g.join", ["a", "b"]) == "a+b"
    with pytest.raises(SpecError, match="parts: at least one value is required"):
        tools.with_fixed("g.join", parts=[])


def test_hidden_value_is_fresh_for_each_call() -> None:
    """A tool that changes its value does not affect the next call."""
    tools = Toolset("g")
    spec = ToolSpec("t", "g", (ArgSpec("items", ArgType.SLICE_ANY),))
    tools.add(spec, lambda rt, items: items.append(1) or len(items))
    given_items = [0]
    with engine_of(tools.with_fixed("g.t", items=given_items)) as engine:
        given_items.append(5)
        assert [engine.call("g.t"), engine.call("g.t")] == [2, 2]


def test_hidden_secret_is_never_shown() -> None:
    """Neither a model nor a description of the tool contains the value."""
    tools = Toolset("g")
    arguments = (ArgSpec("key", ArgType.STRING, secret=True), ArgSpec("x", ArgType.INT))
    tools.add(ToolSpec("t", "g", arguments), lambda rt, key, x: f"used {key}")
    made = tools.with_fixed("g.t", key="open sesame")
    with engine_of(made) as engine:
        assert engine.execute(ToolCall("g.t", (1,))).value == "used [secret]"
        assert "sesame" not in repr(made.tools[0])


@attrs.frozen
class Point:
    """A place."""

    x: int


def test_fixed_argument_of_a_class_is_an_instance() -> None:
    """The host may pass one, or the values of its fields."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g", (ArgSpec("at", ArgType.MAP, cls=Point),)), lambda rt, at: at.x)

    for at in ({"x": "1"}, Point(1)):
        with Engine(plugins="none", toolsets=[tools.with_fixed("g.t", at=at)]) as engine:
            assert 1 == engine.call("g.t")


# Old names and deprecated tools


class Records(logging.Handler):
    """Collects log records."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


@pytest.fixture
def logged() -> Iterator[Records]:
    records, logger = Records(), logging.getLogger("tests.algebra")
    logger.addHandler(records)
    logger.propagate = False
    yield records
    logger.removeHandler(records)


def aliased(**options: Any) -> Engine:
    """Return an engine with a tool that has two old names."""
    tools = sample()
    tools.alias("files.repeat", "files.plain")
    tools.alias("Tool.text.Repeat", "files.plain")
    return engine_of(tools, **options)


def test_old_name_finds_the_tool_and_warns_once(logged: Records) -> None:
    """An engine warns once for all callers; audit records contain the current name."""
    from neuroscript import MemoryAudit

    audit = MemoryAudit()
    with aliased(host=Host(logger=logging.getLogger("tests.algebra")), audit=audit) as engine:
        for session in (engine, engine.session()):
            assert session.call("files.repeat", ["ab"]) == "abab"
            assert session.call_named("TOOL.files.repeat", {"text": "ab"}) == "abab"
            assert session.execute(ToolCall("files__repeat", ["ab"])).tool == "files.plain"
        assert engine.call("text.repeat", ["ab"]) == "abab"
        assert engine.call("files.plain", ["ab"]) == "abab"
        assert "files.repeat" not in engine.tools
        assert engine.aliases == {"files.repeat": "files.plain", "text.repeat": "files.plain"}

    assert logged.lines == [
        "WARNING files.repeat is an old name of files.plain", "WARNING text.repeat is an old name of files.plain",
    ]  # fmt: skip
    assert {each.tool for each in audit.records} == {"files.plain"}


@pytest.mark.parametrize("pattern", ["files.plain", "files.repeat", "text.*"])
@pytest.mark.parametrize("name", ["files.plain", "files.repeat", "text.repeat"])
def test_denial_by_one_name_covers_all_names(pattern: str, name: str) -> None:
    """A deny rule for an old name also applies to the new name."""
    with aliased(policy=ExecutionPolicy(deny=[pattern])) as engine:
        with pytest.raises(PolicyError) as caught:
            engine.call(name, ["x"])
        assert (caught.value.tool, caught.value.code, caught.value.retry, caught.value.rule) == (
            "files.plain",
            "policy.denied",
            "host",
            pattern,
        )
        assert "files.plain" not in engine.infos
        assert engine.unused_rules == ()


def test_old_name_does_not_allow_or_approve() -> None:
    """Permissions apply to current names only."""
    with aliased(policy=ExecutionPolicy(allow=["files.repeat"])) as engine, pytest.raises(PolicyError):
        engine.call("files.repeat", ["x"])


def test_old_name_of_another_tool_is_refused() -> None:
    """The order does not matter, in a toolset and in an engine; nothing of the second toolset is registered."""
    other = Toolset("files")
    other.add(ToolSpec("repeat", "files"), lambda rt: 1)
    other.add(ToolSpec("more", "files"), lambda rt: 1)
    with aliased() as engine:
        with pytest.raises(RegistryError, match=r"already registered: files\.repeat"):
            engine.register(other)
        assert "files.more" not in engine.tools
    tools = sample()
    tools.alias("files.repeat", "files.plain")
    with pytest.raises(RegistryError, match=r"files\.repeat is an old name of files\.plain"):
        tools.add(ToolSpec("repeat", "files"), lambda rt: 1)
    with Engine(toolsets=[other], plugins="none") as engine:
        with pytest.raises(RegistryError, match=r"already registered: files\.repeat"):
            engine.register(tools)
        assert "files.plain" not in engine.tools


def test_old_names_follow_their_tools() -> None:
    """Renames, filters and plugins keep old names."""
    tools = sample()
    tools.alias("files.repeat", "files.plain")

    assert tools.renamed({"files.plain": "say"}).aliases == {"files.repeat": "files.say"}
    assert tools.filtered("files.c*").aliases == {}
    with pytest.raises(RegistryError, match=r"files\.repeat refers to files\.repeat and cannot be an old name"):
        tools.renamed({"files.copy": "repeat"})

    class Plugin:
        def register(self, registrar: Registrar) -> None:
            registrar.register(tools)

    with Engine(plugins="none") as engine:
        plugin = Plugin()
        engine.load_plugin(plugin)
        assert engine.call("files.repeat", ["ab"]) == "abab"
        engine.unload_plugin(plugin)
        assert engine.aliases == {}


def test_deprecated_tool_is_reported(logged: Records) -> None:
    """Its data says so, and the host gets one warning."""
    spec = ToolSpec("old", "g", deprecated="use g.new")
    assert spec_from_data(json.loads(json.dumps(spec_to_data(spec)))) == spec
    assert spec_to_data(spec)["deprecated"] == "use g.new"
    assert "deprecated" not in spec_to_data(ToolSpec("new", "g"))
    with pytest.raises(SpecError, match="deprecated must be a valid Unicode string, without lone surrogates, not bool"):
        ToolSpec("old", "g", deprecated=True)  # type: ignore[arg-type]

    tools = Toolset("g")
    tools.add(spec, lambda rt: 1)
    with engine_of(tools, host=Host(logger=logging.getLogger("tests.algebra"))) as engine:
        assert logged.lines == []
        assert [session.call("g.old") for session in (engine, engine, engine.session())] == [1, 1, 1]

    assert logged.lines == ["WARNING g.old is deprecated: use g.new"]
