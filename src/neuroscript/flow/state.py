"""What a session knows about information flow: the labels of its calls, variables, handles and texts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

from neuroscript.flow.index import LabelledTexts
from neuroscript.flow.labels import NO_LABELS, Labels, Source, labels_from, union

HERE: Final = "."
"""The path of the sandbox itself."""


class CallLabels:
    """The labels of one call while it runs.

    Attributes:
        given: What its caller states about its arguments.
        read: What its arguments carry, and everything that it has read through its Runtime.
        session: What the session had read when the call began, if a rule assumes that the call carries it.
        own: What the tool itself reads, by its declaration.
        result: What its result carries, once it has ended; None before.
        endorsed: The labels that an approver has let pass for this call.
        tracker: What the rules say about the tool, a `FlowTracker`; None for a tool that sends nothing anywhere.
        is_exact: Whether its caller knows what its result is used for, as a plan does; the result then does not count
            as read by the session.
    """

    __slots__ = ("endorsed", "given", "is_exact", "own", "read", "result", "session", "tracker")

    def __init__(self, given: Labels = NO_LABELS, *, is_exact: bool = False) -> None:
        self.given = given
        self.read = given
        self.own: Labels = NO_LABELS
        self.session: Labels = NO_LABELS
        self.result: Labels | None = None
        self.endorsed: Labels = NO_LABELS
        self.is_exact = is_exact
        self.tracker: Any = None

    @property
    def all(self) -> Labels:
        """What everything that the call writes now carries."""
        return union(self.read, self.own)

    @property
    def outcome(self) -> Labels:
        """What its result or its error carries: until it has ended, everything that it has read."""
        return self.all if self.result is None else self.result

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels that records show: of its result once it has ended, before that of its arguments."""
        return tuple(union(self.outcome, self.session))


class CheckedValues(tuple[Any, ...]):
    """The exact values of one call from its check on, with its labels.

    Attributes:
        call: The labels.
    """

    call: CallLabels

    @classmethod
    def of(cls, values: tuple[Any, ...], call: CallLabels) -> Self:
        """Return the values of one call; equal values of another call are not the same object."""
        checked = cls(values)
        checked.call = call
        return checked


class StoredLabels:
    """The labels of stored values by name, which several calls may replace at once."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether no value has labels."""
        return not self._labels

    def of(self, name: str) -> Labels:
        """Return the labels of a value. To lose none, ask before and after you read the value itself."""
        return self._labels.get(name, NO_LABELS)

    def begin(self, name: str, labels: Labels) -> Labels | None:
        """Add labels to a value that is about to be replaced.

        Returns:
            What `end` needs to find out whether another call has replaced it meanwhile.
        """
        with self._lock:
            found = union(self.of(name), labels)
            if found:
                self._labels[name] = {**found}  # a new object for each call, see `end`
            return self._labels.get(name)

    def end(self, name: str, labels: Labels, begun: Labels | None) -> None:
        """Replace the labels of a value that was replaced; if other calls did so too, add them instead.

        Args:
            begun: What `begin` has returned.
        """
        with self._lock:
            if self._labels.get(name) is not begun:
                labels = union(self.of(name), labels)
            if labels:
                self._labels[name] = {**labels}
            else:
                self._labels.pop(name, None)


class FileLabels:
    """The labels of the files of a sandbox, by canonical path. A label of a directory applies to everything below."""

    def __init__(self) -> None:
        self._paths = StoredLabels()
        self._below: dict[str, set[str]] = {}  # the labelled paths below each directory
        self._lock = threading.Lock()

    def of(self, path: str) -> Labels:
        """Return the labels of a file, or of a directory with everything below it."""
        if self._paths.is_empty:
            return NO_LABELS
        found = self._above(path)
        for each in (path, *self._labelled_below(path)):
            found = union(found, self._paths.of(each))
        return found

    def _above(self, path: str) -> Labels:
        found = NO_LABELS
        for each in _parents(path):
            found = union(found, self._paths.of(each))
        return found

    def _labelled_below(self, path: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._below.get(path, ()))

    def add(self, path: str, labels: Labels) -> None:
        """Add labels to a path, before something is written there."""
        self.begin(path, labels)

    def begin(self, path: str, labels: Labels) -> Labels | None:
        """Add labels to a path whose content is about to be replaced, see `StoredLabels.begin`."""
        with self._lock:
            begun = self._paths.begin(path, labels)
            if begun is not None:
                for above in _parents(path):
                    self._below.setdefault(above, set()).add(path)
            return begun

    def end(self, path: str, labels: Labels, begun: Labels | None) -> None:
        """Replace the labels of a path whose content was replaced, see `StoredLabels.end`."""
        with self._lock:
            self._paths.end(path, labels, begun)
            if self._paths.of(path):
                return
            for above in _parents(path):
                below = self._below.get(above, set())
                below.discard(path)
                if not below:
                    self._below.pop(above, None)

    def begin_move(self, source: str, destination: str, labels: Labels) -> Mapping[str, Labels]:
        """Add the labels of a path, and of everything below it, to the path that it is about to be moved to.

        Args:
            labels: What the call that moves it carries.

        Returns:
            What `end_move` needs.
        """
        moved = {path: self._paths.of(path) for path in (source, *self._labelled_below(source))}
        self.add(destination, union(labels, self._above(source)))
        for path, found in moved.items():
            self.add(f"{destination}{path.removeprefix(source)}", found)
        return moved

    def end_move(self, moved: Mapping[str, Labels]) -> None:
        """Remove the labels of paths that were moved."""
        for path, found in moved.items():
            self.end(path, NO_LABELS, found)


def _parents(path: str) -> Iterable[str]:
    """Yield the directories above a path, the sandbox last."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
    if path != HERE:
        yield HERE


class SessionFlow:
    """What a session knows about information flow.

    Attributes:
        files: The labels of the sandbox's files, which all sessions of an engine share.
        texts: The labelled texts that the session has read.
        read: The labels of everything that the session has read.
        uncompared: The labels of what it has read while no rule compared texts.
        variables: The labels of its variables, by name.
        handles: The labels of its handles, by id.
        opened: The labels of each call that runs, by its frame.
        prepared: Calls that are about to begin, by the frame that they begin with.
        is_labelled: Whether a call from outside may carry a label.
    """

    def __init__(self, files: FileLabels) -> None:
        self.files = files
        self.texts = LabelledTexts()
        self.read: Labels = NO_LABELS
        self.uncompared: Labels = NO_LABELS
        self.variables = StoredLabels()
        self.handles: dict[str, Labels] = {}
        self.opened: dict[object, CallLabels] = {}
        self.prepared: WeakKeyDictionary[Any, CallLabels] = WeakKeyDictionary()
        self.is_labelled = False
        self._lock = threading.Lock()

    def add(self, call: CallLabels, labels: Labels) -> None:
        """Add labels to what a call has read."""
        if labels:
            with self._lock:
                call.read = union(call.read, labels)

    def saw(self, value: object, labels: Labels, *, by_text: bool = True) -> None:
        """Add something that the session has read.

        Args:
            by_text: Whether its text is searched in the arguments of later calls; otherwise each later call carries the
                labels, if a narrowed session adds rules that compare texts.
        """
        if labels:
            self.is_labelled = True
            with self._lock:
                self.read = union(self.read, labels)
                if not by_text:
                    self.uncompared = union(self.uncompared, labels)
            if by_text:
                self.texts.add(value, labels)


def host_labels(names: Iterable[str], origin: str) -> Labels:
    """Return labels of a text that the host provides."""
    return labels_from(names, Source(origin, 0))
