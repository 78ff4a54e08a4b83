"""The compiled and the stepwise pipeline: for any tool, arguments and host, both have the same effects and reports.

Each example creates three equal engines. One makes a series of calls through the compiled pipeline; another makes the
same calls through the steps, as a stream reader does; the third executes them as a model sends them, which is compiled
for arguments without repairs. The outcomes, the arguments that tools receive, the reports to hooks,
sinks and the recording, and the final ledger must be equal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.generator import Generator
from tests.properties import same

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    FlowLabels,
    FlowRule,
    Host,
    Runtime,
    Session,
    ToolFailed,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    Variable,
    hookimpl,
)
from neuroscript.approval.request import Approval
from neuroscript.audit.recording import Recording
from neuroscript.policy.limits import Limits

# Strategies

KINDS = [
    *(ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL, ArgType.SLICE_INT, ArgType.SLICE_STRING, ArgType.BLOB)
    * 3,
    *(
        ArgType.MAP,
        ArgType.MAP_STRING_INT,
        ArgType.LIST,
        ArgType.SLICE_MAP,
        ArgType.ANY,
        ArgType.EMBEDDING,
        ArgType.HANDLE,
    ),
]
"""Types of arguments; those that can be compiled are more frequent."""

DOES = (
    "gives",
    "gives",
    "fails",
    "says",
    "wrong",
    "spends",
    "spends",
    "requires",
    "nests",
    "catches",
    "spoils",
    "remembers",
)


@attrs.frozen
class World:
    """The options of an engine.

    Attributes:
        does: What the function does with its values.
        needs: What the tool needs from its host.
        refuses: A hook refuses calls whose arguments have a length divisible by this number; 0 means no such hook.
        intents: Whether the sink receives the start of calls; None means no sink.
        is_full: Whether the sink sometimes fails.
        in_session: Whether the calls are made in a session with fewer permissions.
        injected: The arguments that the host provides, by name, as variables.
    """

    args: tuple[ArgSpec, ...]
    does: str = "gives"
    needs: ToolPolicy = attrs.field(factory=ToolPolicy)
    policy: dict[str, Any] = attrs.field(factory=dict)
    refuses: int = 0
    observes: bool = False
    intents: bool | None = None
    is_full: bool = False
    records: bool = False
    secret: bool = False
    in_session: bool = False
    injected: dict[str, Any] = attrs.field(factory=dict)

    @property
    def visible(self) -> tuple[ArgSpec, ...]:
        """The arguments that callers set."""
        return tuple(arg for arg in self.args if arg.name not in self.injected)


@some.composite
def arguments(draw: Any, index: int) -> ArgSpec:
    """Draw an argument: any type, optional, nullable or secret, with a default if it is plain."""
    kind = draw(some.sampled_from(KINDS))
    required, nullable, secret = draw(some.booleans()), draw(some.booleans()), draw(some.integers(0, 5)) == 0
    options: dict[str, Any] = {"required": required, "nullable": nullable, "secret": secret}
    plain = {ArgType.INT: 7, ArgType.STRING: "data/a", ArgType.BOOL: True, ArgType.SLICE_INT: [1]}
    if not required and kind in plain and draw(some.booleans()):
        options["default"] = plain[kind]
    return ArgSpec(f"a{index}", kind, **options)


@some.composite
def limits(draw: Any) -> Limits:
    """Draw limits, some of which a series of calls reaches."""
    return Limits(
        calls=draw(some.none() | some.integers(0, 8)),
        tool_calls=draw(some.sampled_from([{}, {"g.t": 2}, {"g.inner": 1}])),
        rates=draw(some.sampled_from([{}, {"g.*": "4/minute"}])),
        max_identical_calls=draw(some.none() | some.integers(1, 2)),
        depth=draw(some.sampled_from([16, 1])),
        money=draw(some.sampled_from([{}, {"EUR": "0.2"}, {"EUR": "0.5"}])),
        money_per_call=draw(some.sampled_from([{}, {"EUR": "0.3"}])),
        concurrency=draw(some.none() | some.just(1)),
        result_bytes=draw(some.none() | some.just(60)),
    )


@some.composite
def flow_rules(draw: Any) -> dict[str, Any]:
    """Draw rules about information flow, and what the tools read and where they send."""
    rules = draw(some.sampled_from([*[""] * 6, "untrusted-text", "everything", "session"]))
    if not rules:
        return {}
    everything = FlowRule(["*"], ["*"], "refuse", by="session" if rules == "session" else "values")
    labels = [
        FlowLabels(tool, sources=draw(some.sampled_from(sources)), sinks=draw(some.sampled_from([[], [], ["outside"]])))
        for tool, sources in (("g.t", [[], [], ["private:x"]]), ("g.inner", [[], ["untrusted"]]))
    ]
    return {"flow": rules if rules == "untrusted-text" else [everything], "labels": labels}


@some.composite
def worlds(draw: Any) -> World:
    """Draw a tool and a host."""
    count = draw(some.integers(0, 4))
    args = tuple(draw(arguments(index)) for index in range(count))
    texts = [arg.name for arg in args if arg.type is ArgType.STRING]
    capabilities = (f"fs:read:{{{texts[0]}}}",) if texts and draw(some.booleans()) else ()
    effects = draw(some.sampled_from([(), ("pure",), ("writes",)]))
    policy: dict[str, Any] = {"limits": draw(some.none() | limits())}
    policy["grants"] = draw(some.sampled_from([("fs:read:data/**",), ("fs:read:*",), ("fs:read:*",), ()]))
    policy["deny"] = draw(some.sampled_from([(), (), ("g.inner",)]))
    policy.update(draw(flow_rules()))
    approval = draw(some.integers(0, 7)) == 0
    if approval:
        policy["approver"] = lambda request: (
            Approval.reject("no") if len(repr(request.arguments)) % 2 else Approval.approve()
        )
    return World(
        args,
        draw(some.sampled_from(DOES)),
        ToolPolicy(capabilities=capabilities, effects=effects, requires_approval=approval),
        policy,
        draw(some.sampled_from([0, 0, 0, 2, 3])),
        draw(some.booleans()),
        draw(some.sampled_from([None, True, False])),
        draw(some.integers(0, 3)) == 0,
        draw(some.integers(0, 4)) == 0,
        draw(some.booleans()),
        draw(some.booleans()),
    )


@some.composite
def injected(draw: Any) -> World:
    """Draw a tool whose host provides some arguments, most of them valid."""
    world: World = draw(worlds())
    chosen = [arg for arg in world.args if draw(some.booleans())]
    given = {arg.name: draw(some.sampled_from((*FITTING[arg.type], True, [{"x": [None]}]))) for arg in chosen}
    return attrs.evolve(world, injected=given)


def a_call(random: Generator, args: Sequence[ArgSpec]) -> Any:
    """Return positional or named arguments: most are valid or nearly so; sometimes one is missing or extra."""
    values = [_value(random, arg) for arg in args]
    count = len(values) if random.random() < 0.8 else random.randint(0, len(values))
    if random.random() < 0.5:
        return [*values[:count], *[1] * (random.random() < 0.05)]
    names = [arg.name for arg in args if arg.required or random.random() < 0.7][: max(count, 1)]
    given = {arg.name: value for arg, value in zip(args, values, strict=True) if arg.name in names}
    return {**given, **({"other": 1} if random.random() < 0.05 else {})}


FITTING: dict[ArgType, tuple[Any, ...]] = {
    ArgType.STRING: ("data/a", "data/./a", "other/a", "secret of the host", "x" * 70),
    ArgType.INT: (5, "5", 5.0, -1),
    ArgType.FLOAT: (0.5, "0.5", 1),
    ArgType.BOOL: (True, "false", 1),
    ArgType.SLICE_INT: ([1, 2], [], (1, "2"), "[3]"),
    ArgType.SLICE_STRING: (["a", "b"], ("a",), ["secret of the host"]),
    ArgType.BLOB: (b"x", "text", bytearray(b"y")),
    ArgType.MAP: ({"a": [1]}, '{"a": 5}'),
    ArgType.MAP_STRING_INT: ({"a": 1, "b": "2"}, {"secret of the host": "5"}),
    ArgType.LIST: ([1, "a", None], (1,), "[1]"),
    ArgType.SLICE_MAP: ([{"a": 1}], []),
    ArgType.ANY: (5, "text", [1, {"a": b"x"}], None),
    ArgType.EMBEDDING: ([0.5, 1], "[1.5]"),
    ArgType.HANDLE: ("tree-1",),
}
"""For each type, valid values in exact and other forms."""


def _value(random: Generator, arg: ArgSpec) -> Any:
    if random.random() < 0.75:
        return random.choice(FITTING[arg.type])
    if random.random() < 0.3:
        return random.choice((None, 5, "5", 5.0, True, [1], ["1", 2], {"a": "5"}, b"x"))
    return random.value(arg)


# Engines and calls


class Kept:
    """A sink and observer that stores all reports, without the parts that differ between runs."""

    def __init__(self, intents: bool, is_full: bool = False) -> None:
        self.intents = intents
        self.is_full = is_full
        self.told: list[CallRecord] = []

    def write(self, record: CallRecord) -> None:
        self.told.append(record._replace(run="", seconds=0.0, spent=dict(record.spent)))
        if self.is_full and len(self.told) % 3 == 0:
            raise OSError

    def close(self) -> None:
        """Do nothing."""

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.write(record)

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.write(record)


class Refusing:
    """A hook that refuses by the length of the arguments, and stores its input."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.asked: list[Any] = []

    @hookimpl
    def neuroscript_decide(self, call: Any) -> Any:
        self.asked.append(call)
        return None if len(repr(call.arguments)) % self.every else [["nonsense"], "no, says the hook"][self.every % 2]


