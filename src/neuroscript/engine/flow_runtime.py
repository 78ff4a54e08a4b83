"""The Runtime of one call under flow rules: it adds the labels of what the tool reads, and labels what it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neuroscript.calls.flow_pipeline import NOT_WHILE_IT_RUNS, FlowTracker, state_of
from neuroscript.calls.steps import CallFrame
from neuroscript.coercion.parameters import FUNCTION, STRING, require
from neuroscript.coercion.scalars import Handle, to_builtin
from neuroscript.engine.call_runtime import CallHandles, CountedRuntime
from neuroscript.errors import CallError
from neuroscript.flow.labels import NO_LABELS, Labels, union
from neuroscript.flow.state import CallLabels, SessionFlow
from neuroscript.policy.paths import canonical_path, relative
from neuroscript.runtime.interfaces import Files
from neuroscript.runtime.state import handle_id


class FlowRuntime(CountedRuntime):
    """The `Runtime` of one call that tracks labels."""

    __slots__ = ()

    def _tracked(self) -> tuple[CallFrame, SessionFlow, CallLabels]:
        """Return the frame of this call, what its session knows, and the labels of the call."""
        frame = self._alive()
        flow = state_of(frame)
        call = flow.opened.get(frame)
        if call is None:  # a compiled call, whose arguments carry no label
            call = flow.opened[frame] = CallLabels()
        return frame, flow, call

    def _read(self, labels: Labels) -> None:
        """Add labels to what this call has read.

        Raises:
            PolicyError: The tool sends its data somewhere, and a rule refuses these labels or asks about them.
        """
        if not labels:
            return
        frame, flow, call = self._tracked()
        flow.add(call, labels)
        tracker: FlowTracker | None = call.tracker
        found = () if tracker is None else tracker.find_new(flow, call, labels)
        if tracker is None or not found:
            return
        why = "" if found[0].then == "refuse" else NOT_WHILE_IT_RUNS
        refusal = tracker.refusal(flow, found, call.read, why)
        frame.session._log_refusal(refusal)
        raise refusal

    def labels(self) -> tuple[str, ...]:
        """Return the labels of what this call has read."""
        return tuple(self._tracked()[2].all)

    # The caller's scope

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the variable *name*, or *default*."""
        if type(name) is not str:
            require("get_var", name=(name, STRING))
        labels = self._tracked()[1].variables
        before = labels.of(name)
        value = super().get_var(name, default)
        self._read(union(before, labels.of(name)))  # another call may have replaced it meanwhile
        return value

    def set_var(self, name: str, value: Any) -> None:
        """Set the variable *name* to a copy of *value*."""
        if type(name) is not str:
            require("set_var", name=(name, STRING))
        _, flow, call = self._tracked()
        before, begun = flow.variables.of(name), flow.variables.begin(name, call.all)
        try:
            super().set_var(name, value)
        except BaseException:
            flow.variables.end(name, before, begun)
            raise
        flow.variables.end(name, call.all, begun)

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set the variable *name* to what *change* returns for its value, and return that."""
        require("update_var", name=(name, STRING), change=(change, FUNCTION))
        _, flow, call = self._tracked()
        begun: Labels | None = None

        def changed(old: Any) -> Any:
            nonlocal begun
            self._read(flow.variables.of(name))
            new = change(old)
            begun = flow.variables.begin(name, call.all)  # before another call can read the new value
            return new

        self._read(flow.variables.of(name))
        value = super().update_var(name, changed)
        flow.variables.end(name, call.all, begun)
        return value

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the caller's variables and of the host's constants, in order."""
        found = super().variables
        labels = self._tracked()[1].variables
        for name in found:
            self._read(labels.of(name))
        return found

    @property
    def handles(self) -> FlowHandles:
        """Resources that tools store for the caller."""
        self._alive()
        return FlowHandles(self)

    @property
    def fs(self) -> Files:
        """The files of the sandbox, as far as this tool may use them."""
        files: Files = LabelledFiles(super().fs, self)
        return files

    def _may_use_file(self, verb: str, path: str) -> None:
        super()._may_use_file(verb, path)
        if verb == "read":
            self._read(self._tracked()[1].files.of(path))

    # Other tools

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool with arguments in order."""
        return self._nested(super().call_tool, name, args)

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool with arguments by name."""
        return self._nested(super().call_tool_named, name, mapping)

    def _nested(self, call: Callable[[str, Any], Any], name: str, given: Any) -> Any:
        """Make a nested call, whose result or error this call then has read."""
        self._tracked()
        try:
            result = call(name, given)
        except CallError:
            self._read(self._tracked()[2].read)
            raise
        self._read(self._tracked()[2].read)
        return result


class FlowHandles(CallHandles):
    """The handles of a caller, with labels."""

    __slots__ = ()
    _rt: FlowRuntime

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Store *thing* and return a handle of it."""
        _, flow, call = self._rt._tracked()
        handle = super().new(thing, kind, release)
        flow.handles[handle.id] = call.all
        return handle

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the stored object."""
        thing = super().get(handle, kind)
        self._read(handle)
        return thing

    def kind(self, handle: Handle | str) -> str | None:
        """Return the kind of a stored object, or None if it is no longer stored."""
        kind = super().kind(handle)
        self._read(handle)
        return kind

    def _read(self, handle: Handle | str) -> None:
        self._rt._read(self._rt._tracked()[1].handles.get(handle_id(handle), NO_LABELS))

    def release(self, handle: Handle | str) -> bool:
        """Release an object, and return whether it was stored."""
        self._rt._tracked()[1].handles.pop(handle_id(handle), None)
        return super().release(handle)


class LabelledFiles:
    """The files of the sandbox for one call: what it writes carries the labels of the call.

    Reading needs nothing here, because every operation first asks the Runtime whether it may read the path.
    """

    def __init__(self, files: Files, rt: FlowRuntime) -> None:
        self._files = files
        self._rt = rt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace the content of a file atomically."""
        self._replacing(path, self._files.write_bytes, data)

    def write_text(self, path: str, text: str) -> None:
        """Replace the content of a file with a string as UTF-8."""
        self._replacing(path, self._files.write_text, text)

    def append(self, path: str, data: str | bytes) -> None:
        """Append to a file, which is created if it does not exist."""
        self._adding(path)
        self._files.append(path, data)

    def mkdir(self, path: str) -> bool:
        """Create a directory and its parents, and return whether it was missing."""
        self._adding(path)
        return self._files.mkdir(path)

    def delete(self, path: str) -> bool:
        """Delete a file, a link or an empty directory, and return whether it existed."""
        files, place = self._rt._tracked()[1].files, _place(path)
        begun = files.begin(place, NO_LABELS)
        existed = self._files.delete(path)
        files.end(place, NO_LABELS, begun)
        return existed

    def move(self, source: str, destination: str) -> None:
        """Move a file or a directory to a path that does not exist."""
        _, flow, call = self._rt._tracked()
        moved = flow.files.begin_move(_place(source), _place(destination), call.all)
        self._files.move(source, destination)
        flow.files.end_move(moved)

    def _adding(self, path: str) -> None:
        _, flow, call = self._rt._tracked()
        flow.files.add(_place(path), call.all)

    def _replacing(self, path: str, write: Callable[[str, Any], None], data: Any) -> None:
        _, flow, call = self._rt._tracked()
        place = _place(path)
        begun = flow.files.begin(place, call.all)  # before another call can read the new content
        write(path, data)
        flow.files.end(place, call.all, begun)


def _place(path: object) -> str:
    """Return the canonical path, as the labels of files are stored; an invalid path raises what its use raises."""
    return canonical_path(relative(to_builtin(path)))
