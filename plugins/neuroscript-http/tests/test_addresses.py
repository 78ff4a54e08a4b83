"""Attacks with addresses, names, redirects and DNS rebinding: none succeeds."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine, PolicyError, ToolFailed
from neuroscript_http.addresses import AddressClass, class_of
from neuroscript_http.network import Network, addresses_of, connect
from neuroscript_http.urls import target_of

EngineWith = Callable[..., Engine]

EVERYWHERE: Final = ("net:read,write:*", "fs:*:*")
"""A careless host: every place is granted, and still no private one."""

URLS: Final = {
    "loopback": "http://127.0.0.1/",
    "loopback elsewhere": "http://127.8.9.10/",
    "with a port": "http://127.0.0.1:8080/",
    "two parts": "http://127.1/",
    "three parts": "http://127.0.1/",
    "decimal": "http://2130706433/",
    "octal": "http://0177.0.0.1/",
    "octal in one": "http://017700000001/",
    "hexadecimal": "http://0x7f.0.0.1/",
    "hexadecimal in one": "http://0x7f000001/",
    "hexadecimal in capitals": "http://0X7F.1/",
    "mixed": "http://0x7f.0.1/",
    "leading zeros": "http://127.000.000.001/",
    "overflow": "http://4294967297/",
    "a last dot": "http://127.0.0.1./",
    "a last dot and short": "http://127.1./",
    "this host": "http://0.0.0.0/",
    "zero": "http://0/",
    "private 10": "http://10.0.0.5/",
    "private 172": "http://172.16.0.1/",
    "private 192": "http://192.168.1.1/",
    "provider": "http://100.64.0.1/",
    "link-local": "http://169.254.1.1/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "metadata decimal": "http://2852039166/",
    "metadata elsewhere": "http://100.100.100.200/",
    "metadata of a wire server": "http://168.63.129.16/",
    "multicast": "http://224.0.0.1/",
    "broadcast": "http://255.255.255.255/",
    "reserved": "http://240.0.0.1/",
    "documentation": "http://203.0.113.9/",
    "benchmarks": "http://198.18.0.1/",
    "ipv6 loopback": "http://[::1]/",
    "ipv6 loopback in full": "http://[0:0:0:0:0:0:0:1]/",
    "ipv6 unspecified": "http://[::]/",
    "mapped": "http://[::ffff:127.0.0.1]/",
    "mapped in hexadecimal": "http://[::ffff:7f00:1]/",
    "mapped public": "http://[::ffff:8.8.8.8]/",
    "compatible": "http://[::127.0.0.1]/",
    "6to4": "http://[2002:7f00:1::]/",
    "nat64": "http://[64:ff9b::7f00:1]/",
    "nat64 of one's own": "http://[64:ff9b:1::7f00:1]/",
    "teredo": "http://[2001:0:7f00:1::]/",
    "unique local": "http://[fd00::1]/",
    "metadata in ipv6": "http://[fd00:ec2::254]/",
    "link-local in ipv6": "http://[fe80::1]/",
    "link-local with a zone": "http://[fe80::1%25lo]/",
    "site-local": "http://[fec0::1]/",
    "multicast in ipv6": "http://[ff02::1]/",
    "discard": "http://[100::1]/",
    "documentation in ipv6": "http://[2001:db8::1]/",
    "user": "http://example.com@127.0.0.1/",
    "user that looks like a host": "http://127.0.0.1@example.com/",
    "user and word": "http://user:word@example.com/",
    "backslash": "http://127.0.0.1\\@example.com/",
    "another backslash": "http://example.com\\.evil.test/",
    "percent in a host": "http://127.0.0%2e1/",
    "a blank": "http://example.com /",
    "a line feed": "http://example.com/\r\nHost: 127.0.0.1",
    "a tab": "http://exa\tmple.com/",
    "wide digits": "http://１２７.0.0.1/",
    "an ideographic dot": "http://127。0。0。1/",
    "enclosed letters": "http://ⓔxample.com/",
    "no host": "http:///etc/passwd",
    "two colons": "http://example.com:80:80/",
    "port 0": "http://example.com:0/",
    "port too high": "http://example.com:65536/",
    "port with a sign": "http://example.com:+80/",
    "file": "file://localhost/etc/passwd",
    "gopher": "gopher://127.0.0.1:6379/_INFO",
    "without slashes": "http:127.0.0.1",
    "of no scheme": "//127.0.0.1/",
}


RETRIES = {"http.private": "never", "http.bad_url": "model", "arg.url": "model", "policy.capability": "host"}
"""Who can make the call succeed, for each code that a URL may be refused with."""


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_invalid_urls_are_refused(engine_with: EngineWith, world: Any, url: str) -> None:
    """Nothing is resolved or connected, even though all hosts are granted."""
    engine = engine_with(*EVERYWHERE)

    for call in ((url,), (url, "a.txt")):
        with pytest.raises(CallError) as caught:
            engine.call("http.get" if len(call) == 1 else "http.download", call)
        assert RETRIES[caught.value.code] == caught.value.retry
    assert ([], []) == (world.asked, world.reached)


ANSWERS: Final = {
    "loopback": ["127.0.0.1"],
    "private": ["10.1.2.3"],
    "metadata": ["169.254.169.254"],
    "mapped": ["::ffff:127.0.0.1"],
    "ipv6 loopback": ["::1"],
    "unique local": ["fd12::1"],
    "nat64": ["64:ff9b::a00:1"],
    "with a zone": ["fe80::1%eth0"],
    "unspecified": ["0.0.0.0"],
    "public and private": ["93.184.215.14", "10.0.0.1"],
    "private and public": ["10.0.0.1", "93.184.215.14"],
    "no address at all": ["localhost"],
    "a number": ["2130706433"],
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_names_never_resolve_to_private_addresses(engine_with: EngineWith, world: Any, answer: list[str]) -> None:
    """Even if private addresses are granted, because grants contain addresses and never names."""
    world.names["trick.example.com"] = [answer]
    engine = engine_with(*EVERYWHERE, "lan:*:*")

    for private in ([], ["trick.example.com:80", "127.0.0.1:80"]):
        with pytest.raises(ToolFailed) as caught:
            engine.call_named("http.get", {"url": "http://trick.example.com/", "private": private})
        assert ("http.private", "never") == (caught.value.code, caught.value.retry)
    text = "an address of trick.example.com:80 is not public, so no request is sent"
    assert text == caught.value.text
    assert [] == world.reached


def test_dns_rebinding_has_no_effect(engine: Engine, world: Any) -> None:
    """The connection uses the address that was checked."""
    world.names["api.example.com"] = [["93.184.215.14"], ["127.0.0.1"]]

    assert 200 == engine.call("http.get", ["http://api.example.com/items"])["status"]

    assert ["api.example.com"] == world.asked
    assert [("93.184.215.14", 80)] == world.reached
    assert "host: api.example.com\r\n" in world.plain.sent()


def test_each_hop_is_checked(engine: Engine, world: Any) -> None:
    """A name that is rebound between a redirect and its target is refused."""
    world.names["api.example.com"] = [["93.184.215.14"], ["127.0.0.1"]]
    world.plain.answer("/moved", 302, location="/items")

    with pytest.raises(ToolFailed) as caught:
        engine.call("http.get", ["http://api.example.com/moved"])

    assert ("http.private", "never") == (caught.value.code, caught.value.retry)
    assert [("93.184.215.14", 80)] == world.reached


ELSEWHERE: Final = "api.example.com:80 redirects to a host or port that is not in redirects; add its URL there"
UNREADABLE: Final = "api.example.com:80 redirects to an invalid or ambiguous URL"

LOCATIONS: Final = {
    "loopback": ("http://127.0.0.1/", ELSEWHERE),
    "loopback without a scheme": ("//127.0.0.1/", ELSEWHERE),
    "metadata": ("http://169.254.169.254/", ELSEWHERE),
    "decimal": ("http://2130706433/", UNREADABLE),
    "user": ("http://api.example.com@127.0.0.1/", UNREADABLE),
    "file": ("file://localhost/etc/passwd", UNREADABLE),
    "another host": ("http://other.example.com/", ELSEWHERE),
    "another port": ("http://api.example.com:8080/", ELSEWHERE),
    "another scheme and so another port": ("https://api.example.com/", ELSEWHERE),
    "backslashes": ("\\\\127.0.0.1\\", UNREADABLE),
    "brackets that do not close": ("http://[::1/", UNREADABLE),
    "a line in it": ("/a\tb", UNREADABLE),
    "nothing but dots": ("http://../", UNREADABLE),
}


@pytest.mark.parametrize(("location", "text"), LOCATIONS.values(), ids=LOCATIONS)
def test_redirect_to_another_host_is_refused(engine_with: EngineWith, world: Any, location: str, text: str) -> None:
    """The call names one host, so a redirect to another is refused, whatever is granted."""
    world.plain.answer("/moved", 302, location=location)
    engine = engine_with(*EVERYWHERE)

    with pytest.raises(ToolFailed) as caught:
        engine.call("http.get", ["http://api.example.com/moved"])

    assert ("http.redirect", "model", text) == (caught.value.code, caught.value.retry, caught.value.text)
    assert [("93.184.215.14", 80)] == world.reached


def test_redirect_target_without_grant_is_refused(engine_with: EngineWith, world: Any) -> None:
    """All hosts that a call names need grants, so it is refused before the first request."""
    with pytest.raises(PolicyError):
        engine_with("net:read:api.example.com").call_named(
            "http.get", {"url": "http://api.example.com/a", "redirects": ["http://other.example.com/"]}
        )

    assert [] == world.reached


def test_redirect_to_loopback_is_refused(engine_with: EngineWith, world: Any) -> None:
    """The host is granted and named, but its address is private."""
    world.plain.answer("/moved", 302, location="http://127.0.0.1:80/")
    engine = engine_with(*EVERYWHERE)

    with pytest.raises(PolicyError) as caught:
        engine.call_named("http.get", {"url": "http://api.example.com/moved", "redirects": ["http://127.0.0.1:80/"]})

    assert "lan:reach" == caught.value.need
    assert [("93.184.215.14", 80)] == world.reached


def test_private_address_needs_grant_and_argument(engine_with: EngineWith, world: Any) -> None:
    """Both are needed, and the URL must contain the address."""
    place = f"127.0.0.1:{world.plain.port}"
    url = f"http://{place}/items"
    named = {"url": url, "private": [place]}

    for grant in (f"lan:reach:{place}", "lan:reach:127.0.0.1:*"):
        assert 200 == engine_with(f"net:read:{place}", grant).call_named("http.get", named)["status"]
    for grants, given in (
        ((f"net:read:{place}", f"lan:reach:{place}"), {"url": url}),
        ((f"net:read:{place}", f"lan:reach:{place}"), {"url": url, "private": ["127.0.0.1", "127.0.0.1:1"]}),
        (("net:*:*",), named),
        (("net:read:*", "lan:reach:127.0.0.1:1"), named),
        (("net:read:*", "lan:reach:127.0.0.1"), named),
        ((f"lan:reach:{place}",), named),
    ):
        with pytest.raises(PolicyError):
            engine_with(*grants).call_named("http.get", given)
    assert 2 == len(world.plain.requests)


def test_private_ipv6_address_needs_grant_and_argument(engine_with: EngineWith, world: Any) -> None:
    """Its bracket is escaped in a grant, where it would start a glob."""
    world.routes[8080] = world.plain.port
    engine = engine_with("net:read:[::1]:8080", r"lan:reach:\[::1]:8080")

    result = engine.call_named("http.get", {"url": "http://[0::1]:8080/items", "private": ["[::1]:8080"]})

    assert (200, "http://[::1]:8080/items") == (result["status"], result["url"])
    assert [("::1", 8080)] == world.reached
    assert "host: [::1]:8080\r\n" in world.plain.sent()


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "0.0.0.0", "[::ffff:127.0.0.1]", "224.0.0.1"])
def test_some_addresses_are_never_allowed(engine_with: EngineWith, world: Any, host: str) -> None:
    """Whatever is granted."""
    engine = engine_with("net:*:*", "lan:*:*")

    with pytest.raises(ToolFailed) as caught:
        engine.call_named("http.get", {"url": f"http://{host}/", "private": [f"{host}:80"]})

    assert ("http.private", "never", []) == (caught.value.code, caught.value.retry, world.reached)


REACHES: Final = {
    "8.8.8.8": AddressClass.PUBLIC,
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c": AddressClass.PUBLIC,
    "2a00:1450:4001:82b::200e": AddressClass.PUBLIC,
    "172.15.255.255": AddressClass.PUBLIC,
    "172.32.0.0": AddressClass.PUBLIC,
    "172.31.255.255": AddressClass.PRIVATE,
    "100.127.255.255": AddressClass.PRIVATE,
    "127.0.0.1": AddressClass.PRIVATE,
    "fc00::1": AddressClass.PRIVATE,
    "::1": AddressClass.PRIVATE,
    "": AddressClass.NEVER,
    "4000::1": AddressClass.NEVER,
}


@pytest.mark.parametrize(("address", "reach"), REACHES.items(), ids=REACHES)
def test_addresses_are_classified(address: str, reach: AddressClass) -> None:
    """By the registries of special addresses; an unknown address is not public."""
    assert reach == class_of(address)


SAME: Final = {
    "http://EXAMPLE.com": "http://example.com/",
    "https://example.com.:443/a?b#c": "https://example.com/a?b",
    "http://example.com?q=1": "http://example.com/?q=1",
    "http://[2001:DB8:0::1]:8080/": "http://[2001:db8::1]:8080/",
    "http://example.com:080/": "http://example.com/",
}


@pytest.mark.parametrize(("url", "expected"), SAME.items(), ids=SAME)
def test_urls_are_normalized(url: str, expected: str) -> None:
    """A normalized URL does not change."""
    assert expected == target_of(url).url == target_of(expected).url


def test_default_network_resolves_and_connects() -> None:
    """With the functions that are used without a custom network."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "127.0.0.1" in addresses_of("localhost", port)
        with connect("127.0.0.1", port, 1.0) as connection:
            assert ("127.0.0.1", port) == connection.getpeername()

    assert Network() == Network(addresses_of, connect)
    with pytest.raises(OSError):
        connect("127.0.0.1", port, 1.0)
