"""The secrets that one engine knows, and the sessions in which each of them is hidden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Lock

from neuroscript.capability import Capability
from neuroscript.forms import SHORTEST
from neuroscript.host import Host, exact_variables
from neuroscript.memory import Memory
from neuroscript.policy import ExecutionPolicy
from neuroscript.redaction import Redactor, SecretSet, is_guessable, secrets_in


class EngineSecrets:
    """The secrets of one engine. Thread-safe.

    A secret that can be guessed is hidden only where it may be known. If it were hidden in every session, any caller
    could find it: the caller sends all candidates to a tool that repeats them, and the redacted one is the secret.

    Args:
        host: Its secrets.
        policy: The engine's policy. Each environment variable that one of its grants names exactly is a secret too.

    Attributes:
        everywhere: The secrets that are hidden in every session.
        redactor: Hides every known secret; for audit records, log messages and recordings of the engine.
    """

    def __init__(self, host: Host, policy: ExecutionPolicy) -> None:
        self.everywhere = SecretSet()
        self._by_grant: dict[Capability, str] = {}
        guessable, self._of_calls = SecretSet(), SecretSet()
        for need, secret in _host_secrets(host, policy):
            if is_guessable(secret):
                guessable.add(secret)
                self._by_grant[need] = secret
            else:
                self.everywhere.add(secret)
        self.redactor = Redactor(self.everywhere, guessable, self._of_calls)
        self._lock = Lock()

    def granted(self, policy: ExecutionPolicy) -> SecretSet:
        """Return the secrets of the host that can be guessed, as far as *policy* permits to read them."""
        granted = SecretSet()
        for need, secret in self._by_grant.items():
            if policy.uncovered((need,)) is None:
                granted.add(secret)
        return granted

    def received(self, memory: Memory) -> SecretSet:
        """Return the secrets that one caller has received or sent."""
        with self._lock:
            if memory.secrets is None:
                memory.secrets = SecretSet()
            received: SecretSet = memory.secrets
        return received

    def hide(self, value: object, memory: Memory | None) -> None:
        """Hide what a caller has sent as a secret.

        Args:
            memory: The memory of that caller, whose sessions alone hide it; None stands for the engine itself, whose
                secrets all of its sessions hide.
        """
        found = secrets_in(value)
        self._of_calls.add_recent(found)
        (self.everywhere if memory is None else self.received(memory)).add_recent(found)

    def receive(self, value: object, memory: Memory) -> None:
        """Hide a secret of the host that a tool has received: one that can be guessed from its caller alone."""
        for each in secrets_in(value):
            self.hide(each, memory if is_guessable(each) else None)


def _host_secrets(host: Host, policy: ExecutionPolicy) -> Iterator[tuple[Capability, str]]:
    """Yield each secret of the host with the capability that permits to read it."""
    for name, value in host.secrets.items():
        yield Capability.literal("secret", "read", name), value
    names = exact_variables(policy)
    for name, value in os.environ.items():
        if name.lower() in names and len(value) >= SHORTEST:
            yield Capability.literal("env", "read", name), value
