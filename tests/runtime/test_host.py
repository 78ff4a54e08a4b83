"""The Host and what tools see of it: through every entry point of the Engine, and never another engine's."""

from __future__ import annotations

import asyncio
import io
import logging
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    CoercionError,
    Engine,
    ExecutionPolicy,
    Handle,
    Host,
    LLMError,
    PolicyError,
    Progress,
    PromptError,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolInfo,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
)


def tool_of(func: Callable[..., Any], *, policy: ToolPolicy | None = None) -> Toolset:
    """Return a toolset with one tool, ``g.t``, which passes its arguments to a function."""
    tools = Toolset("g")
    spec = ToolSpec("t", "g", (ArgSpec("xs", ArgType.ANY, required=False),), variadic=True)
    tools.add(spec, func, policy or ToolPolicy())
    return tools


def value_of(func: Callable[[Runtime], Any], **options: Any) -> Any:
    """Return the result of *func* for the Runtime of a tool, in an engine with these options."""
    with Engine(toolsets=[tool_of(lambda rt, *xs: func(rt))], plugins="none", **options) as engine:
        return engine.call("g.t")


# The host


def test_a_host_has_a_default_for_every_part() -> None:
    """It is frozen."""
    host = Host()

    assert host.variables == host.constants == host.secrets == {}
    assert host.llm is host.logger is host.sandbox_dir is None
    with pytest.raises(AttributeError):
        host.llm = 1  # type: ignore[assignment, misc]


def test_all_problems_of_a_host_are_reported_at_once() -> None:
    """Each names its part; no value is repeated."""
    with pytest.raises(SpecError) as caught:
        Host(
            variables={"a": object(), "b": 1},
            constants=[1],  # type: ignore[arg-type]
            secrets={"key": b"canary"},  # type: ignore[dict-item]
            clock=5,  # type: ignore[arg-type]
            progress="x",  # type: ignore[arg-type]
        )

    assert caught.value.problems == (
        "variables['a']: expected a JSON-like value, got object",
        "constants must be a mapping with string keys, not list",
        "secrets['key'] must be a string, not bytes",
        "clock must be a function, not int",
        "progress must be a function, or None, not str",
    )
    assert "canary" not in repr(Host(secrets={"key": "canary"}))


def test_host_values_are_copied() -> None:
    """Later changes have no effect, and two engines with one host share no variables."""
    tags = ["a"]
    host = Host(variables={"tags": tags})
    tags.append("b")

    def grown(rt: Runtime, *xs: Any) -> Any:
        return rt.update_var("tags", lambda tags: [*tags, "x"])

    for _ in range(2):
        with Engine(host=host, toolsets=[tool_of(grown)], plugins="none") as engine:
            assert engine.call("g.t") == ["a", "x"]


# Output, prompts, logs


def test_println_writes_to_the_output_of_the_host() -> None:
    """On one line, with control characters escaped."""
    out = io.StringIO()

    value_of(lambda rt: rt.println("a\x1b[2J", 1), host=Host(stdout=out))

    assert out.getvalue() == "a\\x1b[2J 1\n"