def does(how: str, seen: list[Any]) -> Callable[..., Any]:
    """Return a function that records its values and uses them."""

    def func(rt: Runtime, *values: Any) -> Any:
        seen.append(json.loads(json.dumps(values, default=repr)))
        match how:
            case "fails":
                raise ValueError("secret of the host")
            case "says":
                raise ToolFailed("it failed: secret of the host", code="g.failed", retry="later")
            case "wrong":
                return {"a": object()}
            case "spends":
                rt.spend("EUR", "0.2").settle("0.1")
                rt.spend("EUR", "0.15")
            case "requires":
                rt.require("fs:read:data/a")
            case "nests":
                return rt.call_tool("g.inner", (len(values),))
            case "catches":
                try:
                    rt.call_tool_named("g.inner", {"a": "x" if len(values) % 2 else "5"})
                except CallError as error:
                    return f"{error.code} {error.retry}"
            case "remembers":
                before = rt.get_var("before")
                rt.set_var("before", [before, rt.call_tool("g.inner", (1,)), *rt.labels()])
            case "spoils":
                for value in values:
                    if isinstance(value, (list, dict)):
                        value.clear()
        return list(values)

    return func


class Made:
    """An engine with the received arguments and the reports."""

    def __init__(self, world: World, place: Path) -> None:
        self.seen: list[Any] = []
        self.inner: list[Any] = []
        self.sink, self.observer, self.hook = (
            Kept(bool(world.intents), world.is_full),
            Kept(True),
            Refusing(world.refuses or 1),
        )
        self.place = place
        tools = Toolset("g")
        tools.add(
            ToolSpec("t", "g", world.args, return_type=ArgType.ANY, return_nullable=True),
            _with_arguments(does(world.does, self.seen), world.args),
            world.needs,
        )
        tools.add(
            ToolSpec("inner", "g", (ArgSpec("a", ArgType.INT),), return_type=ArgType.ANY, return_nullable=True),
            lambda rt, a: self.inner.append(a) or (rt.spend("EUR", "0.1") and a),
        )
        tools = tools.with_injected("g.t", **{name: Variable(name) for name in world.injected})
        lent = {"a": "secret of the host"} if world.secret else {}
        watching: dict[str, Any] = {"hooks": [self.observer] * world.observes + [self.hook] * bool(world.refuses)}
        if world.intents is not None:
            watching["audit"] = self.sink
        if world.records:
            watching["recording"] = Recording(place)
        self.engine = Engine(
            toolsets=[tools], plugins="none", policy=ExecutionPolicy(**world.policy),
            host=Host(clock=lambda: 5.0, secrets=lent, variables=_plain(world.injected)), **watching,
        )  # fmt: skip
        narrow = ExecutionPolicy(
            grants=["fs:read:data/a"], limits=Limits(calls=3), approver=world.policy.get("approver")
        )
        self.session: Session = self.engine.session(id="s", policy=narrow) if world.in_session else self.engine

    def outcome(self) -> dict[str, Any]:
        """Close the engine and return everything that can be compared."""
        ledgers = [None if each.ledger is None else dict(each.ledger.spent) for each in (self.session, self.engine)]
        refusals = [each._replace(run="", spent=dict(each.spent)) for each in self.engine.refusals]
        numbers: dict[bytes, bytes] = {b"": b""}

        def numbered(records: list[CallRecord]) -> list[CallRecord]:
            """Return records with numbers in place of digests, because each engine has its own key."""
            return [each._replace(digest=numbers.setdefault(each.digest, b"%d" % len(numbers))) for each in records]

        self.engine.close()
        recorded = self.place.read_bytes() if self.place.exists() else b""
        self.place.unlink(missing_ok=True)
        return {
            "given": self.seen,
            "given within": self.inner,
            "records": numbered(self.sink.told),
            "labels": [*(each.labels for each in self.sink.told), self.session.labels, self.engine.labels],
            "observed": numbered(self.observer.told),
            "asked": self.hook.asked,
            "refusals": numbered(refusals),
            "ledgers": ledgers,
            "recorded": recorded,
        }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return the possible values of variables."""
    return {name: bytes(value) if isinstance(value, bytearray) else value for name, value in values.items()}


def _with_arguments(func: Callable[..., Any], args: Sequence[ArgSpec]) -> Callable[..., Any]:
    """Return a function with the parameters of a spec, as a tool needs them."""
    names = "".join(f", {arg.name}" for arg in args)
    namespace: dict[str, Any] = {"func": func}
    exec(f"def tool(rt{names}):\n    return func(rt{names})", namespace)
    return namespace["tool"]  # type: ignore[no-any-return]


def compiled(session: Session, args: Any) -> Any:
    """Call through the compiled pipeline."""
    return session.call_named("g.t", args) if isinstance(args, dict) else session.call("g.t", args)


def steps(session: Session, args: Any) -> Any:
    """Call through the steps."""
    (result,) = session.stream("g.t", args)
    return result


def executed(session: Session, args: Any) -> ToolResult:
    """Call as a model does; from the second call on, arguments that need no repair use the compiled pipeline."""
    return session.execute({"name": "g__t", "arguments": args})


def as_executed(session: Session, run: Callable[[], Any]) -> ToolResult:
    """Return the outcome of a call as `Session.execute` reports it, without repairs."""
    try:
        result = ToolResult("", "g.t", run())
    except CallError as error:
        result = ToolResult("", "g.t", error=error)
    return session._told(result)


def come_of(run: Callable[[], Any]) -> Any:
    """Return the outcome of a call: its result, or all data of its error."""
    try:
        return "ok", run()
    except CallError as error:
        return data_of(error)[0], Failure(error)


@attrs.frozen
class Failure:
    """An error, compared by all its data."""

    error: CallError = attrs.field(eq=lambda error: data_of(error))


def data_of(error: CallError) -> tuple[Any, ...]:
    """Return all data of an error."""
    return error.code, type(error), str(error), error.retry, error.tool, type(error.__cause__)


CODES: Counter[str] = Counter()
"""The number of calls by outcome."""

NUMBER: Final = (ArgSpec("a0", ArgType.INT),)
PATH: Final = (ArgSpec("a0", ArgType.STRING),)
READS: Final = ToolPolicy(capabilities=("fs:read:{a0}",))


def limited(does: str = "gives", **options: Any) -> World:
    """Return a tool with a number in a host with limits."""
    return World(NUMBER, does, policy={"limits": Limits(**options)})


def asking(answer: Approval) -> World:
    """Return a tool whose calls need an approval, with the answer of the approver."""
    return World(NUMBER, needs=ToolPolicy(requires_approval=True), policy={"approver": lambda request: answer})


NESTED_FLOW: Final = {
    "flow": [FlowRule(["untrusted"], ["outside"], "refuse")],
    "labels": [
        FlowLabels("g.inner", sources=["untrusted"], sinks=[]),
        FlowLabels("g.t", sources=[], sinks=["outside"]),
    ],
}
"""The tool sends what another tool reads."""

WRITTEN: Final[dict[str, tuple[World, Sequence[Any]]]] = {
    "ok": (World(NUMBER), [[5], {"a0": 5}, {"a0": "5"}, ["5"]]),
    "arg.missing": (World(NUMBER), [[], {}]),
    "arg.unknown": (World(NUMBER), [{"a0": 5, "b": 1}]),
    "arg.count": (World(NUMBER), [[5, 6]]),
    "arg.type": (World(NUMBER), [5, 5.0]),
    "coercion.type": (World(NUMBER), [{"a0": []}]),
    "coercion.format": (World(NUMBER), [{"a0": "x"}]),
    "policy.capability": (World(PATH, needs=READS), [{"a0": "data/a"}]),
    "policy.hook": (World(NUMBER, refuses=1), [{"a0": 5}]),
    "policy.check_failed": (World(NUMBER, refuses=2), [{"a0": 5}, {"a0": 55}]),
    "policy.denied": (World(NUMBER, "nests", policy={"deny": ["g.inner"]}), [{"a0": 5}]),
    "policy.rejected": (asking(Approval.reject("no")), [{"a0": 5}]),
    "policy.flow": (World(NUMBER, "nests", policy=NESTED_FLOW), [{"a0": 5}]),
    "audit.unavailable": (World((), needs=ToolPolicy(effects=("writes",)), intents=True, is_full=True), [{}, {}]),
    "limit.calls": (limited(calls=1), [{"a0": 5}, {"a0": 6}]),
    "limit.tool_calls": (limited(tool_calls={"g.t": 1}), [{"a0": 5}, {"a0": 6}]),
    "limit.rate": (limited(rates={"g.*": "1/minute"}), [{"a0": 5}, {"a0": 6}]),
    "limit.identical_calls": (limited(max_identical_calls=1), [{"a0": 5}, {"a0": "5"}]),
    "limit.depth": (limited("nests", depth=1), [{"a0": 5}]),
    "limit.money": (limited("spends", money={"EUR": "0.2"}), [{"a0": 5}, {"a0": 6}]),
    "limit.result_bytes": (World(PATH, policy={"limits": Limits(result_bytes=60)}), [{"a0": "x" * 70}]),
    "tool.failed": (World(NUMBER, "fails"), [{"a0": 5}]),
    "return.type": (World(NUMBER, "wrong"), [{"a0": 5}]),
    "g.failed": (World(NUMBER, "says", secret=True), [{"a0": 5}]),
    "inject.invalid": (World(NUMBER, injected={"a0": "x"}), [{}]),
}
"""A world and its calls for each outcome, one of which has it."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds(), seed=some.integers(0, 2**32), count=some.integers(1, 6))
def check_both_ways(tmp_path: Path, world: World, seed: int, count: int) -> None:
    """Make the same calls in both ways, and compare."""
    compare(tmp_path, world, drawn_calls(world, seed, count))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=injected(), seed=some.integers(0, 2**32), count=some.integers(1, 6))
