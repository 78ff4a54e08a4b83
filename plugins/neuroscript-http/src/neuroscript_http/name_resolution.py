"""Name resolution: a name is resolved once, and every address is checked.

Resolving only once prevents DNS rebinding, where a second lookup returns another address.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Final

from neuroscript import Capability, Runtime
from neuroscript_http.addresses import AddressClass, class_of
from neuroscript_http.faults import fault
from neuroscript_http.network import Network
from neuroscript_http.timeouts import RequestTimeout
from neuroscript_http.urls import Target

MAX_ADDRESSES: Final = 64
"""Maximum number of addresses of one name."""

Answer = Sequence[str] | None


def addresses(rt: Runtime, network: Network, target: Target, request_timeout: RequestTimeout) -> Sequence[str]:
    """Return the addresses of a host, in order; there is at least one, and the request is allowed to use any of them.

    Raises:
        PolicyError: The host is a private address without a grant for ``lan:reach``.
        ToolFailed: ``http.resolve``; ``http.private``, if an address is not public or is never allowed.
    """
    found = (target.host,) if target.is_address else _resolved(network, target, request_timeout)
    reaches = {class_of(each) for each in found}
    if reaches == {AddressClass.PRIVATE} and target.is_address:
        rt.require(Capability.literal("lan", "reach", target.place))
    elif reaches != {AddressClass.PUBLIC}:
        which = "the address" if target.is_address else "an address"
        raise fault("private", f"{which} of {target.place} is not public, so no request is sent")
    return found


def _resolved(network: Network, target: Target, request_timeout: RequestTimeout) -> Sequence[str]:
    answers: SimpleQueue[Answer] = SimpleQueue()
    asking = threading.Thread(target=_ask, args=(network, target, answers), daemon=True, name="neuroscript-http")
    asking.start()
    while True:
        left = request_timeout.left()
        try:
            found = answers.get(timeout=left)
        except Empty:
            continue
        if not found:
            raise fault("resolve", f"the host name of {target.place} has no address")
        return found[:MAX_ADDRESSES]


def _ask(network: Network, target: Target, answers: SimpleQueue[Answer]) -> None:
    try:
        answers.put(tuple(network.resolve(target.host, target.port)))
    except Exception:  # any error of a resolver means that there is no address
        answers.put(None)
