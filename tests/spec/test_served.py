"""URIs and templates of resources, and the specs of tools that are served as resources and prompts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import ArgSpec, ArgType, Prompt, Resource, SpecError, ToolSpec, spec_from_data, spec_to_data
from neuroscript.spec.served import MAX_URI_CHARS


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("notes://all", "notes://all", {}),
        ("notes://all", "notes://all/", None),
        ("notes://all", "notes://al", None),
        ("notes://{name}", "notes://a", {"name": "a"}),
        ("notes://{name}", "notes://a%2Fb%20%C3%BC", {"name": "a/b ü"}),
        ("notes://{name}", "notes://a/b", None),
        ("notes://{name}", "notes://a?b", None),
        ("notes://{name}", "notes://a#b", None),
        ("notes://{name}", "notes://", None),
        ("notes://{name}", "notes://%FF", None),
        ("notes://{+path}", "notes://a/b.md", {"path": "a/b.md"}),
        ("notes://{name}.md", "notes://a.md.md", {"name": "a.md"}),
        ("notes://{name}.md", "notes://.md", None),
        ("notes://{name}/{line}", "notes://a/5", {"name": "a", "line": "5"}),
        ("notes://{name}/{line}", "notes://a", None),
        ("notes://{name}/x", "notes://a/y", None),
        ("notes://{a}-{b}.md", "notes://1-2-3.md", {"a": "1", "b": "2-3"}),
        ("notes://{+path}?v={v}", "notes://a/b?v=1", {"path": "a/b", "v": "1"}),
        ("notes://{name}", "notes://" + "a" * MAX_URI_CHARS, None),
    ],
)
def test_uri_match(template: str, uri: str, values: dict[str, str] | None) -> None:
    """A URI matches if each variable has a decoded value."""
    assert values == Resource(template).match(uri)


@given(st.text(min_size=1, max_size=50), st.text(min_size=1, max_size=50))
def test_expanded_uri_matches(name: str, path: str) -> None:
    """A URI that is made from values has these values again."""
    resource = Resource("notes://{name}/files/{+path}?all")
    values = {"name": name, "path": path}

    assert values == resource.match(resource.expand(values))


@pytest.mark.parametrize(
    ("uri", "problems"),
    [
        ("notes", ("must begin with a scheme, such as notes:",)),
        ("notes:", ("must begin with a scheme, such as notes:",)),
        ("{scheme}:a", ("must begin with a scheme, such as notes:",)),
        ("notes://{a", ("an expression must be {name} or {+name}, with letters, digits and _",)),
        ("notes://{a*}", ("an expression must be {name} or {+name}, with letters, digits and _",)),
        ("notes://{?a}", ("an expression must be {name} or {+name}, with letters, digits and _",)),
        ("notes://a b", ("must consist of printable ASCII characters without spaces; encode others with %",)),
        ("notes://{a}{b}", ("two expressions must have text between them",)),
        (
            "notes://{a}/{a}ü}",
            (
                "an expression must be {name} or {+name}, with letters, digits and _",
                "must consist of printable ASCII characters without spaces; encode others with %",
                "{a} occurs more than once",
            ),
        ),
        ("n:" + "a" * MAX_URI_CHARS, ("a URI has at most 2000 characters",)),
    ],
)
def test_malformed_uri(uri: str, problems: tuple[str, ...]) -> None:
    """A malformed URI is rejected with every problem."""
    with pytest.raises(SpecError) as found:
        Resource(uri)

    assert problems == found.value.problems


def test_malformed_media_type() -> None:
    """A media type has a type and a subtype."""
    with pytest.raises(SpecError, match="media_type must be a media type, such as text/markdown"):
        Resource("notes://all", media_type="markdown")


NAME = ArgSpec("name", ArgType.STRING)
OPTIONAL = ArgSpec("version", ArgType.INT, required=False)


def test_optional_argument_needs_no_variable() -> None:
    """A template may leave out optional arguments."""
    spec = ToolSpec("note", "notes", (NAME, OPTIONAL), resource=Resource("notes://{name}"))

    assert ("name",) == (spec.resource or Resource("a:b")).variables


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        (
            {"args": (NAME,), "resource": Resource("notes://{nam}/{line}")},
            (
                "resource: {nam} is not an argument",
                "resource: {line} is not an argument",
                "resource: the argument name is required; add {name} to the URI, or a default",
            ),
        ),
        (
            {"args": (NAME,), "resource": Resource("notes://{name}"), "prompt": Prompt()},
            ("a tool is served as a resource or as a prompt, not as both",),
        ),
        (
            {"args": (NAME,), "prompt": Prompt(), "variadic": True},
            ("a tool that is served as a resource or as a prompt cannot be variadic",),
        ),
        ({"resource": "notes://all"}, ("resource must be a Resource, or None, not str",)),
    ],
)
def test_unfit_spec(options: dict[str, Any], problems: tuple[str, ...]) -> None:
    """A spec whose arguments do not fit how it is served is rejected with every problem."""
    with pytest.raises(SpecError) as found:
        ToolSpec("note", "notes", **options)

    assert problems == found.value.problems


@pytest.mark.parametrize(
    ("served", "data", "is_offered"),
    [
        ({}, {}, True),
        ({"resource": Resource("notes://all")}, {"resource": {"uri": "notes://all"}}, False),
        (
            {"resource": Resource("n:a", title="A", media_type="a/b", subscribable=True, as_tool=True)},
            {"resource": {"uri": "n:a", "title": "A", "mediaType": "a/b", "subscribable": True, "asTool": True}},
            True,
        ),
        ({"prompt": Prompt()}, {"prompt": {}}, False),
        ({"prompt": Prompt(title="A", as_tool=True)}, {"prompt": {"title": "A", "asTool": True}}, True),
    ],
)
def test_served_spec_as_data(served: dict[str, Any], data: dict[str, Any], is_offered: bool) -> None:
    """How a tool is served is part of its definition, and decides whether models are offered it."""
    spec = ToolSpec("note", "notes", **served)
    written = spec_to_data(spec)

    assert data == {key: written[key] for key in ("resource", "prompt") if key in written}
    assert spec == spec_from_data(written)
    assert is_offered is spec.is_offered


def test_malformed_served_data() -> None:
    """The problems of data about a resource have their path."""
    data = {"name": "a", "groupname": "g", "resource": {"uri": "a:b", "asTool": "yes", "size": 1}}

    with pytest.raises(SpecError) as found:
        spec_from_data(data)

    assert ("expected bool, got str @ ToolSpec.resource.asTool", "unknown keys size @ ToolSpec.resource") == (
        found.value.problems
    )
