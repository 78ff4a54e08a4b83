"""Metrics of a gateway in the text format of Prometheus; they contain no argument values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.gateway.servers import ServerState
from neuroscript.runtime.records import CallRecord
from neuroscript.tools.hookspecs import hookimpl

try:
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
except ImportError as error:
    raise missing_extra("metrics of a gateway need prometheus-client", "gateway", error) from None

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""The media type of the text."""

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper limits of the durations that are counted together, in seconds."""


class Metrics:
    """Counts calls; a plugin of the gateway's engine.

    Args:
        states: Returns the state of each server.
    """

    def __init__(self, states: Callable[[], Iterable[ServerState]]) -> None:
        self._states = states
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "neuroscript_calls",
            "Calls that have ended or were refused, by the code of their outcome.",
            ("server", "tool", "client", "code"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "neuroscript_call_seconds",
            "Durations of the calls that were not refused.",
            ("server", "tool"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        """Count a call. The name of an unknown tool is the caller's, so it is not a label."""
        server, _, tool = record.tool.rpartition(".") if record.about.fingerprint else ("", "", "")
        client = record.session.partition("/")[0]
        self._calls.labels(server, tool, client, record.code).inc()
        if record.kind == "outcome":
            self._seconds.labels(server, tool).observe(record.seconds)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of servers; the library calls this."""
        restarts = CounterMetricFamily("neuroscript_server_restarts", "Restarts of a server.", labels=("server",))
        healthy = GaugeMetricFamily(
            "neuroscript_server_healthy", "Whether all accepted tools of a server can be called.", labels=("server",)
        )
        for each in self._states():
            restarts.add_metric((each.group,), each.restarts)
            healthy.add_metric((each.group,), float(each.is_healthy))
        yield restarts
        yield healthy

    def text(self) -> bytes:
        """Return the metrics."""
        return generate_latest(self._registry)