def check_injected(tmp_path: Path, world: World, seed: int, count: int) -> None:
    """Do the same with a host that provides some of the arguments."""
    compare(tmp_path, world, drawn_calls(world, seed, count))


def drawn_calls(world: World, seed: int, count: int) -> list[Any]:
    """Return random calls, the last one twice."""
    random = Generator(seed)
    calls = [a_call(random, world.visible) for _ in range(count)]
    return [*calls, calls[-1]]


def compare(tmp_path: Path, world: World, calls: Sequence[Any]) -> None:
    """Make the same calls in each way, and compare the outcomes."""
    one, other, third = (Made(world, tmp_path / name) for name in ("one", "other", "third"))
    for args in calls:
        first, second = (
            come_of(lambda args=args: compiled(one.session, args)),
            come_of(lambda args=args: steps(other.session, args)),
        )
        assert first[0] == second[0]
        assert same(first[1], second[1]) or first[1] == second[1], (first, second)
        CODES[first[0]] += 1
        assert_same_result(executed(third.session, args), as_executed(one.session, lambda first=first: again(first)))

    left, right, last = one.outcome(), other.outcome(), third.outcome()
    assert different(left, right) == {}
    assert different(left, last) == {}


def again(outcome: tuple[str, Any]) -> Any:
    """Return or raise an outcome of `come_of` once more."""
    code, result = outcome
    if code == "ok":
        return result
    raise result.error


