"""Tools that leak canary values from each origin through each of their channels."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.canaries import ENCODINGS, bare, written

from neuroscript import (
    ArgSpec,
    ArgType,
    CallTimeout,
    LimitError,
    LLMError,
    PolicyError,
    ReturnError,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    Turn,
)

# What a tool can do with a value

Channel = Callable[[Any, list[str]], Any]
"""Takes a Runtime and a value in each encoding, leaks it, and returns or raises the outcome of the tool."""


def lines(rt: Runtime, texts: list[str]) -> None:
    for text in texts:
        rt.println(text)
    rt.println(texts, {"a": texts}, "".join(texts))


def prompts(rt: Runtime, texts: list[str]) -> None:
    for text in texts:
        rt.prompt_user(text)
    rt.prompt_user("".join(texts), secret=False)


def progress(rt: Runtime, texts: list[str]) -> None:
    for text in texts:
        rt.progress(1, 2, text)


def logs(rt: Runtime, texts: list[str]) -> None:
    log = rt.logger
    for text in texts:
        log.info(text)
        log.warning("a value: %s and %r", text, [text])
        log.error("a map: %(a)s", {"a": text})
        try:
            raise ValueError(text)
        except ValueError:
            log.exception("it failed")
        log.getChild("below").log(logging.INFO, "%s", text, extra={"detail": text})


def model(rt: Runtime, texts: list[str]) -> None:
    result = ToolResult("1", "t", texts, error=None)
    failed = ToolResult("1", "t", None, error=ToolFailed(texts[0]))
    turns = [
        Turn("user", "".join(texts)),
        Turn("assistant", tool_calls=(ToolCall("t", texts), ToolCall("t", {text: text for text in texts}))),
        Turn("tool", tool_results=(result, failed)),
    ]
    rt.llm.ask(turns)
    rt.llm.ask_with_tools(turns, [])
    for text in texts:
        rt.llm.embed(text)


def together(texts: list[str]) -> str:
    return " ".join(texts)


def fails(rt: Runtime, texts: list[str]) -> None:
    raise ToolFailed(together(texts))


def fails_oddly(rt: Runtime, texts: list[str]) -> None:
    error = ToolFailed("no", code=together(texts))
    error._retry = together(texts)  # type: ignore[assignment]
    raise error


def fails_as_another(rt: Runtime, texts: list[str]) -> None:
    raise ToolFailed("no", tool=together(texts))


def breaks(rt: Runtime, texts: list[str]) -> None:
    try:
        raise OSError(together(texts))
    except OSError as error:
        raise ExceptionGroup(together(texts), [ValueError(together(texts))]) from error


def exits(rt: Runtime, texts: list[str]) -> None:
    raise SystemExit(together(texts))


def refuses(rt: Runtime, texts: list[str]) -> None:
    text = together(texts)
    error = PolicyError(text, tool=text, code=text, need=text, rule=text)
    error._retry = text  # type: ignore[assignment]
    raise error


def limits(rt: Runtime, texts: list[str]) -> None:
    raise LimitError(together(texts), tool=together(texts), code=together(texts))


def times_out(rt: Runtime, texts: list[str]) -> None:
    error = CallTimeout(together(texts), tool=together(texts), state="stopped")
    error.state = together(texts)  # type: ignore[assignment]
    raise error


def lent_fails(rt: Runtime, texts: list[str]) -> None:
    raise LLMError(together(texts), code=together(texts))


def returns_wrong(rt: Runtime, texts: list[str]) -> None:
    raise ReturnError(together(texts), code=together(texts))


def opens(rt: Runtime, texts: list[str]) -> None:
    rt.fs.read_text("data/" + texts[0].replace("/", ""))


def opens_nowhere(rt: Runtime, texts: list[str]) -> None:
    rt.fs.read_text("/" + together(texts))


def spends(rt: Runtime, texts: list[str]) -> None:
    rt.spend(texts[0], texts[1])


def requires(rt: Runtime, strings: list[str]) -> None:
    rt.require(f"fs:write:x/{bare(strings, 'hex')}")


def calls_nothing(rt: Runtime, texts: list[str]) -> None:
    rt.call_tool(texts[0], texts)


def calls_wrongly(rt: Runtime, texts: list[str]) -> None:
    rt.call_tool_named("c.counts", {text: text for text in texts})


def calls_with_keys(rt: Runtime, texts: list[str]) -> None:
    for name in ENCODINGS:
        rt.call_tool("c.counts", ({bare(texts, name): "5"},))


def reads_wrongly(rt: Runtime, strings: list[str]) -> None:
    rt.call_tool("c.reads", (f"x/{bare(strings, 'hex')}",))


def looks_up(rt: Runtime, texts: list[str]) -> None:
    rt.handles.get(texts[0], "thing")


def keeps_wrongly(rt: Runtime, texts: list[str]) -> None:
    rt.set_var(texts[0], {texts[0]: object()})


def gives(rt: Runtime, texts: list[str]) -> Any:
    return {"list": texts, **{text: text.encode() for text in texts}}


def gives_wrongly(rt: Runtime, texts: list[str]) -> Any:
    return {text: {text: object()} for text in texts}


CHANNELS: dict[str, Channel] = {
    each.__name__: each
    for each in (
        *(lines, prompts, progress, logs, model),
        *(fails, fails_oddly, fails_as_another, breaks, exits, refuses, limits, times_out, lent_fails, returns_wrong),
        *(opens, opens_nowhere, spends, requires, calls_nothing, calls_wrongly, calls_with_keys, reads_wrongly),
        *(looks_up, keeps_wrongly, gives, gives_wrongly),
    )
}

# Tools

VARIABLE = "NEUROSCRIPT_CANARY"
"""The environment variable that a grant names."""

ALL = ToolPolicy(
    capabilities=("fs:read:data/**", "fs:write:data/**", "model:use", "secret:read:lent", f"env:read:{VARIABLE}")
)
HOW = ArgSpec("how", ArgType.STRING, choices=tuple(CHANNELS))
TOKEN = ArgSpec("token", ArgType.STRING, secret=True)
INNER = ArgSpec("inner", ArgType.MAP, keys=(TOKEN,))


def given(rt: Runtime, how: str, value: str) -> Any:
    return CHANNELS[how](rt, written(value))


def nested(rt: Runtime, how: str, options: dict[str, Any]) -> Any:
    return CHANNELS[how](rt, written(options["inner"]["token"]))


def lent(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(rt.secret("lent")))


def environment(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(os.environ[VARIABLE]))


def answered(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(rt.prompt_user("the key, please", secret=True)))


def plain(rt: Runtime, how: str) -> Any:
    return CHANNELS[how](rt, written(rt.get_var("value")))


def outer(rt: Runtime, name: str, args: dict[str, Any]) -> Any:
    return rt.call_tool_named(name, args)


def counts(rt: Runtime, counts: dict[str, int]) -> int:
    return len(counts)


def reads(rt: Runtime, path: str) -> bool:
    return rt.fs.exists(path)


def fetches(rt: Runtime, path: str) -> None:
    """Do nothing."""


def asks(rt: Runtime, texts: list[str], value: str | None, options: dict[str, Any] | None) -> None:
    """Do nothing; the call needs an approval."""


@cache
def tools() -> Toolset:
    """Return the tools, each of which receives a value from another origin. Engines do not change a toolset."""
    made = Toolset("c")

    def put(func: Any, *args: ArgSpec, policy: ToolPolicy = ALL, result: ArgType = ArgType.ANY) -> None:
        spec = ToolSpec(func.__name__, "c", args, return_type=result, return_nullable=True)
        made.add(spec, func, policy)

    put(given, HOW, ArgSpec("value", ArgType.STRING, secret=True))
    put(nested, HOW, ArgSpec("options", ArgType.MAP, keys=(INNER,)))
    put(lent, HOW)
    put(environment, HOW)
    put(answered, HOW)
    put(plain, HOW)
    put(outer, ArgSpec("name", ArgType.STRING), ArgSpec("args", ArgType.MAP))
    put(counts, ArgSpec("counts", ArgType.MAP_STRING_INT))
    put(reads, ArgSpec("path", ArgType.STRING), policy=ToolPolicy(capabilities=("fs:read:{path}",)))
    put(
        asks,
        ArgSpec("texts", ArgType.SLICE_STRING),
        ArgSpec("value", ArgType.STRING, secret=True, required=False),
        ArgSpec("options", ArgType.MAP, keys=(INNER,), required=False),
        policy=ToolPolicy(requires_approval=True),
    )
    put(
        fetches,
        ArgSpec("path", ArgType.STRING),
        policy=ToolPolicy(requires_approval=True, capabilities=("fs:read:{path}",)),
    )
    return made


GRANTS = ("fs:read:data/**", "model:use:*", "secret:read:lent", f"env:read:{VARIABLE}", "fs:write:data/**")
