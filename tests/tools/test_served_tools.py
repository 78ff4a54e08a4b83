"""Toolsets with resources and prompts: the decorators, modified copies, and what models are offered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from neuroscript import (
    Engine,
    MemoryAudit,
    Prompt,
    RegistryError,
    Resource,
    Runtime,
    SpecError,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
    spec_to_data,
)
from neuroscript.cli.chat.conversation import offered_tools
from neuroscript.formats.markdown import page
from neuroscript.llm import aconverse, converse
from neuroscript.llm.offered_tools import offer_tools
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.workflow import make_plan

notes = Toolset("notes")


@notes.resource(
    "notes://{name}",
    title="Note",
    media_type="text/markdown",
    subscribable=True,
    policy=ToolPolicy(effects=("reads",)),
    description="Return a note.",
)
def note(rt: Runtime, name: str, version: int = 1) -> str:
    return f"{name} {version}"


@notes.resource("notes://count", name="size", as_tool=True)
def count() -> int:
    """Return the number of notes."""
    return 2


@notes.prompt(title="Sum up", name="summary")
def sum_up(name: str) -> str:
    """Ask for a summary."""
    return f"Sum up {name}."


@notes.tool
def add(name: str) -> str:
    """Add a note."""
    return name


def test_decorated_functions() -> None:
    """The decorators return the function unchanged, and the options are those of the tool and of how it is served."""
    served = {each.name: (each.spec.resource, each.spec.prompt) for each in notes}
    resource = Resource("notes://{name}", title="Note", media_type="text/markdown", subscribable=True)

    assert {
        "notes.note": (resource, None),
        "notes.size": (Resource("notes://count", as_tool=True), None),
        "notes.summary": (None, Prompt(title="Sum up")),
        "notes.add": (None, None),
    } == served
    assert ("Return a note.", ("reads",)) == (notes.tools[0].spec.description, notes.tools[0].policy.effects)
    assert "Sum up tea." == sum_up("tea")


def test_calls_by_name() -> None:
    """Resources and prompts are called, coerced and listed like other tools."""
    with Engine(plugins="none", toolsets=[notes]) as engine:
        assert "tea 2" == engine.call_named("notes.note", {"name": "tea", "version": "2"})
        assert "Sum up tea." == engine.call("notes.summary", ["tea"])
        assert ["notes.add", "notes.note", "notes.size", "notes.summary"] == [*engine.infos]


def test_modified_copies() -> None:
    """A renamed or filtered copy is served in the same way; a variable cannot be injected."""
    copy = notes.prefixed("my").renamed({"my.notes.note": "page"})

    assert (
        "notes://{name}" == {each.name: each.spec.resource and each.spec.resource.uri for each in copy}["my.notes.page"]
    )
    with pytest.raises(SpecError, match=r"notes.note: resource: \{name\} is not an argument"):
        notes.with_fixed("notes.note", name="tea")


def test_same_uri_twice() -> None:
    """Two resources of a toolset have different URIs; the second one is not added."""
    toolset = Toolset("notes", (notes.tools[0],))

    with pytest.raises(SpecError, match=r"toolset notes: notes.note and notes.other are served as the same resource"):

        @toolset.resource("notes://{name}")
        def other(name: str) -> str:
            return name

    with pytest.raises(RegistryError, match=r"toolset notes has two tools called notes.note"):

        @toolset.resource("notes://other", name="note")
        def third() -> str:
            return ""

    assert ["notes.note"] == [each.name for each in toolset]


def test_definition() -> None:
    """How a tool is served is part of its fingerprint; that of other tools is as before."""
    tool = notes.tools[0]
    other = Toolset("notes")
    other.resource("notes://note/{name}", policy=tool.policy, description="Return a note.")(note)

    assert {"resource", "prompt"}.isdisjoint(spec_to_data(notes.tools[3].spec))
    assert fingerprint(tool) != fingerprint(other.tools[0])


class Model:
    """A model that records what it is offered."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.text = ""

    def ask(self, turns: Sequence[Turn], /) -> Turn:
        self.text = turns[0].content
        return Turn("assistant", '{"steps": []}')

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], /) -> Turn:
        self.names = [each.full_name for each in tools]
        return Turn("assistant", "Hello.")


def conversation(engine: Engine) -> list[str]:
    model = Model()
    converse(engine, "Hello?", model=model)
    return model.names


def async_conversation(engine: Engine) -> list[str]:
    model = Model()
    asyncio.run(aconverse(engine, "Hello?", model=model))
    return model.names


def plan(engine: Engine) -> list[str]:
    model = Model()
    with suppress(SpecError):  # the plan is empty
        make_plan(engine, model, "Add.", attempts=1)
    return [name for name in engine.infos if name in model.text]


@pytest.mark.parametrize(
    "offer",
    [
        lambda engine: [each.info.spec.full_name for each in offer_tools(engine, subject="test")],
        lambda engine: [each.spec.full_name for each in offered_tools(engine, ["*"])],
        conversation,
        async_conversation,
        plan,
    ],
    ids=["offer", "chat", "conversation", "async conversation", "plan"],
)
def test_offers_to_models(offer: Callable[[Any], list[str]]) -> None:
    """Models are offered tools, and resources and prompts only with ``as_tool``."""
    with Engine(plugins="none", toolsets=[notes]) as engine:
        assert ["notes.add", "notes.size"] == offer(engine)


class Guesser(Model):
    """A model that calls tools that it was not offered."""

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], /) -> Turn:
        if turns[-1].tool_results:
            return Turn("assistant", "Done.")
        calls = ("notes__note", {"name": "a"}), ("notes.old", {"name": "a"}), ("notes__summary", {"name": "a"})
        return Turn("assistant", "", tool_calls=tuple(ToolCall(name, given) for name, given in calls))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guessed_resource_is_unknown_to_a_model(is_async: bool) -> None:
    """Under an old name too; the refusals are in the audit log."""
    aliased, audit = Toolset("notes", notes.tools), MemoryAudit()
    aliased.alias("notes.old", "notes.note")
    with Engine(plugins="none", toolsets=[aliased], audit=audit) as engine:
        if is_async:
            found = asyncio.run(aconverse(engine, "Hello?", model=Guesser()))
        else:
            found = converse(engine, "Hello?", model=Guesser())

    errors = [each.error for turn in found.turns for each in turn.tool_results]
    assert [each and each.code for each in errors] == ["tool.not_found"] * 3
    assert [each.tool for each in audit.records] == ["notes.note", "notes.note", "notes.summary"]


def test_pages() -> None:
    """The page of a toolset says how its tools are served."""
    with Engine(plugins="none", toolsets=[notes]) as engine:
        text = page("notes", engine.infos.values())

    assert "**Resource:** `notes://{name}`" in text
    assert "**Prompt:** chosen by users." in text
