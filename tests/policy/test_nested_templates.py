"""Capability templates that name keys of maps, and classes that change the values which a template names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    PolicyError,
    SpecError,
    ToolFailed,
    ToolPolicy,
    Toolset,
    Value,
    Variable,
)
from neuroscript.policy.templates import Template, key_paths, named_in

pydantic = pytest.importorskip("pydantic")

PATH = ArgSpec("path", "string", required=False)
URL = ArgSpec("url", "string")
FILE = ArgSpec("file", "map", keys=(PATH, ArgSpec("tags", "slice_string", required=False)))
MIRRORS = ArgSpec("mirrors", "slice_string", required=False)
ORDER = ArgSpec("order", "map", keys=(FILE, URL, MIRRORS, ArgSpec("files", "slice_map", keys=(PATH,), required=False)))
PLACE = "https://a.com"
FILES = ArgSpec("files", "slice_map", keys=(PATH, ArgSpec("file", "map", keys=(PATH,), required=False)))


@pytest.mark.parametrize(
    ("text", "arg", "value", "expected"),
    [
        ("fs:read:{file.path}", FILE, {"path": "a*"}, ["fs:read:a\\*"]),
        ("fs:read:{file.path}", FILE, {}, ["fs:read"]),
        ("fs:read:{file.path}", FILE, None, ["fs:read"]),
        ("fs:read:{file.tags}", FILE, {"tags": ["a", "b"]}, ["fs:read:a", "fs:read:b"]),
        ("fs:read:{file.tags}", FILE, {"tags": []}, []),
        ("fs:read:{order.file.path}/x", ORDER, {"file": {"path": "a"}}, ["fs:read:a/x"]),
        ("net:read:{order.url.host}", ORDER, {"url": "https://a.com/b"}, ["net:read:a.com:443"]),
        ("fs:read:{order.files.path}", ORDER, {"files": [{"path": "a"}, {}]}, ["fs:read:a", "fs:read"]),
        ("fs:read:{order.files.path}", ORDER, {}, ["fs:read"]),
        ("fs:read:{files.path}", FILES, [{"path": "a"}, {"path": "b"}], ["fs:read:a", "fs:read:b"]),
        ("fs:read:{files.path}", FILES, [], []),
        ("fs:read:{files.file.path}", FILES, [{"file": {"path": "a"}}, {"file": None}], ["fs:read:a", "fs:read"]),
    ],
)
def test_key_fills_a_template(text: str, arg: ArgSpec, value: Any, expected: list[str]) -> None:
    template = Template.parse(text, {arg.name: arg})

    assert expected == [str(need) for need in template.fill([value])]


def test_key_of_each_further_value_fills_a_template() -> None:
    template = Template.parse("fs:read:{file.path}", {"file": FILE}, variadic=True)

    assert ["fs:read:a", "fs:read:b"] == [str(need) for need in template.fill([{"path": "a"}, {"path": "b"}])]


def test_argument_takes_precedence_over_a_key() -> None:
    template = Template.parse("fs:read:{file.path}", {"file": FILE, "file.path": ArgType.STRING})

    assert ["fs:read:b"] == [str(need) for need in template.fill([{"path": "a"}, "b"])]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("fs:read:{file.name}", "{file.name} has an unknown attribute; only .host is supported"),
        ("fs:read:{file}", "{file} is map; only strings, integers, booleans and lists of them can fill a scope"),
        ("fs:read:{order.file}", "{order.file} is map; only strings, integers, booleans and lists of them can fill a scope"),
        ("fs:read:{files.path}/{order.files.path}", "{files.path}/{order.files.path} can contain at most one list"),
        ("fs:read:{order.nothing.path}", "{order.nothing.path} is not an argument of the tool"),
    ],
)  # fmt: skip
def test_other_keys_are_spec_errors(text: str, fault: str) -> None:
    with pytest.raises(SpecError) as caught:
        Template.parse(text, {"file": FILE, "order": ORDER, "files": FILES})

    assert (fault,) == caught.value.problems


def test_names_of_a_template_are_found() -> None:
    """A hidden argument hides the needs that its keys fill."""
    text = "net:read:{order.url.host},{a.b}"

    assert {"order", "order.url", "order.url.host", "a", "a.b"} == named_in(text)
    assert [("url", "host")] == key_paths(text, "order", ("order", "a.b"))
    assert [()] == key_paths(text, "a.b", ("order", "a.b"))


@pytest.mark.parametrize(
    ("arg", "key", "values", "where"),
    [
        (URL, "url", ["nowhere"], "url"),
        (ArgSpec("urls", "slice_string"), "urls", [[PLACE, "nowhere"]], "urls[1]"),
        (ORDER, "order.url", [{"url": "nowhere"}], "order['url']"),
        (ORDER, "order.mirrors", [{"url": "nowhere", "mirrors": [PLACE, "nowhere"]}], "order['mirrors'][1]"),
        (ArgSpec("orders", "slice_map", keys=(URL,)), "orders.url", [[{"url": PLACE}, {"url": "nowhere"}]], "orders"),
    ],
)
def test_error_gives_the_place_of_a_url(arg: ArgSpec, key: str, values: list[Any], where: str) -> None:
    """Within maps of a list it gives only the argument."""
    template = Template.parse(f"net:read:{{{key}.host}}", {arg.name: arg})

    with pytest.raises(ArgumentError) as caught:
        template.fill(values)

    assert [where] == [each.where for each in caught.value.problems]


@pytest.mark.parametrize(
    ("arg", "key", "values", "where"),
    [
        (URL, "url", [PLACE, "nowhere"], "url[1]"),
        (ORDER, "order.url", [{"url": PLACE}, {"url": "nowhere"}], "order[1]['url']"),
    ],
)
def test_error_gives_the_place_of_a_url_in_a_further_value(
    arg: ArgSpec, key: str, values: list[Any], where: str
) -> None:
    """It is the place that an error about the type of the value gives."""
    template = Template.parse(f"net:read:{{{key}.host}}", {arg.name: arg}, variadic=True)

    with pytest.raises(ArgumentError) as caught:
        template.fill(values)

    assert [where] == [each.where for each in caught.value.problems]


class Download(pydantic.BaseModel):  # type: ignore[name-defined, misc]
    """A model whose validators change one field that a template names, and one that none names."""

    path: str
    note: str = ""

    @pydantic.field_validator("path")  # type: ignore[untyped-decorator]
    @classmethod
    def _absolute(cls, path: str) -> str:
        return path.replace("public", "private")

    @pydantic.field_validator("note")  # type: ignore[untyped-decorator]
    @classmethod
    def _upper(cls, note: str) -> str:
        return note.upper()


@dataclass
class Item:
    path: PurePosixPath

    def __post_init__(self) -> None:
        if self.path.name == "b":
            self.path = PurePosixPath("c")


def downloads() -> Toolset:
    """Return tools that receive a model, and a list of instances."""
    toolset = Toolset("web")

    @toolset.tool(policy=ToolPolicy(capabilities=("fs:read:{download.path}",)))
    def get(download: Download) -> str:
        return f"{download.path} {download.note}"

    @toolset.tool(policy=ToolPolicy(capabilities=("fs:read:{items.path}",)))
    def get_all(items: list[Item]) -> list[str]:
        return [str(item.path) for item in items]

    @toolset.tool(policy=ToolPolicy(capabilities=("fs:read:{paths}",)))
    def get_paths(paths: list[str], root: PurePosixPath) -> str:
        return str(root)

    @toolset.tool(policy=ToolPolicy(capabilities=("fs:read:{root}/{path}",)))
    def inside(root: str, path: PurePosixPath) -> str:
        return f"{root}/{path}"

    return toolset


@pytest.fixture(params=["call", "acall", "call_named"])
def calling(request: pytest.FixtureRequest) -> Any:
    """Return a function that calls a tool in one of several ways."""

    def called(engine: Engine, name: str, **args: Any) -> Any:
        if request.param == "call":
            return engine.call(name, tuple(args.values()))
        if request.param == "acall":
            return asyncio.run(engine.acall(name, tuple(args.values())))
        return engine.call_named(name, args)

    return called


def engine_with(*grants: str) -> Engine:
    """Return an engine with the tools and these grants."""
    return Engine(plugins="none", toolsets=[downloads()], policy=ExecutionPolicy(grants=grants))


def test_validator_that_changes_a_named_field_makes_the_call_fail(calling: Any) -> None:
    """The grant covered the path of before; the function would have received another one."""
    with engine_with("fs:read:public/**") as engine:
        with pytest.raises(ArgumentError) as caught:
            calling(engine, "web.get", download={"path": "public/a", "note": "n"})

    assert str(caught.value) == (
        "web.get: download['path']: expected a value that its class leaves as it is, because a capability of this call "
        "depends on it, got a changed value"
    )


def test_validator_may_change_other_fields(calling: Any) -> None:
    with engine_with("fs:read:x/**") as engine:
        assert "x/a N" == calling(engine, "web.get", download={"path": "x/a", "note": "n"})


def test_class_that_changes_an_item_makes_the_call_fail(calling: Any) -> None:
    with engine_with("fs:read:**") as engine:
        assert ["a", "d"] == calling(engine, "web.get_all", items=[{"path": "a"}, {"path": "d"}])
        with pytest.raises(ArgumentError) as caught:
            calling(engine, "web.get_all", items=[{"path": "a"}, {"path": "b"}])

    assert ["items['path']"] == [each.where for each in caught.value.problems]


def test_key_without_a_grant_is_refused(calling: Any) -> None:
    with engine_with("fs:read:x/**") as engine, pytest.raises(PolicyError):
        calling(engine, "web.get", download={"path": "y/a"})


def test_injected_argument_and_visible_path_fill_one_template() -> None:
    """The visible argument is an instance by then; its exact text fills the scope."""
    for source in (Value("x"), Variable("root")):
        toolset = downloads().with_injected("web.inside", root=source)
        policy = ExecutionPolicy(grants=("fs:read:*/a",))
        with Engine(plugins="none", toolsets=[toolset], policy=policy) as engine:
            with engine.session(variables={"root": "x"}) as session:
                assert "x/a" == session.call("web.inside", ("a",))


def test_injected_class_that_changes_a_named_field_makes_the_call_fail() -> None:
    """A value of the host is compared like one of a caller."""
    toolset = downloads().with_injected("web.get", download=Variable("download"))
    policy = ExecutionPolicy(grants=("fs:read:*",))
    with Engine(plugins="none", toolsets=[toolset], policy=policy) as engine:
        assert "x " == engine.session(variables={"download": {"path": "x"}}).call("web.get")
        with pytest.raises(ToolFailed) as caught:
            engine.session(variables={"download": {"path": "public"}}).call("web.get")
    assert ("inject.invalid", "host") == (caught.value.code, caught.value.retry)
