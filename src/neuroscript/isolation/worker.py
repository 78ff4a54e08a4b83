"""The loop of a worker: it receives calls, runs the functions of its toolset, and sends results."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from neuroscript.calls.steps import END, close
from neuroscript.errors import ArgumentError, ToolFailed
from neuroscript.isolation.exceptions import reported
from neuroscript.isolation.frames import Channel, UnsendableValue
from neuroscript.isolation.tool_source import LoadedSource
from neuroscript.isolation.worker_runtime import HostLink, WorkerRuntime, release_object
from neuroscript.spec.callables import is_coroutine
from neuroscript.spec.instances import plain_result
from neuroscript.tools.instance_makers import instance_makers
from neuroscript.tools.tool import ToolImplementation, WithoutRuntime


def serve(channel: Channel, source: LoadedSource, idle_seconds: float, reuses_worker: bool) -> None:
    """Serve calls until the host closes the connection, or none has come for a while."""
    worker = Worker(channel, source, reuses_worker)
    while True:
        channel.socket.settimeout(None if worker.objects else idle_seconds)
        try:
            message = channel.receive()
        except (EOFError, TimeoutError):
            return
        channel.socket.settimeout(None)
        match message:
            case ["call", name, qualname, takes_runtime, stream, values, environment]:
                worker.call(name, qualname, takes_runtime, stream, values, environment)
            case ["release", key]:
                with suppress(Exception):  # the host ignores what it raises, too
                    release_object(worker.objects, key)
                channel.send("ok", None)


class Worker:
    """Runs calls, one after the other.

    Attributes:
        objects: The objects behind handles that its tools have stored, with what releases them.
    """

    def __init__(self, channel: Channel, source: LoadedSource, reuses_worker: bool) -> None:
        self.objects: dict[int, tuple[Any, Any]] = {}
        self._channel = channel
        self._source = source
        self._reuses_worker = reuses_worker

    def call(
        self,
        name: str,
        qualname: str,
        takes_runtime: bool,
        stream: bool,
        values: list[Any],
        environment: Mapping[str, str],
    ) -> None:
        """Run one call, and send its result, the items of its stream, or what it raised.

        Args:
            name: The name of the tool in its toolset.
            qualname: The name of its function in its module, if no toolset is there.
            takes_runtime: Whether that function takes the Runtime.
            stream: Whether an iterator that it returns is a stream.
            values: The exact values of its arguments.
            environment: Variables of the environment during the call.
        """
        link = HostLink(self._channel, self.objects)
        os.environ.update(environment)
        try:
            rt = WorkerRuntime(link, self._reuses_worker)
            tool = self._source.function(name, qualname, takes_runtime)
            if isinstance(tool, ToolImplementation):
                self._run(tool, tool.func, stream, rt, _instances(tool, values))
            else:
                self._run(None, tool, stream, rt, values)
        except _InvalidArguments as error:
            self._channel.send("misfit", [list(each) for each in error.problems])
        except BaseException as error:
            self._fail(link, error)
        finally:
            link.end()
            for each in environment:
                os.environ.pop(each, None)

    def _fail(self, link: HostLink, error: BaseException) -> None:
        index = link.host_error(error)
        if index is not None:
            self._channel.send("refused", index)
            return
        if isinstance(error, UnsendableValue):
            error = ToolFailed(f"its result cannot be sent to the host ({error})", code="isolation.value")
        self._channel.send("failed", reported(error))

    def _run(
        self, tool: ToolImplementation | None, func: Any, stream: bool, rt: WorkerRuntime, values: list[Any]
    ) -> None:
        with _loop() as run:
            result = func(rt, *values)
            if is_coroutine(func.func if isinstance(func, WithoutRuntime) else func):
                result = run(result)
            if stream and hasattr(type(result), "__anext__"):
                self._stream(tool, _items_of(result, run))
            elif stream and hasattr(type(result), "__next__"):
                self._stream(tool, _items(result))
            else:
                self._channel.send("done", _plain(tool, result))
                close(result)

    def _stream(self, tool: ToolImplementation | None, items: Generator[Any, None, None]) -> None:
        """Send each item when the host asks for it."""
        self._channel.send("stream")
        while True:
            match self._channel.receive():
                case ["next"]:
                    try:
                        item = next(items)
                    except StopIteration:
                        self._channel.send("end")
                        return
                    self._channel.send("item", _plain(tool, item))
                case ["close"]:
                    items.close()
                    self._channel.send("end")
                    return


class _InvalidArguments(Exception):
    """The class of an argument rejects its value."""

    def __init__(self, error: ArgumentError) -> None:
        self.problems = error.problems


def _instances(tool: ToolImplementation, values: list[Any]) -> list[Any]:
    """Return the values as the function receives them: instances where the spec names a class."""
    makers = instance_makers(tool.spec, tool.templates, tool.classes)
    if not makers:
        return values
    made = list(values)
    try:
        for index, maker in makers.items():
            end = len(made) if tool.spec.variadic and index == len(tool.spec.args) - 1 else index + 1
            made[index:end] = map(maker, made[index:end])
    except ArgumentError as error:
        raise _InvalidArguments(error) from error
    return made


def _plain(tool: ToolImplementation | None, result: Any) -> Any:
    """Return a result without instances, as the host expects it."""
    return result if tool is None or tool.spec.returns is None else plain_result(tool.spec, result)


@contextmanager
def _loop() -> Iterator[Any]:
    """Provide what runs an awaitable, all of one call on the same event loop, which is made when it is needed."""
    runners: list[Any] = []

    def run(awaitable: Any) -> Any:
        import asyncio

        if not runners:
            runners.append(asyncio.Runner())

        async def awaited() -> Any:
            return await awaitable

        return runners[0].run(awaited())

    try:
        yield run
    finally:
        for each in runners:
            each.close()


def _items(source: Any) -> Generator[Any, None, None]:
    """Yield the items of an iterator, which is closed in any case."""
    try:
        while (item := next(source, END)) is not END:
            yield item
    finally:
        if hasattr(source, "close"):
            source.close()


def _items_of(source: Any, run: Any) -> Generator[Any, None, None]:
    """Yield the items of an async iterator, which is closed in any case."""
    try:
        while True:
            try:
                yield run(source.__anext__())
            except StopAsyncIteration:
                return
    finally:
        if hasattr(source, "aclose"):
            run(source.aclose())
