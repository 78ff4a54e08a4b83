"""Exit codes of the command, and the code of each kind of error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from neuroscript.errors import (
    ArgumentError,
    AuditError,
    CallError,
    CallTimeout,
    LimitError,
    LLMError,
    PluginError,
    PolicyError,
    RegistryError,
    ReturnError,
    SandboxError,
    SpecError,
    ToolFailed,
    ToolNotFound,
)

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
ARGUMENTS: Final = 3
REFUSED: Final = 4
INTERNAL: Final = 5
CANCELLED: Final = 6
TIMEOUT: Final = 124
INTERRUPTED: Final = 130


MODEL_CODES: Final = {
    **dict.fromkeys(("llm.no_model", "llm.not_installed", "llm.unknown_model", "llm.key"), USAGE),
    **dict.fromkeys(("llm.turn_limit", "llm.call_limit"), REFUSED),
    **dict.fromkeys(("llm.timeout", "llm.time_limit"), TIMEOUT),
}
"""Exit codes by the code of a model error; every other code means `FAILED`."""


class UsageError(Exception):
    """The arguments of the command are invalid, or its input cannot be read."""


@contextmanager
def require_extra() -> Iterator[None]:
    """Report an import that fails because an extra is not installed as a `UsageError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error.

    >>> exit_code(ToolNotFound("maths.add"))
    2
    """
    match error:
        case ToolFailed() | ReturnError():
            return FAILED
        case LLMError():
            return MODEL_CODES.get(error.code, FAILED)
        case (
            UsageError()
            | ToolNotFound()
            | SpecError()
            | RegistryError()
            | PluginError()
            | SandboxError()
            | AuditError()
        ):
            return USAGE
        case ArgumentError():
            return ARGUMENTS
        case PolicyError() | LimitError():
            return REFUSED
        case CallTimeout():
            return TIMEOUT
        case KeyboardInterrupt():
            return INTERRUPTED
        case CallError() if error.code.startswith("plan."):
            return FAILED
        case _:
            return INTERNAL


CODES_BY_ERROR_NUMBER: Final = {21: FAILED, 3: USAGE, 4: ARGUMENTS, 1003: REFUSED, 37: REFUSED, 32: TIMEOUT}
"""Exit codes by the error number that a result contains."""


def exit_code_of(error: Mapping[str, Any]) -> int:
    """Return the exit code for an error of a call that is plain data.

    >>> exit_code_of({"code": "policy.denied", "number": 1003})
    4
    """
    if error["code"].startswith(("plan.", "return.")):
        return FAILED
    return CODES_BY_ERROR_NUMBER.get(error["number"], INTERNAL)
