"""The public keys of an issuer: discovered, fetched within limits, and stored for some minutes.

See RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4; RFC 7517.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Iterator, Mapping
from math import inf
from time import monotonic
from typing import Any, Final

import attrs

from neuroscript._imports import missing_extra
from neuroscript.interop.http_server.addresses import host_of, is_loopback, is_private
from neuroscript.interop.http_server.protected_resource import RESOURCE_URL
from neuroscript.io.text import type_name

try:
    import httpx2
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError
except ImportError as error:
    raise missing_extra("verifying access tokens needs PyJWT and HTTPX", "mcp", error) from None

MAX_DOCUMENT_BYTES: Final = 256 * 1024
"""Maximum size of the metadata of an issuer, and of its keys, in bytes."""

MAX_KEYS: Final = 100
"""Maximum number of keys of an issuer; further ones are not used."""

FETCH_SECONDS: Final = 10.0
"""Maximum time for fetching one document, in seconds."""

FRESH_SECONDS: Final = 600.0
"""Time after which the keys are fetched again, in seconds. A key that the issuer removes is accepted until then."""

USABLE_SECONDS: Final = 3_600.0
"""Time for which the keys are used if the issuer cannot be reached, in seconds."""

REFRESH_SECONDS: Final = 1.0
"""Maximum time that a request waits for newer keys if there are usable ones, in seconds."""

PAUSE_SECONDS: Final = 10.0
"""Minimum time between two attempts to fetch the keys, and between two warnings, in seconds. Anyone can cause both with
tokens that cost nothing."""

MIN_RSA_BITS: Final = 2_048
"""Minimum size of an RSA key, in bits."""

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "RS256": ("RSA", ""),
    "PS256": ("RSA", ""),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The type and the curve of the keys of each algorithm. All are asymmetric: the issuer alone can sign."""

LOGGER: Final = logging.getLogger("neuroscript.http")


class KeysUnavailable(Exception):
    """A document of the issuer cannot be used; the message says why."""


@attrs.frozen
class IssuerKey:
    """One public key.

    Attributes:
        id: Its id, or ``""``.
        algorithms: The algorithms that it can verify.
        value: The key, for PyJWT.
    """

    id: str
    algorithms: frozenset[str]
    value: Any = attrs.field(repr=False)


class IssuerDocuments:
    """Fetches the documents of an issuer, within limits; redirects are not followed.

    Args:
        issuer: The identifier of the issuer, a URL.
        others: Other URLs that the host has configured, whose machines may also be in a private network.
    """

    def __init__(self, issuer: str, *others: str) -> None:
        self._issuer = issuer
        self._known = {found[1] for found in map(re_url, (issuer, *others)) if found is not None}
        found = re_url(issuer)
        self._is_local = found is not None and is_loopback(found[1])
        self._tls: ssl.SSLContext | None = None  # loading the certificates takes tens of milliseconds
        self._warned = -inf

    def warn(self, reason: str) -> None:
        """Log that the issuer cannot be used, but seldom, because any client can cause it.

        Args:
            reason: Why, without any part of a token.
        """
        now = monotonic()
        if now - self._warned < PAUSE_SECONDS:
            return
        self._warned = now
        LOGGER.warning("cannot use the issuer of access tokens: %s", reason)

    async def endpoint(self, name: str) -> str:
        """Return a URL from the metadata of the issuer, which must name the issuer exactly.

        Args:
            name: Its key in the metadata, such as ``jwks_uri``.

        Raises:
            KeysUnavailable: The metadata cannot be read, or does not contain the URL.
        """
        reason = KeysUnavailable("it serves no metadata")
        for url in metadata_urls(self._issuer):
            try:
                document = await self.fetch(url)
            except KeysUnavailable as error:
                reason = error
                continue
            if document.get("issuer") != self._issuer:
                raise KeysUnavailable("its metadata names another issuer")
            found = document.get(name)
            if not isinstance(found, str):
                raise KeysUnavailable(f"its metadata has no {name}")
            return found
        raise reason

    async def fetch(self, url: str, form: Mapping[str, str] | None = None, auth: Any = None) -> dict[str, Any]:
        """Return a JSON object.

        Args:
            form: What is posted, or None.
            auth: An ``httpx2.Auth``, or None.

        Raises:
            KeysUnavailable: The response is not usable.
            Exception: The network failed.
        """
        problem = self.url_problem(url)
        if problem:
            raise KeysUnavailable(problem)
        trusts = not self._is_local
        self._tls = self._tls or httpx2.create_ssl_context(trust_env=trusts)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        method = "GET" if form is None else "POST"
        async with (
            asyncio.timeout(FETCH_SECONDS),
            httpx2.AsyncClient(
                follow_redirects=False, trust_env=trusts, timeout=FETCH_SECONDS, verify=self._tls
            ) as client,
            client.stream(method, url, headers=headers, data=form, auth=auth) as response,
        ):
            if response.status_code != 200:
                raise KeysUnavailable(f"a document has the status {response.status_code}")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise KeysUnavailable("a document is compressed, although no compression was requested")
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > MAX_DOCUMENT_BYTES:
                    raise KeysUnavailable(f"a document has more than {MAX_DOCUMENT_BYTES} bytes")
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise KeysUnavailable("a document is not JSON") from None
        if not isinstance(found, dict):
            raise KeysUnavailable("a document is not a JSON object")
        return found

    def url_problem(self, url: str) -> str:
        """Return why a URL must not be requested, or ``""``: the metadata must not lead into another network."""
        found = re_url(url)
        if found is None:
            return "a URL in its metadata is invalid"
        scheme, host = found
        is_known = host in self._known
        if self._is_local or is_known:
            is_allowed = scheme == "https" or is_loopback(host)
        else:
            is_allowed = scheme == "https" and not is_private(host)
        return "" if is_allowed else "a URL in its metadata is not https, or names an address of a private network"


