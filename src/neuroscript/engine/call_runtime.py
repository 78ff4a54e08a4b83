"""The Runtime of one call: what the host provides to this tool, in this session, while the call lasts.

Whatever has an effect first checks that the host, the tool's own needs and the needs of every tool further out permit
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from neuroscript.calls.steps import Caller, CallFrame
from neuroscript.coercion.parameters import FLAG, FUNCTION, NUMBER, STRING, STRINGS, Form, optional, require
from neuroscript.coercion.scalars import Handle
from neuroscript.errors import CallError, LLMError, ToolFailed
from neuroscript.io.text import escape, quote_untrusted
from neuroscript.policy.capabilities import Capability
from neuroscript.runtime.host import Progress
from neuroscript.runtime.interfaces import LLM, Files, Launch, Logger, Random, Reservation, ToolInfo
from neuroscript.runtime.state import Handles

if TYPE_CHECKING:
    from neuroscript.runtime.redaction import Redactor

NEED: Final = Form("a string or a Capability", lambda need: isinstance(need, (str, Capability)))


class CallRuntime:
    """The `Runtime` of one call, which works while ``_frame`` is set; the pipeline clears it when the call ends."""

    __slots__ = ("_frame",)
    _frame: CallFrame | None

    # What the host provides

    def println(self, *values: object) -> None:
        """Write one line to the host's output, in one piece, with control characters escaped."""
        session = self._alive().session
        output = session.host.output
        line = escape(_redacted(session, " ".join(map(str, values))))
        output.write(f"{line}\n")
        output.flush()

    def prompt_user(self, prompt: str, *, secret: bool = False) -> str:
        """Return the user's answer to a prompt, one line."""
        if type(prompt) is not str or type(secret) is not bool:
            require("prompt_user", prompt=(prompt, STRING), secret=(secret, FLAG))
        session = self._alive().session
        answer = session.host.prompter.ask(_redacted(session, prompt), secret=secret)
        if secret:
            session._hide(answer)
        return answer

    @property
    def logger(self) -> Logger:
        """The host's logger of this tool; if there are secrets, one that redacts them."""
        frame = self._alive()
        return frame.session._logger_of(frame.tool)

    @property
    def sandbox_dir(self) -> str:
        """The absolute path of the sandbox."""
        return self._alive().session.sandbox.directory

    @property
    def fs(self) -> Files:
        """The files of the sandbox, as far as this tool may use them."""
        return self._alive().session.sandbox.files(self._may_use_file, self._spend)

    def _spend(self, what: str, count: int) -> None:
        """Count bytes and entries of files; a file that is still open after its call is refused."""
        frame = self._alive()
        if frame.session.ledger is not None:  # this count needs no check, which would load a module
            frame.session._spend(frame, what, count)

    def _may_use_file(self, verb: str, path: str) -> None:
        self._hold_to(Capability.literal("fs", verb, path))

    @property
    def llm(self) -> LLM:
        """The model that the host provides, under ``model:use``; secrets are replaced in what it receives."""
        session = self._alive().session
        model = session.host.llm
        if model is None:
            raise LLMError("the host provides no model")
        self._hold_to(Capability("model", ("use",)))
        secrets = _secrets(session)
        if secrets is None:
            return model
        from neuroscript.runtime.redacting_proxies import RedactingModel

        return RedactingModel(model, secrets)

    def spend(self, what: str, amount: object) -> Reservation:
        """Reserve what the tool is about to take of a limit."""
        if type(what) is not str:
            require("spend", what=(what, STRING))
        frame = self._alive()
        return frame.session._spend(frame, what, amount)

    def labels(self) -> tuple[str, ...]:
        """Return the labels of what this call has read; none without flow rules."""
        self._alive()
        return ()

    def confine(
        self,
        program: str,
        *,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        execute: Sequence[str] = (),
        granted: bool = False,
    ) -> Launch:
        """Provide the words to put before a command, and the descriptors to pass, so that its program runs confined."""
        paths = {"read": (read, STRINGS), "write": (write, STRINGS), "execute": (execute, STRINGS)}
        require("confine", program=(program, STRING), granted=(granted, FLAG), **paths)
        frame = self._alive()
        if not frame.session.policy.isolates:
            return nullcontext(((), ()))
        from neuroscript.isolation.confined_programs import confined_program

        return confined_program(frame, program, read=read, write=write, execute=execute, granted=granted)

    def secret(self, name: str) -> str:
        """Return a value that the host provides under ``secret:read:NAME``."""
        if type(name) is not str:
            require("secret", name=(name, STRING))
        self._hold_to(Capability.literal("secret", "read", name))
        session = self._alive().session
        secrets = session.host.secrets
        if name not in secrets:
            raise ToolFailed(
                f"the host provides no secret named {quote_untrusted(name)}", code="secret.unknown", retry="host"
            )
        session._receive(secrets[name], is_lasting=True)
        return secrets[name]

    def _hide(self, value: object) -> None:
        """Hide a value that the host has provided for a secret argument."""
        self._alive().session._receive(value)

    def _confine(self, needs: Sequence[Capability], others: Sequence[Capability]) -> None:
        """Restrict the tool to what it needs for the values that the host provided, see `CallFrame.confine`."""
        frame = self._alive()
        if frame.needs:  # otherwise it may be a frame of many calls, which has no needs
            frame.confine(needs, others)

    def now(self) -> float:
        """Return the time by the host's clock, in seconds since 1970-01-01 UTC."""
        return self._alive().session.host.clock()

    @property
    def random(self) -> Random:
        """The host's source of random numbers."""
        source = self._alive().session.host.random
        if source is None:
            from random import SystemRandom

            return SystemRandom()
        return source

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report to the host how far this call is."""
        if type(text) is not str or type(done) is not int or type(total) is not int:
            require("progress", done=(done, NUMBER), total=(total, optional(NUMBER)), text=(text, STRING))
        frame = self._alive()
        tell = frame.session.host.progress
        if tell is not None:
            try:
                tell(Progress(frame.tool, done, total, _redacted(frame.session, text)))
            except Exception as error:
                frame.session._log_failure("the observer of progress", error, "debug")

    # The caller's scope

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the variable *name*, or *default*."""
        if type(name) is not str:
            require("get_var", name=(name, STRING))
        return self._alive().session.memory.variables.get(name, default)

    def set_var(self, name: str, value: Any) -> None:
        """Set the variable *name* to a copy of *value*."""
        if type(name) is not str:
            require("set_var", name=(name, STRING))
        self._alive().session.memory.variables.set(name, value)

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set the variable *name* to what *change* returns for its value, and return that."""
        require("update_var", name=(name, STRING), change=(change, FUNCTION))
        return self._alive().session.memory.variables.update(name, change)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the caller's variables and of the host's constants, in order."""
        return tuple(self._alive().session.memory.variables)

    @property
    def handles(self) -> CallHandles:
        """Resources that tools store for the caller."""
        self._alive()
        return CallHandles(self)

    def _handles(self) -> Handles:
        return self._alive().session.memory.handles

    # Other tools

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool with arguments in order."""
        frame = self._alive()
        return frame.session._call_within(frame, name, args, False)

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool with arguments by name."""
        frame = self._alive()
        return frame.session._call_within(frame, name, mapping, True)

    @property
    def tools(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, by canonical name."""
        return self._alive().session.infos

    # The call itself

    def require(self, capability: str | Capability) -> None:
        """Raise a `PolicyError` unless this call has *capability*."""
        if isinstance(capability, str):
            capability = Capability.parse(capability)
        elif type(capability) is not Capability:
            require("require", capability=(capability, NEED))
        self._hold_to(capability)

    @property
    def cancelled(self) -> bool:
        """Whether the caller has stopped waiting for the result."""
        frame = self._frame
        if frame is None or frame.session.is_closed:
            return True
        return frame.is_abandoned or _is_over(frame.deadline)

    @property
    def deadline(self) -> float | None:
        """When the caller stops waiting for the result, on the clock of `time.monotonic`."""
        return self._alive().deadline

    def _alive(self) -> CallFrame:
        frame = self._frame
        if frame is None or frame.session._is_over or frame.is_abandoned:
            raise CallError("the call has ended, so its Runtime no longer works", code="runtime.closed")
        return frame

    def _hold_to(self, need: Capability) -> None:
        """Raise a `PolicyError` unless the host and every tool in the chain of calls grant *need*."""
        frame = self._alive()
        if frame.session.policy.uncovered_need((need,)) is None and frame.uncovered_need((need,)) is None:
            return
        from neuroscript.policy.refusals import find_missing_needs, refusal

        chain = [(each.tool, each.grants) for each in frame.chain()]
        lacks = find_missing_needs((need,), [each.grants for each in frame.session.policy.layers], chain)
        refused = refusal(frame.tool, lacks, redactor=frame.session.secrets)
        frame.session._log_refusal(refused)
        raise refused


class CountedRuntime(CallRuntime):
    """The Runtime in a compiled pipeline with counters: a tool gets its own frame when it first uses the Runtime."""

    __slots__ = ("_call",)
    _call: int

    def _alive(self) -> CallFrame:
        frame = super()._alive()
        if not frame.call:
            frame = self._frame = frame.numbered(self._call)
        return frame


class CallHandles:
    """The handles of a caller, for as long as one call lasts."""

    __slots__ = ("_rt",)

    def __init__(self, rt: CallRuntime) -> None:
        self._rt = rt

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Store *thing* and return a handle of it."""
        return self._rt._handles().new(thing, kind, release)

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the stored object."""
        return self._rt._handles().get(handle, kind)

    def kind(self, handle: Handle | str) -> str | None:
        """Return the kind of a stored object, or None if it is no longer stored."""
        return self._rt._handles().kind(handle)

    def release(self, handle: Handle | str) -> bool:
        """Release an object, and return whether it was stored."""
        return self._rt._handles().release(handle)


def _secrets(session: Caller) -> Redactor | None:
    """Return what replaces the secrets that a session knows, or None if it knows none."""
    secrets = session.secrets
    return None if secrets is None or secrets.is_empty else secrets


def _redacted(session: Caller, text: str) -> str:
    secrets = _secrets(session)
    return text if secrets is None else secrets.text(text)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and monotonic() >= deadline