def assert_same_result(result: ToolResult, expected: ToolResult) -> None:
    """Compare all that does not depend on the way: the value, and the data of the error."""
    if expected.error is None:
        assert result.error is None
        assert same(result.value, expected.value) or result.value == expected.value
        return
    assert result.error is not None
    assert data_of(result.error) == data_of(expected.error)


def different(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Return the differences; for records, the fields of the first one that differs."""
    found: dict[str, Any] = {name: (left[name], right[name]) for name in left if left[name] != right[name]}
    for name, (first, second) in found.items():
        pair = next(((a, b) for a, b in zip(first, second, strict=False) if a != b), None)
        if pair is not None and type(pair[0]) is CallRecord is type(pair[1]):
            reported, other = pair[0]._asdict(), pair[1]._asdict()
            found[name] = {
                field: (reported[field], other[field]) for field in reported if reported[field] != other[field]
            }
    return found


def test_both_pipelines_have_the_same_effects_and_reports(tmp_path: Path) -> None:
    """Tools, arguments and hosts are random."""
    CODES.clear()

    check_both_ways(tmp_path)

    assert CODES["ok"] > sum(CODES.values()) / 8


@pytest.mark.parametrize("code", WRITTEN)
def test_every_outcome_is_the_same_in_each_way(tmp_path: Path, code: str) -> None:
    CODES.clear()
    world, calls = WRITTEN[code]

    compare(tmp_path, world, calls)
    compare(tmp_path, world, [*calls, *calls])  # `execute` compiles from the second call on

    assert code in CODES


def test_both_pipelines_agree_on_injected_arguments(tmp_path: Path) -> None:
    """This includes invalid injected values, and values that the tool may not receive."""
    CODES.clear()

    check_injected(tmp_path)

    assert CODES["ok"] > sum(CODES.values()) / 16


def test_the_two_pipelines_differ() -> None:
    """One is compiled for this tool, and the other is the same code for all tools."""
    made = Made(World((ArgSpec("a0", ArgType.INT),), intents=True), Path("nowhere"))
    line = made.engine._entry("g.t").pipeline

    assert line.is_direct
    assert compiled(made.engine, [5]) == steps(made.engine, ["5"]) == [5]
    assert [each.kind for each in made.sink.told] == ["intent", "outcome"] * 2
    assert made.sink.told[0].call != made.sink.told[2].call