class IssuerKeys:
    """Finds the keys of an issuer. All methods must be called on one event loop.

    Args:
        issuer: The identifier of the issuer, a URL.
        jwks_url: The URL of its keys; ``""`` finds it in the metadata of the issuer.
    """

    def __init__(self, issuer: str, jwks_url: str = "") -> None:
        self._documents = IssuerDocuments(issuer, jwks_url)
        self._jwks_url = jwks_url
        self._keys: tuple[IssuerKey, ...] = ()
        self._fetched = -inf
        self._tried = -inf
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, id: str, algorithm: str) -> tuple[IssuerKey, ...]:
        """Return the keys that can verify a token; the keys are fetched again if none has its id.

        Args:
            id: The key id in the header of the token; ``""`` returns all keys for the algorithm.
            algorithm: A key of `KINDS`.

        Raises:
            KeysUnavailable: There are no keys, and they cannot be fetched now.
        """
        now = monotonic()
        found = self._matching(id, algorithm)
        is_due = not found or now - self._fetched > FRESH_SECONDS
        is_new = is_due and self._fetching is None and now - self._tried > PAUSE_SECONDS
        if is_new:
            self._start_fetching()
        if is_due and self._fetching is not None:
            is_usable = found and now - self._fetched <= USABLE_SECONDS
            patience = None if not is_usable else REFRESH_SECONDS if is_new else 0  # the issuer may not respond
            await asyncio.wait({self._fetching}, timeout=patience)
            found = self._matching(id, algorithm)
        if monotonic() - self._fetched > USABLE_SECONDS:
            raise KeysUnavailable("the keys of the issuer cannot be fetched")
        return found

    def _matching(self, id: str, algorithm: str) -> tuple[IssuerKey, ...]:
        suitable = (each for each in self._keys if algorithm in each.algorithms)
        return tuple(each for each in suitable if not id or each.id == id)

    def _start_fetching(self) -> None:
        """Fetch the keys, once for all requests that wait; keep the old ones if that fails."""
        self._tried = monotonic()
        self._fetching = asyncio.create_task(self._fetch_now())
        self._fetching.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._fetching = None

    async def _fetch_now(self) -> None:
        try:
            url = self._jwks_url or await self._documents.endpoint("jwks_uri")
            document = await self._documents.fetch(url)
            listed = document.get("keys")
            if not isinstance(listed, list):
                raise KeysUnavailable("the key set has no list of keys")
            self._keys = tuple(_keys_in(listed[:MAX_KEYS]))
            self._fetched = monotonic()
        except KeysUnavailable as error:
            self._documents.warn(str(error))
        except Exception as error:  # of the network, of TLS, or of the parser
            self._documents.warn(type_name(error))


def re_url(url: str) -> tuple[str, str | None] | None:
    """Return the scheme and the host of a URL that may have a query, or None if it is invalid."""
    found = RESOURCE_URL.fullmatch(url.partition("?")[0])
    if found is None or host_of(found[2]) is None:
        return None
    return found[1].lower(), host_of(found[2])


def metadata_urls(issuer: str) -> tuple[str, ...]:
    """Return the URLs at which an issuer can serve its metadata, in the order of MCP.

    >>> metadata_urls("https://id.example.com/a")[1]
    'https://id.example.com/.well-known/openid-configuration/a'
    """
    found = RESOURCE_URL.fullmatch(issuer)
    if found is None:
        return ()
    base, path = f"{found[1]}://{found[2]}", found[3].rstrip("/")
    names = ("oauth-authorization-server", "openid-configuration")
    urls = [f"{base}/.well-known/{name}{path}" for name in names]
    return (*urls, f"{base}{path}/.well-known/openid-configuration") if path else tuple(urls)


def _keys_in(listed: list[Any]) -> Iterator[IssuerKey]:
    """Yield the usable public keys of a key set; symmetric, private, weak and encryption keys are left out."""
    for each in listed:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig" or "d" in each or "k" in each:
            continue
        uses = each.get("key_ops", ["verify"])
        if not isinstance(uses, list) or "verify" not in uses:
            continue
        stated = each.get("alg")
        kind = (each.get("kty"), "" if each.get("kty") == "RSA" else each.get("crv"))
        algorithms = frozenset(name for name, its in KINDS.items() if its == kind and stated in (None, name))
        id = each.get("kid", "")
        if not algorithms or not isinstance(id, str):
            continue
        try:
            key = PyJWK(each, algorithm=min(algorithms)).key
        except (PyJWTError, ValueError, TypeError, KeyError):
            continue
        if getattr(key, "key_size", MIN_RSA_BITS) >= MIN_RSA_BITS or each.get("kty") != "RSA":
            yield IssuerKey(id, algorithms, key)
