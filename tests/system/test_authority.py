"""What may run: whole chains of calls through real engines, compared with an oracle that imports none of our code.

A cell is a policy, a chain of tools in which each calls the next, and a path that each of them receives. The oracle
must predict which calls run and what refuses the others, through every entry point and for every kind of function.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from posixpath import normpath
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    Engine,
    ExecutionPolicy,
    Runtime,
    ToolCall,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.policy.limits import Limits

Need = tuple[str, str]
"""A verb and a scope: a path, a path and all below it (``data/**``), or ``*`` for the whole resource."""


@attrs.frozen
class Facts:
    """What a tool asks for, as the oracle reads it."""

    needs: tuple[Need, ...] = ()
    trust: bool = False
    approval: bool = False


TOOLS = {
    "g.free": Facts(),
    "g.trusty": Facts(trust=True),
    "g.read": Facts((("read", "{path}"),)),
    "g.data": Facts((("read", "data/**"),)),
    "g.write": Facts((("read", "{path}"), ("write", "{path}"))),
    "h.whole": Facts((("read", "*"), ("write", "*"))),
    "h.asked": Facts((("read", "data/**"),), approval=True),
}

TRUST = (False, True)
ALLOW = (("*",), ("g.*", "h.whole"), ("h.*", "g.read"), ("*.?????", "tool.G.Free"))
DENY: tuple[tuple[str, ...], ...] = ((), ("g.write",), ("h.*",), ("*.read", "g.data"), ("Tool.*.r*",))
GRANTS: tuple[tuple[Need, ...], ...] = (
    (),
    (("read", "data/**"),),
    (("read", "*"),),
    (("read", "*"), ("write", "*")),
    (("read", "data/**"), ("write", "data/out/**")),
)
LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"depth": 1},
    {"depth": 2},
    {"calls": 0},
    {"calls": 1},
    {"calls": 2, "depth": 3},
    {"tool_calls": {"g.read": 0, "h.asked": 0}},
    {"tool_calls": {"Tool.G.Read": 1, "h.whole": 1, "g.data": 1, "G.FREE": 0}},
)
APPROVAL = ("nobody", "yes", "no", "listed")
PATHS = ("data/a", "data/out/./x", "data/../b", "data/out/../../../b", "/data/a")


@attrs.frozen
class Cell:
    """One policy, one chain of tools with the outermost first, and what became of the call."""

    chain: tuple[str, ...]
    path: str = "data/a"
    trusted: bool = False
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    grants: tuple[Need, ...] = ()
    limits: dict[str, Any] = attrs.field(factory=dict)
    approval: str = "nobody"


def oracle(cell: Cell) -> tuple[tuple[str, ...], str]:
    """Return which tools of a chain run, the outermost first, and the code of what refuses the next."""
    path, held, counts = normpath(cell.path), [cell.grants], Counter[str]()
    leaves = path.startswith(("..", "/"))
    most = {name.lower().removeprefix("tool."): count for name, count in cell.limits.get("tool_calls", {}).items()}
    for depth, name in enumerate(cell.chain, 1):
        tool = TOOLS[name]
        needs = tuple((verb, scope.replace("{path}", path)) for verb, scope in tool.needs)
        refusals = {
            "policy.trust": tool.trust and not cell.trusted,
            "policy.denied": any(fnmatchcase(name, each.lower().removeprefix("tool.")) for each in cell.deny),
            "policy.not_allowed": not any(fnmatchcase(name, each.lower().removeprefix("tool.")) for each in cell.allow),
            "policy.approval": tool.approval and cell.approval == "nobody",
            "limit.depth": depth > cell.limits.get("depth", 16),
            "policy.capability": (leaves and ("read", "{path}") in tool.needs)
            or not all(any(within(need, each) for each in given) for given in held for need in needs),
            "policy.rejected": tool.approval and cell.approval == "no",
            "limit.calls": depth > cell.limits.get("calls", depth),
            "limit.tool_calls": counts[name] >= most.get(name, depth),
        }
        code = next((code for code, refuses in refusals.items() if refuses), "")
        if code:
            return cell.chain[: depth - 1], code
        counts[name] += 1
        held.append(needs)
    return cell.chain, ""


def within(need: Need, grant: Need) -> bool:
    """Tell whether all that a need means is what a grant means."""
    folder = grant[1].removesuffix("**") if grant[1].endswith("/**") else None
    return need[0] == grant[0] and (
        grant[1] in ("*", need[1]) or (folder is not None and f"{need[1]}/".startswith(folder))
    )


# The cells as real calls

Manner = str
"""How the tools are written: ``plain``, ``coroutine`` or ``stream``."""


def tools_of(manner: Manner, facts: dict[str, Facts], ran: list[str]) -> Toolset:
    """Return tools that write down that they ran and then call the next of their chain."""

    def plain(name: str) -> Callable[..., Any]:
        def func(rt: Runtime, path: str, further: list[str]) -> Any:
            ran.append(name)
            return rt.call_tool(further[0], (path, further[1:])) if further else name

        return func

    def coroutine(name: str) -> Callable[..., Any]:
        async def func(rt: Runtime, path: str, further: list[str]) -> Any:
            ran.append(name)
            return rt.call_tool(further[0], (path, further[1:])) if further else name

        return func

    def stream(name: str) -> Callable[..., Any]:
        def func(rt: Runtime, path: str, further: list[str]) -> Iterator[Any]:
            ran.append(name)
            yield rt.call_tool(further[0], (path, further[1:])) if further else name

        return func

    made = {"plain": plain, "coroutine": coroutine, "stream": stream}[manner]
    toolset = Toolset("g")
    for full_name, each in facts.items():
        group, _, name = full_name.rpartition(".")
        args = (ArgSpec("path", ArgType.STRING), ArgSpec("further", ArgType.SLICE_STRING, default=[]))
        spec = ToolSpec(name, group, args, return_type=ArgType.ANY, stream=manner == "stream")
        toolset.add(spec, made(full_name), needing(each))
    return toolset


def written_down(manner: Manner, facts: dict[str, Facts]) -> tuple[Toolset, list[str]]:
    """Return tools and the list in which they write that they ran."""
    executed: list[str] = []
    return tools_of(manner, facts, executed), executed


@cache
def tools_of_the_table(manner: Manner) -> tuple[Toolset, list[str]]:
    """Return those of ``TOOLS``, which are made once: thousands of cells differ in all but them."""
    return written_down(manner, TOOLS)


def needing(facts: Facts) -> ToolPolicy:
    """Return what a tool asks for in our own words."""
    texts = tuple(f"fs:{verb}" if scope == "*" else f"fs:{verb}:{scope}" for verb, scope in facts.needs)
    return ToolPolicy(requires_trust=facts.trust, requires_approval=facts.approval, capabilities=texts)


def permitting(cell: Cell) -> ExecutionPolicy:
    """Return the policy of a cell in our own words."""

    def approver(request: ApprovalRequest) -> Approval:
        return Approval.approve() if cell.approval == "yes" else Approval.reject()

    return ExecutionPolicy(
        allow=cell.allow,
        deny=cell.deny,
        grants=tuple(f"fs:{verb}:{scope}" for verb, scope in cell.grants),
        trusted=cell.trusted,
        limits=Limits(**cell.limits) if cell.limits else None,
        preapproved=tuple(name for name, each in TOOLS.items() if each.approval) if cell.approval == "listed" else (),
        approver=approver if cell.approval in ("yes", "no") else None,
    )


async def _last(items: Any) -> Any:
    return [item async for item in items]


ENTRY_POINTS: dict[str, Callable[[Engine, str, tuple[Any, ...]], Any]] = {
    "call": lambda engine, name, args: engine.call(name, args),
    "acall": lambda engine, name, args: asyncio.run(engine.acall(name, args)),
    "stream": lambda engine, name, args: list(engine.stream(name, args)),
    "astream": lambda engine, name, args: asyncio.run(_last(engine.astream(name, args))),
    "session": lambda engine, name, args: engine.session().call(name, args),
    "timed": lambda engine, name, args: engine.call(name, args, timeout=60),
}


def became(
    cell: Cell, manner: Manner = "plain", entry_point: str = "call", facts: dict[str, Facts] = TOOLS
) -> tuple[tuple[str, ...], str]:
    """Make the call of a cell, and return what ran and the code of what refused the rest.

    A refusal must have left one record that says the same, and nothing else may have left any.
    """
    toolset, result = tools_of_the_table(manner) if facts is TOOLS else written_down(manner, facts)
    result.clear()
    code = ""
    with Engine(policy=permitting(cell), toolsets=[toolset], plugins="none") as engine:
        outermost, *further = cell.chain
        try:
            ENTRY_POINTS[entry_point](engine, outermost, (cell.path, further))
        except CallError as error:
            code = error.code
            assert error.retry == retry_of(cell, code, facts[cell.chain[len(result)]])
        reported = [(record.tool, record.code, record.depth) for record in engine.refusals]
    assert reported == ([(cell.chain[len(result)], code, len(result) + 1)] if code else [])
    return tuple(result), code


def retry_of(cell: Cell, code: str, tool: Facts) -> str:
    """Return who can make a refused call succeed: the model where the first missing need leaves the sandbox."""
    if code != "policy.capability":
        return "never" if code == "policy.rejected" else "host"
    path = normpath(cell.path)
    for verb, scope in tool.needs:
        if scope == "{path}" and path.startswith(("..", "/")):
            return "model"
        if not any(within((verb, scope.replace("{path}", path)), each) for each in cell.grants):
            return "host"
    return "host"


def disagreeing(cells: list[Cell], manner: Manner = "plain", entry_point: str = "call") -> list[Any]:
    """Return the cells that came to another end than the oracle says, with both ends."""
    ends = ((cell, oracle(cell), became(cell, manner, entry_point)) for cell in cells)
    return [(cell, message, result) for cell, message, result in ends if message != result]


def product(leaf: str) -> list[Cell]:
    """Return trust x allow x deny x grants x limits x depth for one tool, alone and within others."""
    chains = [(leaf,), ("h.whole", leaf), ("h.whole", "g.data", leaf)]
    return [
        Cell(chain, "data/a", trusted, allow, deny, grants, limits)
        for chain, trusted, allow, deny, grants, limits in itertools.product(
            chains, TRUST, ALLOW[:3], DENY[:4], GRANTS[:4], LIMITS[:6]
        )
    ]


@pytest.mark.parametrize("leaf", ["g.free", "g.read", "g.trusty"])
def test_the_table_of_trust_allow_deny_capabilities_limits_and_depth_agrees_with_the_oracle(
    leaf: str, full_counts: bool
) -> None:
    """1,728 cells for each tool in a full run, otherwise each fifth, which combines all pairs of dimensions."""
    cells = product(leaf)

    assert 1_728 == len(cells)
    assert disagreeing(cells[:: 1 if full_counts else 5]) == []


def draw_cells(seed: int, count: int) -> list[Cell]:
    """Return cells of every kind: chains of one to three of all tools, each dimension drawn by itself."""
    chance = random.Random(seed)
    return [
        Cell(
            tuple(chance.choices(tuple(TOOLS), k=chance.choice((1, 2, 3, 3)))),
            chance.choice(PATHS),
            chance.random() < 0.8,
            chance.choice((*ALLOW[:1] * 3, *ALLOW)),
            chance.choice((*DENY[:1] * 4, *DENY)),
            chance.choice((*GRANTS[3:4] * 4, *GRANTS)),
            chance.choice((*LIMITS[:1] * 4, *LIMITS)),
            chance.choice(APPROVAL),
        )
        for _ in range(count)
    ]


CODES = {
    "policy.trust", "policy.denied", "policy.not_allowed", "policy.approval", "policy.capability", "policy.rejected",
    "limit.depth", "limit.calls", "limit.tool_calls", "",
}  # fmt: skip


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("manner", ["plain", "coroutine", "stream"])
def test_chains_of_all_tools_agree_with_the_oracle_through_every_entry_point(
    manner: Manner, entry_point: str, full_counts: bool
) -> None:
    """Different cells for each entry point and each kind of function; each of them reaches every outcome."""
    cells = draw_cells([*ENTRY_POINTS].index(entry_point) * 16 + len(manner), 400 if full_counts else 200)
    ends = [oracle(cell) for cell in cells]

    assert disagreeing(cells, manner, entry_point) == []
    assert {code for _, code in ends} == CODES
    assert {len(result) for result, _ in ends} == {0, 1, 2, 3}


def test_a_refused_tool_is_refused_whatever_it_is_given() -> None:
    """Trust, deny and allow come before the arguments: no argument tells anything of a tool that is refused."""
    for trusted, allow, deny in itertools.product(TRUST, ALLOW, DENY):
        cell = Cell(("g.trusty",), "data/a", trusted, allow, deny, GRANTS[3])
        code = oracle(cell)[1]
        with Engine(policy=permitting(cell), toolsets=[tools_of("plain", TOOLS, [])], plugins="none") as engine:
            for args in ((), (1,), ("a", [], "b"), {"path": 5}, "nonsense"):
                result = engine.execute(ToolCall("g.trusty", args))
                assert result.error is not None or not code
                assert result.error is None or not code or (result.error.code, result.error.retry) == (code, "host")


# Properties

NAMES = tuple(TOOLS)
SCOPES = ("{path}", "data/**", "data/out/**", "*", "data/a", "b")

needs = st.lists(st.tuples(st.sampled_from(("read", "write", "delete")), st.sampled_from(SCOPES)), max_size=3).map(
    tuple
)
granted = st.lists(
    st.tuples(st.sampled_from(("read", "write", "delete")), st.sampled_from(SCOPES[1:])), max_size=4, unique=True
).map(tuple)
patterns = st.lists(st.sampled_from((*NAMES, "g.*", "h.*", "*", "*.?????", "*e*", "Tool.G.*")), max_size=3).map(tuple)
facts = st.fixed_dictionaries(
    {name: st.builds(Facts, needs, st.booleans(), st.booleans()) for name in NAMES}  # type: ignore[arg-type]
)
counting = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.integers(0, 4),
        "depth": st.integers(1, 4),
        "tool_calls": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=2),
    },
)
cells = st.builds(
    Cell,
    chain=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple),
    path=st.sampled_from(PATHS),
    trusted=st.booleans(),
    allow=patterns.map(lambda each: each or ("*",)),
    deny=patterns,
    grants=granted,
    limits=counting,
    approval=st.sampled_from(APPROVAL),
)


def lowered(draw: Any, limits: dict[str, Any]) -> dict[str, Any]:
    """Return limits of which one is lower than before, or is there where none was."""
    match draw(st.sampled_from(("calls", "depth", "tool_calls"))):
        case "tool_calls":
            name = draw(st.sampled_from(NAMES))
            known = limits.get("tool_calls", {})
            return {**limits, "tool_calls": {**known, name: draw(st.integers(0, known.get(name, 3)))}}
        case word:
            return {**limits, word: draw(st.integers(int(word == "depth"), limits.get(word, 4)))}


@st.composite
def tightened(draw: Any) -> tuple[Cell, Cell]:
    """Return a cell and another that permits less in one thing."""
    cell = draw(cells)
    match draw(st.sampled_from(("deny", "allow", "grants", "trusted", "limits", "approval"))):
        case "deny":
            return cell, attrs.evolve(cell, deny=(*cell.deny, draw(patterns.filter(bool))[0]))
        case "allow":
            return cell, attrs.evolve(cell, allow=without_one(draw, cell.allow))
        case "grants":
            return cell, attrs.evolve(cell, grants=without_one(draw, cell.grants))
        case "trusted":
            return cell, attrs.evolve(cell, trusted=False)
        case "limits":
            return cell, attrs.evolve(cell, limits=lowered(draw, cell.limits))
        case _:
            return cell, attrs.evolve(cell, approval=draw(st.sampled_from(("nobody", "no"))))


def without_one(draw: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return all but one."""
    index = draw(st.integers(0, max(0, len(given) - 1)))
    return (*given[:index], *given[index + 1 :])


@pytest.mark.slow
@given(facts, tightened())
def test_whatever_is_tightened_never_allows_more(tools: dict[str, Facts], pair: tuple[Cell, Cell]) -> None:
    """A further deny, an allow or a grant less, no trust, a lower limit: no tool runs that did not run before."""
    before, after = (became(cell, facts=tools)[0] for cell in pair)

    assert before[: len(after)] == after


@pytest.mark.slow
@given(facts, cells, cells)
def test_a_policy_within_another_never_allows_more_than_either(
    tools: dict[str, Facts], ceiling: Cell, inner: Cell
) -> None:
    """By ``narrowed``, by ``within``, by ``inside``, and as the policy of a session: whatever the narrower one says."""
    inner = attrs.evolve(inner, chain=ceiling.chain, path=ceiling.path)
    outer, own = permitting(ceiling), permitting(inner)
    changes = {
        name: getattr(own, name) for name in ("allow", "deny", "grants", "trusted", "limits", "preapproved", "approver")
    }
    alone = [became(cell, facts=tools)[0] for cell in (ceiling, inner)]
    unasked = all(name in own.preapproved or not tools[name].approval for name in ceiling.chain)
    ways = [outer.narrowed(**changes), attrs.evolve(own, within=outer), own.inside(outer)]
    narrowed = [ran_under(each, None, ceiling, tools) for each in ways]
    narrowed.append(ran_under(outer, own, ceiling, tools))

    assert len(set(narrowed)) == 1, "one of the ways to narrow is another than the others"
    for result in narrowed:
        assert alone[0][: len(result)] == result
        if own.approver is not None or unasked:  # else the ceiling's own approver is asked
            assert alone[1][: len(result)] == result


def ran_under(
    policy: ExecutionPolicy, own: ExecutionPolicy | None, cell: Cell, tools: dict[str, Facts]
) -> tuple[str, ...]:
    """Return what ran under a policy, perhaps in a session with one of its own."""
    executed: list[str] = []
    with Engine(policy=policy, toolsets=[tools_of("plain", tools, executed)], plugins="none") as engine:
        outermost, *further = cell.chain
        session = engine if own is None else engine.session(policy=own)
        session.execute(ToolCall(outermost, (cell.path, further)))
    return tuple(executed)


@pytest.mark.slow
@given(facts, cells)
def test_the_authority_of_a_child_is_within_that_of_its_parent_and_of_the_host(
    tools: dict[str, Facts], cell: Cell
) -> None:
    """Of every tool that ran, each need is one that the host grants and that each tool above it needs too."""
    path = normpath(cell.path)
    result, _ = became(cell, facts=tools)

    filled = [tuple((verb, scope.replace("{path}", path)) for verb, scope in tools[name].needs) for name in result]
    for depth, own in enumerate(filled):
        for need, above in itertools.product(own, (cell.grants, *filled[:depth])):
            assert any(within(need, each) for each in above), (result, depth, need, above)


@pytest.mark.slow
@given(facts, cells, st.sampled_from(NAMES))
def test_what_a_call_is_refused_alone_it_is_refused_within_any_other(
    tools: dict[str, Facts], cell: Cell, outer: str
) -> None:
    """A tool never extends the authority of its caller: wrapped in another tool, the chain gets no further."""
    alone, _ = became(cell, facts=tools)
    wrapped, _ = became(attrs.evolve(cell, chain=(outer, *cell.chain)), facts=tools)

    assert alone[: len(wrapped[1:])] == wrapped[1:]


def test_the_oracle_is_short_and_knows_none_of_our_code() -> None:
    """At most 30 lines; what it calls is of this module or of the standard library."""
    known = [globals().get(name) for each in (oracle, within) for name in each.__code__.co_names]

    assert len(inspect.getsource(oracle).splitlines()) <= 30
    assert [each for each in known if getattr(each, "__module__", "").startswith("neuroscript")] == []


def test_a_chain_that_nobody_refuses_gives_what_its_last_tool_gave() -> None:
    """The oracle is of no use where nothing runs at all."""
    toolset = tools_of("plain", TOOLS, [])
    with Engine(
        policy=permitting(Cell((), grants=GRANTS[3], trusted=True)), toolsets=[toolset], plugins="none"
    ) as engine:
        assert "g.read" == engine.call("h.whole", ("data/a", ["g.data", "g.read"]))
        assert all(isinstance(each, ToolImplementation) for each in engine.tools.values())
