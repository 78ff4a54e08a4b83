"""The secrets that one engine knows, and the sessions in which each of them is hidden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Lock
from typing import NamedTuple

from neuroscript.policy.capabilities import Capability
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host, exact_variables
from neuroscript.runtime.redaction import Redactor, is_guessable, secrets_in
from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS
from neuroscript.runtime.secret_set import SecretSet
from neuroscript.runtime.state import Memory


class EngineSecrets:
    """The secrets of one engine. Thread-safe.

    A secret that can be guessed is hidden only where it may be known. If it were hidden in every session, any caller
    could find it: the caller sends all candidates to a tool that repeats them, and the redacted one is the secret.

    Args:
        host: Its secrets.
        policy: The engine's policy. Each environment variable that one of its grants names exactly is a secret too.

    Attributes:
        everywhere: The secrets that are hidden in every session: those of the host, and those sent to the engine.
        redactor: Hides every known secret; for audit records, log messages and recordings of the engine.
    """

    def __init__(self, host: Host, policy: ExecutionPolicy) -> None:
        host_wide, guessable, received = SecretSet(), SecretSet(), SecretSet()
        self._received, self._sent, self._of_calls = received, SecretSet(), SecretSet()
        self.everywhere = (host_wide, self._sent)
        self._by_grant: dict[Capability, str] = {}
        for need, secret in _host_secrets(host, policy):
            if is_guessable(secret):
                guessable.add(secret)
                self._by_grant[need] = secret
            else:
                host_wide.add(secret)
        self.redactor = Redactor(host_wide, guessable, received, self._sent, self._of_calls)
        self._lock = Lock()

    def granted(self, policy: ExecutionPolicy) -> SecretSet:
        """Return the secrets of the host that can be guessed, as far as *policy* permits to read them."""
        granted = SecretSet()
        for need, secret in self._by_grant.items():
            if policy.uncovered_need((need,)) is None:
                granted.add(secret)
        return granted

    def of(self, memory: Memory) -> CallerSecrets:
        """Return the secrets that one caller has received or sent."""
        with self._lock:
            if memory.secrets is None:
                memory.secrets = CallerSecrets(SecretSet(), SecretSet())
            return memory.secrets

    def hide(self, value: object, memory: Memory | None) -> None:
        """Hide what a caller has sent as a secret.

        Args:
            memory: The memory of that caller, whose sessions alone hide it; None stands for the engine itself, whose
                secrets all of its sessions hide.
        """
        found = secrets_in(value)
        if memory is None:
            self._sent.add_recent(found)
        else:
            own = self.of(memory)
            self._of_calls.add_recent(found, id(own))
            own.sent.add_recent(found)

    def receive(self, value: object, memory: Memory, *, is_lasting: bool) -> None:
        """Hide a secret of the host that a tool has received: one that can be guessed from its caller alone.

        It is retained apart from what callers send, so that they cannot displace it.

        Args:
            is_lasting: Whether the host always provides the same value, which is never displaced then.
        """
        for each in secrets_in(value):
            kept = (self.of(memory).received, self._received) if is_guessable(each) else self.everywhere[:1]
            for secrets in kept:
                if is_lasting:
                    secrets.add(each)
                else:
                    secrets.add_recent([each])


class CallerSecrets(NamedTuple):
    """The secrets of one caller.

    Attributes:
        received: Those of the host that tools have received for it.
        sent: Those that it has sent.
    """

    received: SecretSet
    sent: SecretSet


def _host_secrets(host: Host, policy: ExecutionPolicy) -> Iterator[tuple[Capability, str]]:
    """Yield each secret of the host with the capability that permits reading it."""
    for name, value in host.secrets.items():
        yield Capability.literal("secret", "read", name), value
    names = exact_variables(policy)
    for name, value in os.environ.items():
        if name.lower() in names and len(value) >= MIN_SECRET_CHARS:
            yield Capability.literal("env", "read", name), value
