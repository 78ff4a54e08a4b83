"""Proxies of a host's logger and model that redact secrets before they leave a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from neuroscript.errors import ToolNotFound
from neuroscript.policy.execution_policy import Decision
from neuroscript.policy.refusals import without_advice
from neuroscript.runtime.interfaces import LLM, ToolCall, ToolResult, Turn
from neuroscript.runtime.redaction import Redactor
from neuroscript.spec.binding import Repair
from neuroscript.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from neuroscript.runtime.replies import Reply


class RedactingLogger:
    """A logger that formats each message, including its exception, and passes it on redacted.

    Args:
        logger: A `logging.Logger`, or an object with the same methods.
    """

    def __init__(self, logger: Any, secrets: Redactor) -> None:
        self._logger = logger
        self._secrets = secrets

    def debug(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level DEBUG."""
        self._pass(10, "debug", msg, args, options)

    def info(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level INFO."""
        self._pass(20, "info", msg, args, options)

    def warning(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level WARNING."""
        self._pass(30, "warning", msg, args, options)

    def error(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level ERROR."""
        self._pass(40, "error", msg, args, options)

    def exception(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level ERROR, with the exception that is being handled."""
        self._pass(40, "error", msg, args, {"exc_info": True, **options})

    def critical(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level CRITICAL."""
        self._pass(50, "critical", msg, args, options)

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Log a message at a given level."""
        self._pass(level, "", msg, args, options)

    def getChild(self, suffix: str) -> RedactingLogger:  # noqa: N802
        """Return a child logger, which redacts too."""
        return RedactingLogger(self._logger.getChild(suffix), self._secrets)

    def __getattr__(self, name: str) -> Any:
        """Return another attribute of the logger; if it is callable, its arguments are redacted."""
        found = getattr(self._logger, name)
        if not callable(found):
            return found

        def called(*args: object, **options: Any) -> Any:
            return found(*map(self._secrets.plain, args), **self._secrets.plain(options))

        return called

    def _pass(self, level: int, name: str, msg: object, args: tuple[object, ...], options: dict[str, Any]) -> None:
        is_enabled = getattr(self._logger, "isEnabledFor", None)
        if is_enabled is not None and not is_enabled(level):
            return
        text = self._secrets.text(message_of(msg, args) + _trace(options.pop("exc_info", None)))
        passed = {**self._secrets.plain(options), **_caller(self._logger, options)}
        if name:
            getattr(self._logger, name)("%s", text, **passed)
        else:
            self._logger.log(level, "%s", text, **passed)


def message_of(msg: object, args: tuple[object, ...]) -> str:
    """Return a log message formatted as by `logging`; if the arguments do not match, append their number."""
    try:
        if len(args) == 1 and args[0] and isinstance(args[0], Mapping):
            return str(msg) % args[0]
        return str(msg) % args if args else str(msg)
    except Exception:
        return f"{msg} (with {len(args)} arguments that do not match)"


def _trace(given: Any) -> str:
    """Return the traceback that ``exc_info`` refers to, to be appended to the message."""
    if not given:
        return ""
    import sys
    from traceback import format_exception

    error = given if isinstance(given, BaseException) else (given if isinstance(given, tuple) else sys.exc_info())[1]
    return "\n" + "".join(format_exception(error)).rstrip() if error is not None else ""


def _caller(logger: Any, options: dict[str, Any]) -> dict[str, int]:
    """Return the option that makes `logging` report the tool's own line, two frames above."""
    from logging import Logger, LoggerAdapter

    return {"stacklevel": options.get("stacklevel", 1) + 2} if isinstance(logger, (Logger, LoggerAdapter)) else {}


class RedactingModel:
    """A model that receives redacted turns; its answers are not redacted. It has ``reply`` if the model has it."""

    def __init__(self, model: LLM, secrets: Redactor) -> None:
        self._model = model
        self._secrets = secrets

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn that follows *turns*."""
        return self._model.ask(self._redacted(turns))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the model's turn, which may request calls of *tools*."""
        return self._model.ask_with_tools(self._redacted(turns), tools)

    @property
    def reply(self) -> Callable[..., Reply]:
        """The model's method ``reply``, whose replies have usage and retries.

        Raises:
            AttributeError: If the model has no such method, so that `hasattr` returns the same as for the model.
        """
        if not hasattr(self._model, "reply"):
            raise AttributeError("reply")
        method: Callable[..., Reply] = self._model.reply

        def reply(turns: Sequence[Turn], *args: Any, **options: Any) -> Reply:
            return method(self._redacted(turns), *args, **options)

        return reply

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of a string."""
        return self._model.embed(self._secrets.text(text))

    def _redacted(self, turns: Sequence[Turn]) -> list[Turn]:
        return [redacted_turn(self._secrets, turn) for turn in turns]


def redacted_turn(secrets: Redactor, turn: Turn) -> Turn:
    """Return a turn with its content, its calls and their results redacted."""
    if not isinstance(turn, Turn):  # some models accept other types
        redacted: Turn = secrets.plain(turn)
        return redacted
    return attrs.evolve(
        turn,
        content=secrets.text(turn.content),
        tool_calls=tuple(redacted_call(secrets, each) for each in turn.tool_calls),
        tool_results=tuple(redacted_result(secrets, each) for each in turn.tool_results),
        native=secrets.plain(turn.native),
    )


def redacted_call(secrets: Redactor, call: ToolCall) -> ToolCall:
    """Return a redacted call; if its arguments contained secrets, it cannot be repeated."""
    return attrs.evolve(call, name=secrets.plain(call.name), arguments=secrets.plain(call.arguments))


def redacted_decision(secrets: Redactor, decision: Decision) -> Decision:
    """Return a redacted decision; fields that a host bases decisions on are unchanged."""
    tool = decision.tool if decision.code != ToolNotFound.CODE else secrets.text(decision.tool)
    needs, grants, remedy = secrets.plain(decision.needs), decision.grants, decision.remedy
    if secrets.plain(grants) is not grants:  # a redacted grant would permit something else
        grants, remedy = (), without_advice(remedy, grants)
    rule, need, text, remedy = map(secrets.text, (decision.rule, decision.need, decision.text, remedy))
    told = {"rule": rule, "need": need, "text": text, "remedy": remedy, "needs": needs, "grants": grants}
    return attrs.evolve(decision, tool=tool, **told)


def redacted_result(secrets: Redactor, result: ToolResult) -> ToolResult:
    """Return a redacted result; its error is the same object, redacted in place, see `Redactor.error`."""
    error = None if result.error is None else secrets.error(result.error)
    name = secrets.text(result.tool) if isinstance(error, ToolNotFound) else result.tool
    repairs = tuple(Repair(secrets.text(each.where), each.got, each.became) for each in result.repairs)
    return attrs.evolve(result, tool=name, value=secrets.plain(result.value), error=error, repairs=repairs)