class Answers:
    """A custom prompter."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, bool]] = []

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self.asked.append((prompt, secret))
        return self.answers.pop(0)


def test_a_prompt_uses_the_prompter_of_the_host() -> None:
    """With any prompter."""
    answers = Answers("Ada", "s3cret")

    name = value_of(
        lambda rt: [rt.prompt_user("Name?"), rt.prompt_user("Key?", secret=True)], host=Host(prompter=answers)
    )

    assert name == ["Ada", "s3cret"]
    assert answers.asked == [("Name?", False), ("Key?", True)]


def test_a_prompt_without_a_user_fails_with_its_own_code(tmp_path: Any) -> None:
    """The error tells the model that no user is available; the tool may catch it."""
    with (tmp_path / "empty").open("w+") as nothing:
        host = Host(stdin=nothing, stderr=io.StringIO())
        with pytest.raises(ToolFailed) as caught:
            value_of(lambda rt: rt.prompt_user("?"), host=host)
        assert (caught.value.code, caught.value.retry, caught.value.tool) == ("prompt.eof", "host", "g.t")
        assert isinstance(caught.value.__cause__, PromptError)

        def careful(rt: Runtime) -> str:
            try:
                return rt.prompt_user("?")
            except PromptError:
                return "nobody"

        assert value_of(careful, host=host) == "nobody"


def test_a_tool_logs_under_its_own_name(caplog: pytest.LogCaptureFixture) -> None:
    """Below the host's logger; by default below the library's."""
    with caplog.at_level(logging.INFO):
        value_of(lambda rt: rt.logger.info("hello %s", "you"))
        value_of(lambda rt: rt.logger.warning("other"), host=Host(logger=logging.getLogger("mine")))

    assert [(each.name, each.getMessage()) for each in caplog.records] == [
        ("neuroscript.g.t", "hello you"),
        ("mine.g.t", "other"),
    ]


def test_a_logger_may_be_any_similar_object() -> None:
    """For example a custom one without children."""
    messages: list[str] = []

    class Lines:
        def info(self, msg: str, *args: object) -> None:
            messages.append(msg % args)

        debug = warning = error = info

    value_of(lambda rt: rt.logger.info("%d", 5), host=Host(logger=Lines()))

    assert messages == ["5"]


# Variables


def test_each_session_has_its_own_variables() -> None:
    """A tool sees those of its caller, also in nested calls."""
    tools = tool_of(lambda rt, *xs: rt.set_var("x", xs[0]) if xs else rt.get_var("x"))
    tools.add(ToolSpec("through", "g"), lambda rt: rt.call_tool("g.t"))
    with Engine(host=Host(variables={"x": 0}), toolsets=[tools], plugins="none") as engine:
        with engine.session() as a, engine.session(variables={"x": 5}) as b:
            a.call("g.t", [1])
            engine.call("g.t", [2])

            assert [each.call("g.through") for each in (engine, a, b)] == [2, 1, 5]
            assert [each.execute(ToolCall("g__t")).value for each in (engine, a, b)] == [2, 1, 5]
            assert asyncio.run(b.acall_named("g.through", {})) == 5
            assert [*b.stream("g.through")] == [5]
        with pytest.raises(CallError) as caught:
            a.call("g.t")
        assert (caught.value.code, caught.value.retry) == ("engine.closed", "never")
        assert engine.call("g.t") == 2


def test_a_host_can_delete_a_variable_but_no_constant() -> None:
    """Deleting an unknown variable is not an error."""
    with Engine(plugins="none", host=Host(variables={"x": 1}, constants={"c": 2})) as engine:
        variables = engine.memory.variables
        for name in ("x", "c", "nothing"):
            variables.drop(name)

        assert (["c"], None, 2) == (list(variables), variables.get("x", None), variables.get("c", None))


def test_constants_cannot_be_set() -> None:
    """Neither set nor updated; they can be read, and are copied."""
    host = Host(variables={"x": 1, "limits": 5}, constants={"limits": {"most": [3]}})

    def changed(rt: Runtime) -> Any:
        rt.get_var("limits")["most"].append(4)
        codes = []
        for change in (lambda: rt.set_var("limits", 1), lambda: rt.update_var("limits", lambda old: old)):
            with pytest.raises(ToolFailed) as caught:
                change()
            codes.append((caught.value.code, caught.value.text, caught.value.retry))
        assert codes == [("var.constant", "limits is a constant", "model")] * 2
        return [rt.get_var("limits"), list(rt.variables)]

    assert value_of(changed, host=host) == [{"most": [3]}, ["limits", "x"]]


def test_sixteen_threads_lose_no_update(full_counts: bool) -> None:
    """No update of another thread is overwritten; in a full run there are 80,000."""
    updates = 5_000 if full_counts else 1_000
    tools = tool_of(lambda rt, *xs: rt.update_var("n", lambda n: (n or 0) + 1) and None)
    with Engine(toolsets=[tools], plugins="none") as engine:

        def count() -> None:
            for _ in range(updates):
                engine.call("g.t")

        threads = [threading.Thread(target=count) for _ in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert engine.memory.variables.get("n", 0) == 16 * updates


# Handles


class FixedPrompter:
    """A prompter that always gives the same answer."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        return self.answer


