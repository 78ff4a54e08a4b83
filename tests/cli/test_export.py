"""``neuroscript export``: tools as JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from tests.cli.conftest import CommandResult, command
from tests.cli.probe import probe

from neuroscript import Engine, result_schema, spec_from_schema, spec_to_schema
from neuroscript.llm.wire import anthropic, gemini, openai


def test_tools_are_exported_with_their_schemas() -> None:
    """The output equals that of the library."""
    result = command("export", "jsonschema", "probe.t*")
    specs = sorted((tool.spec for tool in probe if tool.name.startswith("probe.t")), key=lambda spec: spec.full_name)

    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == [
        {
            "name": spec.full_name,
            "description": spec.description,
            "input_schema": spec_to_schema(spec),
            "output_schema": result_schema(spec),
        }
        for spec in specs
    ]


def test_installed_tools_are_exported_from_their_indexes() -> None:
    """No engine is created, and each schema yields the spec of the loaded tool."""
    result = command("export", "jsonschema", make_engine=None)
    written = {each["name"]: each["input_schema"] for each in json.loads(result.out)}

    with Engine() as engine:
        specs = {name: tool.spec for name, tool in engine.tools.items()}
    assert set(specs) == set(written)
    for name, schema in written.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert spec_to_schema(spec_from_schema(name, schema)) == spec_to_schema(specs[name])


def test_plain_schemas_have_no_extensions() -> None:
    """They suit APIs that accept only standard keywords."""
    result = command("export", "jsonschema", "--plain")

    assert result.code == 0
    assert len(json.loads(result.out)) == len([*probe])
    assert "x-neuroscript" not in result.out


@pytest.mark.parametrize(
    ("form", "neighbour", "options"),
    [
        ("openai", openai, {}),
        ("openai-responses", openai, {"api": "responses"}),
        ("anthropic", anthropic, {}),
        ("gemini", gemini, {}),
    ],
)
def test_tools_are_exported_for_the_api_of_a_model(form: str, neighbour: Any, options: dict[str, Any]) -> None:
    """The list equals that of the library."""
    result = command("export", form, "probe.*")
    specs = sorted((tool.spec for tool in probe), key=lambda spec: spec.full_name)

    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == neighbour.to_tools(specs, **options)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["jsonschema", "nothing.*"], CommandResult(2, "", "neuroscript: no tool matches nothing.*\n")),
        (
            [],
            CommandResult(
                2, "", "neuroscript: the following arguments are required: FORMAT (see neuroscript export --help)\n"
            ),
        ),
    ],
    ids=["no tool", "no form"],
)
def test_export_errors_are_reported(words: list[str], expected: CommandResult) -> None:
    """Each is one line on stderr."""
    assert command("export", *words) == expected
