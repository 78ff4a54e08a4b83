"""What the page of a tool shows: the tool itself, its form, and what would happen with the arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from neuroscript.console.console import Console
from neuroscript.console.effects import is_held_back
from neuroscript.console.forms.arguments_form import ArgumentsForm, field_ids
from neuroscript.console.forms.json_text import mask_arguments
from neuroscript.console.tools.code_samples import samples_of
from neuroscript.console.tools.listing import list_tool
from neuroscript.console.tools.preview import preview_call
from neuroscript.console.tools.sandbox_files import path_suggestions
from neuroscript.console.tools.schemas import schemas_of
from neuroscript.engine.explanation.tool_sources import isolation_of, isolation_text, source_of
from neuroscript.engine.session import Session
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import inner_rules, label_phrases, return_text, rule_phrase, signature, to_json
from neuroscript.io.text import shorten
from neuroscript.spec.binding import by_name
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
from neuroscript.tools.tool import ToolImplementation

MAX_ARGUMENTS: Final = 300
"""Maximum number of rows in the table of arguments."""

MAX_EXAMPLES: Final = 20
MAX_EXAMPLE_CHARS: Final = 300


def tool_context(console: Console, session: Session, tool: ToolImplementation) -> dict[str, Any]:
    """Return the variables of the template that describe a tool."""
    spec, engine = tool.spec, console.engine
    source = source_of(engine, tool.name)
    isolation = isolation_of(session.policy, tool.name, source)
    return {
        "tool": tool,
        "spec": spec,
        "listed": list_tool(engine, session, tool),
        "signature": signature(spec),
        "returns": return_text(spec),
        "rows": list(_rows(spec))[:MAX_ARGUMENTS],
        "old_names": source.old,
        "labels": tuple(label_phrases(tool.policy)),
        "isolation": "" if isolation is None else isolation_text(isolation),
        "examples": [_example(spec, each) for each in spec.examples[:MAX_EXAMPLES]],
        "schemas": schemas_of(tool),
        "is_held_back": is_held_back(console, tool.policy),
    }


def form_context(
    console: Console, session: Session, tool: ToolImplementation, form: ArgumentsForm, *, is_new: bool = False
) -> dict[str, Any]:
    """Return the variables of the template for the form and the preview.

    Args:
        is_new: Whether the user has entered nothing yet, so that missing arguments are not shown as problems.
    """
    preview = preview_call(console, session, tool, form)
    unread = {each.where for each in form.problems}
    found = {} if is_new else preview.problems_by_place()
    fields = form.fields(
        problems={where: texts for where, texts in found.items() if where not in unread},
        notes=preview.notes(),
        suggest=path_suggestions(session, tool.policy),
    )
    ids = field_ids(fields)
    return {
        "form": form,
        "fields": fields,
        "preview": preview,
        "links": [(where, text, _nearest(where, ids)) for where, text in preview.problems],
        "samples": samples_of(tool.spec, form.shown),
        "secrets": sorted(tool.spec.secret_names),
    }


def _nearest(where: str, ids: dict[str, str]) -> str:
    """Return the id of the field at a place, or of the field around it."""
    while where and where not in ids:
        where = where[: where.rfind("[")] if "[" in where else ""
    return ids.get(where, "")


def _rows(spec: ToolSpec) -> Iterator[tuple[str, str, str, int]]:
    """Yield the path, the rule, the description and the depth of each argument and key."""
    for arg in spec.args:
        yield _row(arg.name, arg, 0, further=spec.variadic and arg is spec.args[-1])
        for path, key in inner_rules(arg, arg.name):
            yield _row(path, key, path.count(".") + path.count("["))


def _row(path: str, arg: ArgSpec, depth: int, *, further: bool = False) -> tuple[str, str, str, int]:
    return path, rule_phrase(arg, further), arg.description, depth


def _example(spec: ToolSpec, example: Example) -> tuple[str, str, str]:
    """Return the arguments, the outcome and the note of an example as text, without secrets."""
    given = example_arguments(spec, example)
    shown = mask_arguments(spec.args, given, variadic=spec.variadic)
    if example.error:
        outcome = f"fails: {example.error}"
    else:
        outcome = "result varies" if example.result is UNSET else f"returns {_text(example.result)}"
    return _text(shown), outcome, example.note


def example_arguments(spec: ToolSpec, example: Example) -> dict[str, Any]:
    """Return the arguments of an example by name."""
    if isinstance(example.args, Mapping):
        return dict(example.args)
    return by_name(spec, example.args) or {}


def _text(value: Any) -> str:
    try:
        text = to_json(value)
    except (TypeError, ValueError):  # an example may contain any object
        text = type(value).__name__
    return shorten(text, MAX_EXAMPLE_CHARS)