def test_a_session_may_have_its_own_prompter_and_logger() -> None:
    """The rest comes from the engine's host, even if the session has its own host."""
    received: list[str] = []

    def look(rt: Runtime, *xs: Any) -> list[Any]:
        rt.println("printed")
        rt.progress(1)
        return [rt.prompt_user("?"), rt.get_var("who"), rt.now()]

    def make_host(name: str, now: float) -> Host:
        return Host(
            prompter=FixedPrompter(name),
            stdout=io.StringIO(),
            progress=lambda progress: received.append(name),
            constants={"who": name},
            clock=lambda: now,
        )

    ours, theirs = make_host("engine", 1.0), make_host("session", 2.0)
    with Engine(host=ours, toolsets=[tool_of(look)], plugins="none") as engine:
        with engine.session(host=theirs) as session:
            assert engine.call("g.t") == ["engine", "engine", 1.0]
            assert session.call("g.t") == ["session", "engine", 1.0]
            assert session.narrowed(engine.policy).call("g.t") == ["session", "engine", 1.0]

    assert received == ["engine", "session", "session"]
    assert ours.output.getvalue() == "printed\n"  # type: ignore[attr-defined]
    assert theirs.output.getvalue() == "printed\nprinted\n"  # type: ignore[attr-defined]


def test_a_handle_belongs_to_its_session() -> None:
    """It is opaque, its kind is checked, and other sessions cannot use it."""
    tools = Toolset("g")
    handle = ArgSpec("h", ArgType.HANDLE)
    released: list[str] = []
    tools.add(
        ToolSpec("new", "g", return_type=ArgType.HANDLE),
        lambda rt: rt.handles.new({"n": 1}, "thing", lambda: released.append("thing")),
    )
    tools.add(
        ToolSpec("get", "g", (handle, ArgSpec("kind", ArgType.STRING))), lambda rt, h, kind: rt.handles.get(h, kind)
    )
    tools.add(ToolSpec("kind", "g", (handle,)), lambda rt, h: rt.handles.kind(h))
    tools.add(ToolSpec("release", "g", (handle,)), lambda rt, h: rt.handles.release(h))
    with Engine(toolsets=[tools], plugins="none") as engine:
        other = engine.session()
        first, second = engine.call("g.new"), engine.call("g.new")

        assert type(first) is str and first != second and first.startswith("thing-")
        assert engine.call("g.get", [first, "thing"]) == {"n": 1}
        assert engine.call("g.kind", [Handle(first)]) == "thing"
        for caller, kind, code in ((engine, "tree", "handle.kind"), (other, "thing", "handle.unknown")):
            with pytest.raises(ToolFailed) as caught:
                caller.call("g.get", [first, kind])
            assert (caught.value.code, caught.value.retry) == (code, "model")
        assert [engine.call("g.release", [first]) for _ in range(2)] == [True, False]
        assert engine.call("g.kind", [first]) is None
        theirs = other.call("g.new")
        other.close()
        assert released == ["thing", "thing"] and theirs
    assert released == ["thing"] * 3


@pytest.mark.parametrize("kind", ["", "a b", "é", "x" * 200, "a:b"])
def test_a_kind_is_an_identifier(kind: str) -> None:
    """Otherwise its handle could not be passed as an argument."""
    with pytest.raises(ToolFailed) as caught:
        value_of(lambda rt: rt.handles.new(1, kind))

    assert isinstance(caught.value.__cause__, ValueError)


def test_a_handle_is_released_even_if_its_release_fails() -> None:
    """Other handles are released too."""
    released: list[int] = []

    def made(rt: Runtime) -> None:
        rt.handles.new(1, "a", lambda: released.append(1))
        rt.handles.new(2, "a", lambda: 1 / 0)
        rt.handles.new(3, "a", lambda: released.append(3))

    value_of(made)

    assert released == [3, 1]


# Clock, random numbers, secrets, progress


def test_clock_and_random_numbers_come_from_the_host() -> None:
    """So a test can control them; the defaults are those of the process."""
    host = Host(clock=lambda: 5.5, random=random.Random(7))

    assert value_of(lambda rt: [rt.now(), rt.random.randrange(10**9)], host=host) == [
        5.5,
        random.Random(7).randrange(10**9),
    ]
    assert value_of(lambda rt: rt.now() > 1e9 and 0 <= rt.random.random() < 1) is True


def test_progress_reaches_the_host_and_never_fails_the_tool() -> None:
    """Its exceptions are ignored."""
    reports: list[Progress] = []

    def tell(progress: Progress) -> None:
        reports.append(progress)
        raise RuntimeError

    value_of(lambda rt: rt.progress(1, 4, "quarter"), host=Host(progress=tell))
    value_of(lambda rt: rt.progress(1))

    assert reports == [Progress("g.t", 1, 4, "quarter")]


