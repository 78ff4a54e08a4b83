"""The call pipeline: one call, from its arguments to its result.

`CallPipeline.steps` never waits. To run something, it yields an `Invocation`, and a driver sends back the outcome. It
also yields each `StreamItem` of a stream. The compiler generates the same pipeline as one function, for tools whose
function is called directly. Both convert every exception of a tool to a typed error.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from neuroscript.calls.steps import (
    END,
    GRACE_SECONDS,
    LAST,
    CallBound,
    CallFrame,
    RunMode,
    Steps,
    StreamClosed,
    StreamItem,
    close,
    engine_closed_error,
    is_iterator,
    is_late,
    run_step,
    timeout_error,
)
from neuroscript.coercion.context import RESULT, CoercionPass, CoercionSettings
from neuroscript.coercion.values import copy_exact
from neuroscript.errors import ArgumentError, CallError, LimitError, PolicyError, ReturnError, is_interrupt
from neuroscript.policy.capabilities import Capability, Grant, first_uncovered
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.spec.binding import Repair, bind_arguments, repairs
from neuroscript.spec.tool_spec import MAYBE
from neuroscript.tools.tool import ToolImplementation, fit_result

if TYPE_CHECKING:
    from neuroscript.approval.request import Approver
    from neuroscript.calls.gate import Gate
    from neuroscript.calls.streams import StreamAccount

BYTES_PER_VALUE: Final = 8
"""Bytes that each value of a result counts, in addition to its text."""


@attrs.frozen(eq=False, repr=False)
class CallPipeline:
    """The call pipeline of one tool, shared by all of its calls.

    Attributes:
        tool: The tool.
        coercion: How its arguments are coerced.
        policy: What the host permits.
        runtime: Makes the Runtime of one call, which works while its ``_frame`` is set.
        gate: The checks and observers around the function, if there are limits, hooks or audit logs; else None.
        run_mode: How the function is run.
        tracks_flow: Whether it tracks the labels of data, see `FlowPipeline`.
        approvers: Who must approve each call.
        may_ask: Whether approvers may have to be asked about a call.
        makers: What makes an instance of the class of an argument, by its index.
        is_secret: Whether an argument, or a key within one, is secret.
        max_result_bytes: How many bytes a result may have, or None.
    """

    tool: ToolImplementation
    coercion: CoercionSettings
    policy: ExecutionPolicy
    runtime: Callable[[], CallBound]
    gate: Gate | None = None
    tracks_flow: ClassVar[bool] = False
    run_mode: RunMode = attrs.field(init=False)
    approvers: tuple[Approver, ...] = attrs.field(init=False)
    may_ask: bool = attrs.field(init=False)
    _granted: tuple[tuple[Grant, ...], ...] = attrs.field(init=False)
    is_secret: bool = attrs.field(init=False)
    _limit: float | None = attrs.field(init=False)
    max_result_bytes: int | None = attrs.field(init=False)
    makers: tuple[tuple[int, Callable[[Any], Any]], ...] = attrs.field(init=False)

    @run_mode.default
    def _find_run_mode(self) -> RunMode:
        return "coroutine" if self.tool.is_coroutine else "waits" if self.tool.policy.waits else "plain"

    @approvers.default
    def _find_approvers(self) -> tuple[Approver, ...]:
        tool = self.tool
        return (self.policy.approvers(tool.name, tool.policy) or ()) if self.policy.asks(tool.name, tool.policy) else ()

    @may_ask.default
    def _find_whether_it_may_ask(self) -> bool:
        return bool(self.approvers)

    @_granted.default
    def _find_granted(self) -> tuple[tuple[Grant, ...], ...]:
        """Return the grants of each layer that can cover a need of this tool; a host may grant much else."""
        if not self.tool.templates:
            return ()
        from neuroscript.policy.templates import may_cover

        texts = self.tool.policy.capabilities
        return tuple(
            tuple(grant for grant in layer.grants if any(may_cover(grant, text) for text in texts))
            for layer in self.policy.layers
        )

    @is_secret.default
    def _find_secret(self) -> bool:
        return any(arg.holds_secret for arg in self.tool.spec.args)

    @_limit.default
    def _find_limit(self) -> float | None:
        seconds: float | None = self.policy.least("seconds")
        return seconds

    @max_result_bytes.default
    def _find_max_result_bytes(self) -> int | None:
        most: int | None = self.policy.least("result_bytes")
        return most

    @makers.default
    def _find_makers(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        tool = self.tool
        if not tool.classes and all(arg.cls is None and not arg.nested for arg in tool.spec.args):
            return ()
        from neuroscript.tools.instance_makers import instance_makers

        return tuple(instance_makers(tool.spec, tool.templates, tool.classes).items())

    def bind(self, frame: CallFrame, given: object, by_name: bool) -> tuple[Any, ...]:
        """Return the exact values of the arguments, as all checks and records see them, or raise an `ArgumentError`."""
        try:
            return bind_arguments(self.tool.spec, self.coercion, given, by_name=by_name)
        except ArgumentError as error:
            raise self.refused(frame, error) from None

    def repairs(self, given: object, values: tuple[Any, ...]) -> tuple[Repair, ...]:
        """Return what was converted, if records are written."""
        return () if self.gate is None else repairs(self.tool.spec, given, values)

    def repaired(self, given: object, values: tuple[Any, ...]) -> tuple[Repair, ...]:
        """Return the same with secrets replaced, as records show it."""
        made = self.repairs(given, values)
        return made if self.gate is None else self.gate.repaired(made)

    def authorize(self, frame: CallFrame, *values: Any) -> CallFrame:
        """Return a frame in which the tool may do what it needs for these arguments.

        Raises:
            PolicyError: The host, or a tool that this call is nested in, does not grant it.
            ArgumentError: A value cannot fill a need, such as a URL without a host.
        """
        try:
            needs = self._filled(values)
            refused = self._refusal(needs, frame, values) if self._lacks(needs, frame) else None
        except ArgumentError as error:
            error.tool = self.tool.name
            raise self.refused(frame, error) from None
        except BaseException as error:
            if is_interrupt(error):
                raise
            from neuroscript.policy.refusals import check_failed_error

            raise self.refused(frame, check_failed_error(self.tool.name, "needs", error), values) from error
        if refused is not None:
            raise self.refused(frame, refused, values)
        return CallFrame(
            frame.session, frame.tool, frame.depth, frame.parent, needs, frame.timeout, frame.deadline, frame.tools
        )

    def _filled(self, values: tuple[Any, ...]) -> tuple[Capability, ...]:
        """Return the needs of a call; raise TypeError if a template returns anything else."""
        filled = [template.fill(values) for template in self.tool.templates]
        if not all(type(needs) is tuple for needs in filled):
            raise TypeError
        return filled[0] if len(filled) == 1 else tuple(chain.from_iterable(filled))

    def _lacks(self, needs: tuple[Capability, ...], frame: CallFrame) -> bool:
        """Return whether a layer of the policy, or a tool further out, does not cover one of the needs."""
        for grants in self._granted:
            if first_uncovered(needs, grants) is not None:
                return True
        return frame.parent is not None and frame.parent.uncovered_need(needs) is not None

    def _refusal(self, needs: tuple[Capability, ...], frame: CallFrame, values: tuple[Any, ...]) -> PolicyError:
        from neuroscript.policy.refusals import find_missing_needs, refusal
        from neuroscript.policy.templates import needs_filled_by

        above = [] if frame.parent is None else [(each.tool, each.grants) for each in frame.parent.chain()]
        lacks = find_missing_needs(needs, [layer.grants for layer in self.policy.layers], above)
        hidden = needs_filled_by(self.tool.spec.secret_names, self.tool.templates, values)
        return refusal(self.tool.name, lacks, hidden, frame.session.secrets)

    def refused(self, frame: CallFrame, error: CallError, values: tuple[Any, ...] | None = None) -> CallError:
        """Report that a call was refused, and return the error for its caller."""
        return frame.session._refused(frame, error, values)

    def steps(self, values: tuple[Any, ...], frame: CallFrame, made: tuple[Repair, ...] = ()) -> Steps:
        """Run one call from its exact values to its exact result, or to the items of its stream.

        Args:
            made: What was converted on the way to these values.

        Yields:
            Each `Invocation`, for which the driver sends the result or throws the exception; each `StreamItem`.

        Raises:
            PolicyError: At once, if the tool may not do what it needs for these values.
            CallError: If anything goes wrong.
            KeyboardInterrupt: An interrupt of the main thread.
        """
        return self._steps(values, self._fit(values, frame), made)

    def _fit(self, values: tuple[Any, ...], frame: CallFrame) -> CallFrame:
        """Return the frame in which the tool may run with these values, and hide the secret values."""
        self.register_secrets(frame, values)
        return self.authorize(frame, *values) if self.tool.templates else frame

    def register_secrets(self, frame: CallFrame, values: tuple[Any, ...]) -> None:
        """Hide the values of secret arguments from now on."""
        if self.is_secret:
            from neuroscript.runtime.masking import secret_values

            for value in secret_values(self.tool.spec, values):
                frame.session._hide(value)

    def _steps(self, values: tuple[Any, ...], frame: CallFrame, made: tuple[Repair, ...]) -> Steps:
        self._decided(values, frame)
        if self.may_ask:
            from neuroscript.calls.approvals import ask_approvers

            values, frame = yield from ask_approvers(self, values, frame)
        handed = self._handed(values, frame) if self.makers else values
        frame = frame.started(self._seconds(frame))
        if self.gate is None:
            return (yield from self._body(handed, frame))
        frame = self.gate.enter(frame, values, made)
        try:
            result = yield from self._body(handed, frame)
        except BaseException as error:
            self.gate.leave(frame, error)
            raise
        self.gate.leave(frame, None, result)
        return result

    def _decided(self, values: tuple[Any, ...], frame: CallFrame) -> None:
        if self.gate is not None and self.gate.decides:
            self.gate.decide(frame, values)

    def asked(self, values: tuple[Any, ...], frame: CallFrame) -> tuple[tuple[Approver, ...], tuple[str, ...]]:
        """Return who must approve a call, and what it would send where if rules about information flow ask."""
        return self.approvers, ()

    def flows(self, frame: CallFrame, values: tuple[Any, ...]) -> tuple[PolicyError | None, tuple[str, ...]]:
        """Return why rules about information flow refuse a call, and what it would send where if they ask."""
        return None, ()

    def rebind(self, arguments: object, frame: CallFrame, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], CallFrame]:
        """Return values and frame of the same call with other arguments by name, which pass every check again.

        Args:
            values: The values so far.
        """
        values = self.bind(frame, arguments, by_name=True)
        frame = self._fit(values, frame)
        self._decided(values, frame)
        return values, frame

    def _seconds(self, frame: CallFrame) -> float | None:
        """Return how many seconds the tool allows, and for a call from outside also the host."""
        given = (self.tool.policy.timeout, self._limit if frame.depth == 1 else None)
        return min((each for each in given if each is not None), default=None)

    def _body(self, handed: tuple[Any, ...], frame: CallFrame) -> Steps:
        rt = self.runtime()
        rt._frame = frame
        running = frame.session._running
        running.add(frame)
        try:
            result = yield from run_step(frame, self.tool.func, (rt, *handed), self.run_mode)
            stream = self.tool.spec.stream
            if not stream or (stream == MAYBE and not is_iterator(result)):
                return self.check_result(result, frame)
            yield from self._items(frame, result)
            return END
        finally:
            rt._frame = None
            frame.ended = True
            running.discard(frame)

    def _items(self, frame: CallFrame, source: Any) -> Steps:
        """Yield each item of what a tool returned, which is closed in any case."""
        from neuroscript.calls.streams import StreamAccount, item_reader

        step, end, run_mode = item_reader(source, self.tool.name)
        given = StreamAccount(self.policy.least("items"))
        try:
            while (found := (yield from run_step(frame, step, (), run_mode))) is not END:
                if is_late(frame):
                    raise timeout_error(frame)
                item = self._item(found, given, frame)
                if frame.beginning is not None and frame.beginning.items is not None:
                    frame.beginning.items.add(copy_exact(item.value), given.size)
                yield item
                if frame.session._is_over:
                    raise engine_closed_error()
            yield LAST
        except GeneratorExit:  # the driver is gone, so nothing more can run
            raise
        except StreamClosed:
            yield from run_step(frame, end, (), run_mode, GRACE_SECONDS)
            raise
        except BaseException as error:
            with suppress(CallError):
                yield from run_step(frame, end, (), run_mode, GRACE_SECONDS)
            raise given.ending(error) from error.__cause__
        finally:
            if frame.spent is not None:
                frame.spent.update(given.spent)
        yield from run_step(frame, end, (), run_mode, GRACE_SECONDS)

    def _item(self, item: object, given: StreamAccount, frame: CallFrame) -> StreamItem:
        """Return an item of a stream, and count it."""
        given.require_room(self.tool.name)
        walk = CoercionPass(RESULT)
        exact = self._fitted(walk, item, frame)
        given.add(self._sized(walk, exact, given.size))
        return StreamItem(self.tool.name, exact, walk.nodes, walk.text)

    def _handed(self, values: tuple[Any, ...], frame: CallFrame) -> tuple[Any, ...]:
        """Return the values as the function receives them: instances where the spec names a class.

        They are made after all checks and before the call counts, so a class that rejects its values costs no limit.
        """
        handed = list(values)
        try:
            for index, maker in self.makers:
                end = len(handed) if self.tool.spec.variadic and index == len(self.tool.spec.args) - 1 else index + 1
                handed[index:end] = map(maker, handed[index:end])
        except ArgumentError as error:
            raise self.refused(frame, error, values) from error.__cause__
        return tuple(handed)

    def check_result(self, result: object, frame: CallFrame) -> Any:
        """Return a result as the exact value of the declared type.

        Raises:
            ReturnError: It does not match the spec.
            LimitError: It is larger than the host permits.
        """
        walk = CoercionPass(RESULT)
        exact = self._fitted(walk, result, frame)
        self._sized(walk, exact, 0)
        return exact

    def _fitted(self, walk: CoercionPass, result: object, frame: CallFrame) -> Any:
        exact = fit_result(walk, self.tool.spec, result)
        if walk.noted:
            from neuroscript.coercion.problems import sentences

            close(result)
            text = "; ".join(sentences(walk, self.tool.spec.returns, subject="result"))
            secrets = frame.session.secrets
            raise ReturnError(text if secrets is None else secrets.text(text), tool=self.tool.name)
        return exact

    def _sized(self, walk: CoercionPass, exact: object, before: int) -> int:
        """Return the bytes of a result, with *before*: its text and bytes, and 8 for each value."""
        values = len(exact) if type(exact) is array else walk.nodes - walk.work
        size = before + walk.text + BYTES_PER_VALUE * values
        if self.max_result_bytes is not None and size > self.max_result_bytes:
            text = f"returned a result of more than {self.max_result_bytes} bytes"
            raise LimitError(text, tool=self.tool.name, code="limit.result_bytes")
        return size

    @property
    def is_direct(self) -> bool:
        """Whether a sync caller calls the function directly, so that the pipeline can be compiled."""
        return (
            self.run_mode != "coroutine"
            and not (self.tool.spec.stream or self.may_ask)
            and self.tool.policy.timeout is None
            and self._limit is None
        )
