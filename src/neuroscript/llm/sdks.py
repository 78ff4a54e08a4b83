"""The doors to the SDKs of OpenAI and of Anthropic, which one generator wrote: they are opened and asked alike.

Source: openai-python and anthropic-sdk-python, README, "Timeouts", "Making custom requests".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from neuroscript.llm.faults import missing

ACCOUNT: Final = ("organization", "project")
"""What a client of OpenAI takes from the environment beside the key."""


@attrs.frozen
class Sdk:
    """One of the two.

    Attributes:
        title: What is said to be missing where it is not installed.
        extra: The extra that brings it.
        client: The name of its client.
        variable: Where the key of its maker's own address stands in the environment.
        imported: Imports it.
    """

    title: str
    extra: str
    client: str
    variable: str
    imported: Callable[[], Any]

    def opened(self, base_url: str, key: str) -> Any:
        """Return a client of an address; ``""`` is its maker's own.

        Raises:
            LLMError: ``llm.missing``.
        """
        return getattr(self._module(), self.client)(api_key=key, base_url=base_url or None)

    def limited(self, client: Any, connect: float, silence: float, own: bool) -> Any:
        """Return a client like *client* that makes each request once, with timeouts in seconds.

        Args:
            own: Whether its address is that of the API's maker; another one is not told of an account there.
        """
        limited = client.with_options(max_retries=0, timeout=self._module().Timeout(silence, connect=connect))
        for name in () if own else ACCOUNT:
            if hasattr(limited, name):
                setattr(limited, name, None)
        return limited

    def unread(self, client: Any, path: str, body: dict[str, Any] | None) -> Any:
        """Make a request, without a body a GET, and return its stream, of which only the head has been read.

        No redirection is followed: the key, and all that was said, would go where nobody has sent it.
        """
        taken = {"cast_to": object, "stream": True, "stream_cls": self._module().Stream[object]}
        options = {"follow_redirects": False}
        if body is None:
            return client.get(path, options=options, **taken)
        return client.post(path, body=body, options=options, **taken)

    def _module(self) -> Any:
        try:
            return self.imported()
        except ImportError:
            failed = missing(self.title, self.extra)
        raise failed


def _openai() -> Any:
    import openai

    return openai


def _anthropic() -> Any:
    import anthropic

    return anthropic


OPENAI: Final = Sdk("the SDK of OpenAI", "llm", "OpenAI", "OPENAI_API_KEY", _openai)
ANTHROPIC: Final = Sdk("the SDK of Anthropic", "anthropic", "Anthropic", "ANTHROPIC_API_KEY", _anthropic)