def test_a_secret_needs_a_grant_and_a_declared_need() -> None:
    """Both are required, and the errors do not reveal the secret."""
    host = Host(secrets={"key": "canary"})
    policy = ExecutionPolicy(grants=["secret:read:k*"])
    needy = ToolPolicy(capabilities=("secret:read:key", "secret:read:kay"))

    def read(name: str, needs: ToolPolicy, **options: Any) -> Any:
        tools = tool_of(lambda rt, *xs: rt.secret(name), policy=needs)
        with Engine(host=host, toolsets=[tools], plugins="none", **options) as engine:
            return engine.call("g.t")

    assert read("key", needy, policy=policy) == "canary"
    for name, needs, options in (
        ("key", needy, {}),
        ("key", ToolPolicy(), {"policy": policy}),
        ("other", needy, {"policy": policy}),
    ):
        with pytest.raises(PolicyError) as refused:
            read(name, needs, **options)
        assert (refused.value.code, refused.value.retry) == ("policy.capability", "host")
    with pytest.raises(ToolFailed) as caught:
        read("kay", needy, policy=policy)
    assert (caught.value.code, caught.value.retry, caught.value.text) == (
        "secret.unknown",
        "host",
        "the host provides no secret named kay",
    )


# The model


class Parrot:
    """A custom model."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        return Turn("assistant", turns[-1].content.upper())

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        return Turn("assistant", tool_calls=(ToolCall(tools[0].full_name, {}, id="1"),))

    def embed(self, text: str) -> Sequence[float]:
        return [float(len(text))]


def test_a_model_is_available_with_model_use() -> None:
    """With three methods; without the grant or the need it is refused."""
    needs = ToolPolicy(capabilities=("model:use",))

    def ask(rt: Runtime, *xs: Any) -> Any:
        spec = rt.tools["g.t"].spec
        turn = rt.llm.ask_with_tools([Turn("user", "go")], [spec])
        return [rt.llm.ask([Turn("user", "hi")]).content, turn.tool_calls[0].name, rt.llm.embed("abc")]

    def engine_of(needs: ToolPolicy, **options: Any) -> Engine:
        return Engine(toolsets=[tool_of(ask, policy=needs)], plugins="none", **options)

    granted = ExecutionPolicy(grants=["model:use:*"])
    assert engine_of(needs, host=Host(llm=Parrot()), policy=granted).call("g.t") == ["HI", "g.t", [3.0]]
    for declared, options in ((needs, {}), (ToolPolicy(), {"policy": granted})):
        with pytest.raises(PolicyError):
            engine_of(declared, host=Host(llm=Parrot()), **options).call("g.t")


def test_a_host_without_a_model_is_reported() -> None:
    """A tool may catch the error; otherwise it keeps its code."""
    with pytest.raises(ToolFailed) as caught:
        value_of(lambda rt: rt.llm.embed("x"))

    assert (caught.value.code, caught.value.text, caught.value.retry) == (
        "llm.no_model",
        "the host provides no model",
        "host",
    )
    assert isinstance(caught.value.__cause__, LLMError)


# Other tools


def test_a_tool_can_list_the_permitted_tools() -> None:
    """Read-only, with spec, policy and origin, but without functions; denied tools are missing."""
    tools = tool_of(lambda rt, *xs: None)
    for name in ("open", "shut", "trusted"):
        tools.add(ToolSpec(name, "g"), lambda rt: None, ToolPolicy(requires_trust=name == "trusted"))
    found: list[Any] = []

    with Engine(toolsets=[tools], plugins="none", policy=ExecutionPolicy(deny=["g.shut"])) as engine:
        more = Toolset("h")
        more.add(ToolSpec("look", "h"), lambda rt: found.append(rt.tools))
        engine.register(more, origin="acme 1.0")
        engine.call("h.look")

    assert [*found[0]] == ["g.open", "g.t", "h.look"]
    assert found[0]["h.look"] == ToolInfo(engine.tools["h.look"].spec, ToolPolicy(), "acme 1.0")
    assert found[0]["g.open"].origin == "host"
    with pytest.raises(TypeError):
        found[0]["x"] = 1
    assert not [name for name in dir(found[0]["g.open"]) if "func" in name]


# Authority of nested calls


def files_of(policy: ExecutionPolicy, **needs: tuple[str, ...]) -> Engine:
    """Return an engine whose tools call the tools that they are passed, in order; the last one reads ``data/a``."""
    tools = Toolset("n")

    def run(rt: Runtime, path: list[str]) -> Any:
        return rt.call_tool(f"n.{path[0]}", [path[1:]]) if path else rt.require("fs:read:data/a")

    for name, capabilities in needs.items():
        spec = ToolSpec(name, "n", (ArgSpec("path", ArgType.SLICE_STRING),))
        tools.add(spec, run, ToolPolicy(capabilities=capabilities))
    return Engine(toolsets=[tools], plugins="none", policy=policy)


@pytest.mark.parametrize(
    ("path", "ok"),
    [
        (["a"], True),
        (["b"], True),
        (["none"], False),
        (["other"], False),
        (["all", "a"], True),
        (["all", "b", "a"], True),
        (["a", "b"], False),
        (["none", "a"], False),
        (["other", "a"], False),
        (["all", "none", "a"], False),
        (["all", "none"], False),
    ],
)
def test_nested_calls_never_gain_authority(path: list[str], ok: bool) -> None:
    """A need must be covered by the host and declared by every outer tool."""
    engine = files_of(
        ExecutionPolicy(grants=["fs:read,write:*"]),
        a=("fs:read:data/a",),
        b=("fs:read:data/*",),
        all=("fs:read",),
        other=("fs:read:other", "fs:write:data/a"),
        none=(),
    )

    if ok:
        engine.call(f"n.{path[0]}", [path[1:]])
    else:
        with pytest.raises(PolicyError) as caught:
            engine.call(f"n.{path[0]}", [path[1:]])
        assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")


def test_grants_are_checked_for_each_call() -> None:
    """With coerced arguments, before the function runs, through every entry point."""
    tools = Toolset("g")
    executed: list[str] = []
    tools.add(
        ToolSpec("read", "g", (ArgSpec("paths", ArgType.SLICE_STRING),)),
        lambda rt, paths: executed.extend(paths),
        ToolPolicy(capabilities=("fs:read:{paths}",)),
    )
    with Engine(toolsets=[tools], plugins="none", policy=ExecutionPolicy(grants=["fs:read:data/**"])) as engine:
        engine.call("g.read", ['["data/a", "data/b/c"]'])
        engine.call_named("g.read", {"paths": []})
        asyncio.run(engine.acall("g.read", [["data/x"]]))
        assert executed == ["data/a", "data/b/c", "data/x"]
        for refused in (
            lambda: engine.call("g.read", [["data/a", "data/../x"]]),
            lambda: engine.call_named("g.read", {"paths": '["x"]'}),
            lambda: asyncio.run(engine.acall("g.read", [["/etc/passwd"]])),
            lambda: engine.stream("g.read", [["x"]]),
            lambda: engine.astream("g.read", [["x"]]),
        ):
            with pytest.raises(PolicyError):
                refused()
        result = engine.execute(ToolCall("g.read", {"paths": ["x"]}))
        assert (result.error.code, result.error.retry) == ("policy.capability", "host")  # type: ignore[union-attr]
        result = engine.execute(ToolCall("g.read", {"paths": 5}))
        assert (result.error.code, result.error.retry) == ("coercion.type", "model")  # type: ignore[union-attr]
    assert len(executed) == 3


def test_a_url_without_a_host_is_an_error_for_the_caller() -> None:
    """It names the tool, like every invalid argument."""
    tools = Toolset("g")
    spec = ToolSpec("get", "g", (ArgSpec("url", ArgType.STRING),))
    tools.add(spec, lambda rt, url: url, ToolPolicy(capabilities=("net:read:{url.host}",)))
    with Engine(toolsets=[tools], plugins="none", policy=ExecutionPolicy(grants=["net:read:*"])) as engine:
        assert engine.call("g.get", ["https://example.com/a"]) == "https://example.com/a"
        with pytest.raises(ArgumentError) as caught:
            engine.call("g.get", ["nowhere"])

    assert (caught.value.tool, caught.value.code, caught.value.retry) == ("g.get", "arg.url", "model")
    assert [problem.where for problem in caught.value.problems] == ["url"]


def test_a_session_rejects_values_that_are_not_plain_data() -> None:
    """As a host does."""
    with Engine(plugins="none") as engine, pytest.raises(CoercionError):
        engine.session(variables={"x": object()})
