"""The sources and sinks that the tools of this project declare."""

from __future__ import annotations

import pytest

from neuroscript import Engine
from neuroscript.policy.labels import label_contradictions, sinks_of, sources_of

BOTH = ("untrusted", "private")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.mark.parametrize(
    ("tool", "sources", "sinks"),
    [
        ("fs.read", ("private",), ()),
        ("fs.free", (), ()),
        ("fs.write", (), ("storage",)),
        ("fs.delete", (), ("storage",)),
        ("http.get", ("untrusted",), ("outside",)),
        ("http.request", ("untrusted",), ("outside", "storage")),
        ("http.download", ("untrusted",), ("outside", "storage")),
        ("git.log", BOTH, ()),
        ("git.commit", BOTH, ("storage",)),
        ("git.clone", BOTH, ("outside", "storage")),
        ("git.push", BOTH, ("outside", "storage")),
        ("shell.execute", BOTH, ("code", "outside", "storage")),
        ("os.getenv", ("private",), ()),
        ("os.now", (), ()),
        ("llm.ask", (), ()),
        ("io.input", (), ()),
        ("io.print", (), ()),
        ("var.get", (), ()),
        ("var.set", (), ()),
        ("tree.tojson", (), ()),
        ("meta.call", (), ()),
        ("list.map", (), ()),
        ("crypto.hmacwith", (), ()),
        ("str.toupper", (), ()),
    ],
)
def test_labels_of_a_tool(engine: Engine, tool: str, sources: tuple[str, ...], sinks: tuple[str, ...]) -> None:
    """Tools that use only memory, the user or the model of the host add no labels to those of their arguments."""
    policy = engine.tools[tool].policy

    assert (sources_of(policy), sinks_of(policy)) == (sources, sinks)


def test_each_tool_declares_its_labels(engine: Engine) -> None:
    """A tool of this project leaves its labels to its effects only if they imply none."""
    policies = {name: tool.policy for name, tool in engine.tools.items()}

    assert len(policies) > 100
    assert [each for each in policies for _ in label_contradictions(policies[each])] == []
    assert [
        name
        for name, policy in policies.items()
        if (policy.sources is None and sources_of(policy)) or (policy.sinks is None and sinks_of(policy))
    ] == []
