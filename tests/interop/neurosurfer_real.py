"""A program: tools written for neurosurfer, in its own toolkit, called through an engine.

It prints the results as JSON. With the argument ``sql`` it calls the package's own ``SQLExecutor``.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from neuroscript import ArgumentError, Engine, ExecutionPolicy, ToolCall
from neuroscript.interop.neurosurfer import Invoker, from_neurosurfer

assert "neurosurfer" not in sys.modules, "it is not imported to take its tools"
warnings.simplefilter("ignore")

from neurosurfer.tools import Toolkit  # noqa: E402
from neurosurfer.tools.base_tool import BaseTool, ToolResponse  # noqa: E402
from neurosurfer.tools.tool_spec import ToolParam, ToolReturn, ToolSpec  # noqa: E402

GRANTED = ExecutionPolicy(grants=("neurosurfer:call:*",))


class Typed(BaseTool):  # type: ignore[misc]
    """A tool with an input of each type, which returns what arrives; like shipped tools, it returns a ``list``."""

    spec = ToolSpec(
        name="typed",
        description="Tell what arrives.",
        when_to_use="When types matter.",
        inputs=[
            ToolParam("text", "string", "A string"),
            ToolParam("count", "integer", "A count"),
            ToolParam("share", "float", "A share"),
            ToolParam("flag", "boolean", "A flag"),
            ToolParam("items", "array", "Items"),
            ToolParam("facts", "object", "Facts"),
            ToolParam("limit", "integer", "A limit", required=False),
        ],
        returns=ToolReturn("array", "Types and values"),
    )

    def __call__(self, text: str, limit: int = 100, **kwargs: Any) -> ToolResponse:
        given = {"text": text, "limit": limit, **kwargs}
        reported = {name: [type(each).__name__, each] for name, each in given.items() if name != "db_engine"}
        return ToolResponse(
            False, {**reported, "db": kwargs["db_engine"] is DATABASE}, {"text": "FROM_EXTRAS", "seen": limit}
        )


class Careless(BaseTool):  # type: ignore[misc]
    """A streaming tool that ignores its spec, with Python names for its types."""

    def __init__(self) -> None:
        self.spec = ToolSpec("careless", "d", "w", [ToolParam("text", "str", "d")], ToolReturn("list", "r"))

    def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
        return ToolResponse(True, (each for each in [text, str(kwargs.get("seen"))]))


DATABASE = object()
LOOSE = {"text": "5", "count": "2", "share": "3", "flag": "false", "items": "[1]", "facts": '{"a": 1}'}
EXACT = {"text": "5", "count": 2, "share": 3.0, "flag": False, "items": [1], "facts": {"a": 1}}


def tools() -> dict[str, Any]:
    """Return the results of the tools above."""
    toolkit = Toolkit([Typed(), Careless()])
    taken = from_neurosurfer(toolkit, group="real", trusted=True, context={"db_engine": DATABASE})
    with Engine(plugins="none", toolsets=[taken], policy=GRANTED) as engine:
        typed = engine.execute(ToolCall("real__typed", json.dumps({**LOOSE, "limit": "7"})))
        default = engine.call_named("real.typed", LOOSE)
        items = engine.stream("real.careless", ("hello",))
        streamed = [next(items), next(items)]
        invoker = Invoker(engine.session(), toolkit, group="real")
        refused = ""
        try:
            invoker.invoke("typed", {**EXACT, "count": "2"})
        except ValueError as error:
            refused = str(error)
        first = invoker.invoke("typed", EXACT)
        second = [list(invoker.invoke("careless", {"text": "hello"}).observation) for _ in range(2)]
        try:
            engine.call_named("real.typed", {**LOOSE, "more": 1})
        except ArgumentError as error:
            unknown = str(error)
    return {
        "typed": typed.value,
        "default": default["limit"],
        "streamed": streamed,
        "refused": refused,
        "first": [first.final_answer, first.extras],
        "second": second,
        "unknown": unknown,
    }


def sql() -> dict[str, Any]:
    """Return the result of the package's own SQL tool, which ignores its spec."""
    import sqlalchemy
    from neurosurfer.tools.sql import SQLExecutor

    database = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.StaticPool)
    with database.begin() as connection:
        connection.execute(sqlalchemy.text("create table users (id integer, name text)"))
        connection.execute(sqlalchemy.text("insert into users values (1, 'ada'), (2, 'bob')"))
    tool = SQLExecutor(db_engine=database)
    with Engine(plugins="none", policy=GRANTED) as engine:
        engine.register(from_neurosurfer(tool, trusted=True))
        called = engine.call_named("neurosurfer.sql_executor", {"sql_query": "select * from users"})
        wrong = engine.call("neurosurfer.sql_executor", ("select nothing from nowhere",))
        answer = Invoker(engine.session(), Toolkit([tool])).invoke(
            "sql_executor", {"sql_query": "select id from users"}
        )
        return_help = engine.tools["neurosurfer.sql_executor"].spec.return_help
    return {"called": called, "wrong": [*wrong[0]], "extras": answer.extras, "returns": return_help.partition(":")[0]}


print(json.dumps(sql() if sys.argv[1:] == ["sql"] else tools()))
