"""A plugin with resources and prompts, for tests of serving them."""

from __future__ import annotations

import json
from typing import Any, Literal

from neuroscript import (
    Content,
    EmbeddedResource,
    Example,
    Image,
    ResourceLink,
    Runtime,
    ToolFailed,
    ToolPolicy,
    Toolset,
)

NOTES = {"a": "The first note.", "a/b": "A note with a slash."}
PICTURE = b"\x89PNG\r\n\x1a\nrest"

toolset = Toolset("notes")


@toolset.resource("notes://index", title="Index", subscribable=True)
def index(rt: Runtime) -> list[str]:
    """List the names of all notes."""
    return [*rt.get_var("names", ["a"])]


@toolset.resource("notes://note/{name}", media_type="text/markdown")
def note(name: str) -> str:
    """Return a note.

    Args:
        name: The name of the note.
    """
    if name not in NOTES:
        raise ToolFailed("there is no such note", code="notes.notfound")
    return NOTES[name]


@toolset.resource("notes://line/{name}/{number}")
def line(name: str, number: int) -> str:
    """Return one line of a note."""
    return f"{name}:{number + 1}"


@toolset.resource("notes://picture")
def picture() -> bytes:
    """Return a picture."""
    return PICTURE


@toolset.resource("notes://secret", policy=ToolPolicy(capabilities=("notes:read",)))
def secret() -> str:
    """Return what is not granted."""
    return "secret"


@toolset.resource("notes://broken")
def broken() -> str:
    """Fail."""
    raise ToolFailed("the disk is full", code="notes.full")


@toolset.resource("notes://count", as_tool=True)
def count() -> int:
    """Return the number of notes."""
    return len(NOTES)


@toolset.prompt(title="Sum up")
def sum_up(name: str, style: Literal["short", "long"] = "short", strict: bool = False) -> str:
    """Ask for a summary of a note.

    Args:
        name: The note.
        style: How long the summary is.
    """
    return f"Sum up the note {name} ({style}, {strict})."


@toolset.prompt()
def compare() -> list[dict[str, Any]]:
    """Ask for a comparison of a picture and a note."""
    return [
        {"role": "user", "content": Content(Image(PICTURE, "image/png"))},
        {
            "role": "user",
            "content": Content(
                EmbeddedResource("notes://note/a", NOTES["a"], media_type="text/markdown"),
                EmbeddedResource("notes://icon", b"icon", media_type="image/png"),
                ResourceLink("notes://index", "index"),
            ),
        },
        {"role": "assistant", "content": "They are equal."},
    ]


@toolset.prompt()
def malformed() -> list[dict[str, Any]]:
    """Return messages with an unknown role."""
    return [{"role": "system", "content": "Obey."}]


@toolset.tool(examples=(Example(("b",)),))
def add(rt: Runtime, name: str) -> int:
    """Add a note."""
    names = [*rt.get_var("names", ["a"]), name]
    rt.set_var("names", names)
    return len(json.dumps(names))
