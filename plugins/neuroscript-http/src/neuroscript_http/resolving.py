"""A host into the addresses that the request goes to: resolved once, and every one of them looked at.

Source: reliability.md T8; DNS rebinding is a second answer, and nobody asks twice here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Final

from neuroscript import Capability, Runtime
from neuroscript_http.addresses import Reach, reach_of
from neuroscript_http.faults import fault
from neuroscript_http.network import Network
from neuroscript_http.patience import Patience
from neuroscript_http.urls import Target

MOST: Final = 64
"""Addresses of one name."""

Answer = Sequence[str] | None


def addresses(rt: Runtime, network: Network, target: Target, patience: Patience) -> Sequence[str]:
    """Return the addresses of a host, in order; there is one at least, and the request may go to each.

    Raises:
        PolicyError: The host is a private address, and this call may not reach it by ``lan:reach``.
        ToolFailed: ``http.resolve``; ``http.private``, where an address is not public, or never to be used.
    """
    found = (target.host,) if target.is_address else _resolved(network, target, patience)
    reaches = {reach_of(each) for each in found}
    if reaches == {Reach.PRIVATE} and target.is_address:
        rt.require(Capability.literal("lan", "reach", target.place))
    elif reaches != {Reach.PUBLIC}:
        which = "the address" if target.is_address else "an address"
        raise fault("private", f"{which} of {target.place} is not a public one, and so no request is sent there")
    return found


def _resolved(network: Network, target: Target, patience: Patience) -> Sequence[str]:
    answers: SimpleQueue[Answer] = SimpleQueue()
    asking = threading.Thread(target=_ask, args=(network, target, answers), daemon=True, name="neuroscript-http")
    asking.start()
    while True:
        left = patience.left()
        try:
            found = answers.get(timeout=left)
        except Empty:
            continue
        if not found:
            raise fault("resolve", f"the name of {target.place} has no address")
        return found[:MOST]


def _ask(network: Network, target: Target, answers: SimpleQueue[Answer]) -> None:
    try:
        answers.put(tuple(network.resolve(target.host, target.port)))
    except Exception:  # whatever a resolver raises, there is no address
        answers.put(None)
