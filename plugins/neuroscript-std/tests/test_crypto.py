"""The crypto toolset, called through an engine."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import jwt
import pytest

from neuroscript import CallError, Engine, ExecutionPolicy, Host, PolicyError, ToolCall, ToolFailed
from neuroscript_std.crypto import toolset

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "upstream.json"
UPSTREAM = [case for case in json.loads(VECTORS.read_text()) if case["tool_or_fn"].startswith("tool.crypto.")]

SECRET = "a secret for tests, long enough even for HS512, which asks for 64 bytes"
NOW = int(time.time())
DAY = 24 * 60 * 60


def sign(claims_map: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> Any:
    """Sign claims with an engine that is allowed to."""
    return signer().call("crypto.signjwt", [claims_map, secret, algorithm])


@cache
def signer() -> Engine:
    policy = ExecutionPolicy(trusted=True, grants=["crypto:sign:jwt"])
    return Engine(plugins=["neuroscript-std"], policy=policy)


def token(claims: object, header: object = None, *, key: str = SECRET, algorithm: str = "sha256") -> str:
    """Return a token signed with HMAC, whatever its parts contain."""
    parts = [header or {"alg": "HS256", "typ": "JWT"}, claims]
    encoded = ".".join(part if isinstance(part, str) else base64(json.dumps(part).encode()) for part in parts)
    return f"{encoded}.{base64(hmac.digest(key.encode(), encoded.encode(), algorithm))}"


def base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["id"])
def test_upstream_cases(engine: Engine, case: dict[str, Any]) -> None:
    """Refusals of upstream are refusals here, with a code."""
    expected = {"toolset-096": "crypto.bad_algorithm", "toolset-097": "crypto.bad_token"}

    with pytest.raises(CallError) as caught:
        sign(*case["args"]) if "signjwt" in case["tool_or_fn"] else engine.call(case["tool_or_fn"], case["args"])

    assert (expected[case["id"]], "model") == (caught.value.code, caught.value.retry)


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title], ids=["lower", "upper", "title"])
@pytest.mark.parametrize("name", ["sha256", "sha512", "md5"])
@pytest.mark.parametrize("text", ["", "abc", "Grüße ☃", "x" * 100_000], ids=["empty", "ascii", "utf-8", "long"])
def test_digests_match_the_standard_library(engine: Engine, text: str, name: str, spelling: Any) -> None:
    """Of the UTF-8 bytes, in lowercase hexadecimal digits; the algorithm is case-insensitive."""
    result = (
        engine.call("crypto.hash", [text, spelling(name)]),
        engine.call("crypto.hmac", [text, "kéy", spelling(name)]),
    )

    digest = hashlib.new(name, text.encode()).hexdigest()
    assert (digest, hmac.new("kéy".encode(), text.encode(), name).hexdigest()) == result


@pytest.mark.parametrize("name", ["sha1", "sha-256", "", "sha256 ", "shake_128", "blake2b", "\u017fha256"])
def test_unknown_algorithms_are_refused(failure: Callable[..., ToolFailed], name: str) -> None:
    """Even those that the platform has."""
    errors = failure("crypto.hash", "a", name), failure("crypto.hmac", "a", "k", name)

    text = "algorithm: expected one of sha256, sha512, md5, got another string"
    assert (text, text) == tuple(error.text for error in errors)
    assert {("crypto.bad_algorithm", "model")} == {(error.code, error.retry) for error in errors}


def test_uuids_are_random_and_of_version_4(engine: Engine) -> None:
    """A thousand of them are all different."""
    ids = [engine.call("crypto.uuid") for _ in range(1000)]

    assert len(set(ids)) == 1000
    assert {("4", True)} == {(each[14], str(UUID(each)) == each) for each in ids}


def test_uuids_use_the_host_random_source() -> None:
    """The same seed gives the same ids, which are still of version 4."""

    def ids(seed: int) -> list[str]:
        with Engine(plugins=["neuroscript-std"], host=Host(random=random.Random(seed))) as engine:
            return [engine.call("crypto.uuid") for _ in range(20)]

    assert ids(1) == ids(1) != ids(2)
    assert {4} == {UUID(each).version for each in ids(1)}
    assert {"specified in RFC 4122"} == {UUID(each).variant for each in ids(1)}


@pytest.mark.parametrize("name", ["HS256", "hs384", "Hs512"])
def test_signed_claims_can_be_verified(engine: Engine, name: str) -> None:
    """Claims are returned unchanged, with any names and types."""
    claims = {
        "sub": 7,
        "aud": ["a"],
        "iat": NOW + DAY,
        "jti": 1,
        "exp": NOW + DAY,
        "nbf": NOW,
        "x": {"y": [1.5, None]},
    }

    result = engine.call("crypto.verifyjwt", [sign(claims, algorithm=name), SECRET])

    assert claims == result


def test_signing_matches_pyjwt() -> None:
    """The tokens are identical."""
    assert jwt.encode({"sub": "a"}, SECRET, "HS512") == sign({"sub": "a"}, SECRET, "hs512")


UNVERIFIED: dict[str, tuple[str, str, str]] = {
    "another secret": (token({"sub": "a"}, key="x" * 32), "crypto.bad_signature", "one made with this secret"),
    "claims that were changed": (
        ".".join([token({"a": 1}).split(".")[0], token({"a": 2}).split(".")[1], token({"a": 1}).split(".")[2]]),
        "crypto.bad_signature",
        "one made with this secret",
    ),
    "no signature at all": (
        jwt.encode({"sub": "a"}, None, "none"),
        "crypto.bad_signature",
        "one of HS256, HS384, HS512",
    ),
    "none in another case": (token({}, {"alg": "nOnE"}), "crypto.bad_signature", "one of HS256, HS384, HS512"),
    "no algorithm": (token({}, {"typ": "JWT"}), "crypto.bad_signature", "one of HS256, HS384, HS512"),
    "an algorithm with a public key": (
        token({}, {"alg": "RS256"}),
        "crypto.bad_signature",
        "one of HS256, HS384, HS512",
    ),
}


@pytest.mark.parametrize(("given", "code", "expected"), UNVERIFIED.values(), ids=UNVERIFIED)
def test_invalid_signature_is_refused(failure: Callable[..., ToolFailed], given: str, code: str, expected: str) -> None:
    """Only HS256, HS384 and HS512 with this secret are accepted, whatever the header says."""
    error = failure("crypto.verifyjwt", given, SECRET)

    assert f"token_string: expected a signature that is {expected}, got another" == error.text
    assert (code, "model") == (error.code, error.retry)


BAD_TOKENS = {
    "nothing": "",
    "words": "hello.world.again",
    "two parts": ".".join(token({}).split(".")[:2]),
    "four parts": f"{token({})}.x",
    "claims that are a list": token([1]),
    "claims that are no JSON": token(base64(b"{")),
    "a header that is not JSON": token({}, base64(b"x")),
    "a number that is infinite": token(base64(b'{"n": 1e400}')),
    "a number that is none": token(base64(b'{"n": NaN}')),
    "an int of more than 64 bits": token({"n": 2**64}),
    "half a pair": token(base64(rb'{"n": "\ud800"}')),
    "claims too deep": token(base64(b'{"n": ' + b"[" * 100 + b"]" * 100 + b"}")),
    "claims much too deep": token(base64(b"[" * 200_000)),
    "a header much too deep": token({}, base64(b'{"a":' * 100_000)),
    "a header with a condition": token({}, {"alg": "HS256", "crit": ["x"], "x": 1}),
    "no ASCII": "é.é.é",
}


@pytest.mark.parametrize("given", BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_invalid_token_is_refused(failure: Callable[..., ToolFailed], given: str) -> None:
    """By decoding and verifying alike; claims must be plain values."""
    decoded = failure("crypto.decodejwt", given)
    verified = failure("crypto.verifyjwt", given, SECRET)

    text = "token_string: expected a JSON Web Token with plain values as claims, got another string"
    assert (text, "crypto.bad_token", "model") == (decoded.text, decoded.code, decoded.retry)
    assert (text, "crypto.bad_token", "model") == (verified.text, verified.code, verified.retry)


TIMES = {
    "an end that is over": ({"exp": NOW - 60}, "the token has expired", "crypto.expired", "model"),
    "an end just now": ({"exp": NOW}, "the token has expired", "crypto.expired", "model"),
    "a beginning to come": ({"nbf": NOW + DAY}, "the token is not valid yet", "crypto.not_yet_valid", "later"),
}


@pytest.mark.parametrize(("claims", "text", "code", "retry"), TIMES.values(), ids=TIMES)
def test_token_times_are_checked(
    engine: Engine, failure: Callable[..., ToolFailed], claims: dict[str, Any], text: str, code: str, retry: str
) -> None:
    """Before nbf and from exp on, a token is refused; decoding still shows it."""
    error = failure("crypto.verifyjwt", token(claims), SECRET)

    assert (text, code, retry) == (error.text, error.code, error.retry)
    assert claims == engine.call("crypto.decodejwt", [token(claims)])


MOMENTS = {9: ("crypto.not_yet_valid", "later"), 10: "holds", 19.5: "holds", 20: ("crypto.expired", "model")}


@pytest.mark.parametrize(("moment", "expected"), MOMENTS.items())
def test_token_times_use_the_host_clock(moment: float, expected: Any) -> None:
    """A token is valid from nbf until just before exp."""
    with Engine(plugins=["neuroscript-std"], host=Host(clock=lambda: moment)) as engine:
        result = engine.execute(ToolCall("crypto.verifyjwt", [token({"nbf": 10, "exp": 20}), SECRET]))

    assert expected == ((result.error.code, result.error.retry) if result.error else "holds")


@pytest.mark.parametrize("time_claim", ["exp", "nbf"])
@pytest.mark.parametrize(
    "value", ["soon", "1", True, None, [], {}], ids=["text", "digits", "bool", "None", "list", "map"]
)
def test_non_numeric_time_is_refused(failure: Callable[..., ToolFailed], time_claim: str, value: Any) -> None:
    """A claim that cannot be checked does not count as valid."""
    error = failure("crypto.verifyjwt", token({time_claim: value}), SECRET)
    assert (error.code, error.retry) == ("crypto.bad_token", "model")


def test_signature_is_checked_before_the_times(failure: Callable[..., ToolFailed]) -> None:
    """Without the secret, a caller learns nothing about the claims."""
    error = failure("crypto.verifyjwt", token({"exp": 1}), "another secret, just as long as that one")

    assert (error.code, error.retry) == ("crypto.bad_signature", "model")


KEYS = {
    "PEM": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    "SSH": "ssh-rsa AAAAB3NzaC1yc2E",
}


@pytest.mark.parametrize("secret", KEYS.values(), ids=KEYS)
def test_public_key_is_refused_as_secret(failure: Callable[..., ToolFailed], secret: str) -> None:
    """Otherwise a token signed with public data would be accepted."""
    with pytest.raises(ToolFailed) as caught:
        sign({}, secret)

    assert (caught.value.code, caught.value.retry) == ("crypto.bad_secret", "model")
    text = "secret: expected a shared secret, got a PEM, SSH or JSON Web Key"
    assert text == failure("crypto.verifyjwt", token({}), secret).text


def test_empty_secret_is_an_argument_error(engine: Engine) -> None:
    """Before the token is checked."""
    with pytest.raises(CallError) as caught:
        engine.call("crypto.verifyjwt", [token({}), ""])

    assert (caught.value.code, caught.value.retry) == ("coercion.length", "model")


@pytest.mark.parametrize("claims", [{"b": b"bytes"}, {"iss": 1}], ids=["bytes", "iss"])
def test_non_json_claims_are_refused(claims: dict[str, Any]) -> None:
    """A token contains JSON, and its issuer is a string."""
    with pytest.raises(ToolFailed) as caught:
        sign(claims)

    text = "claims_map: expected JSON values and a string as iss, got other values"
    assert (text, "crypto.bad_claims", "model") == (caught.value.text, caught.value.code, caught.value.retry)


@pytest.mark.parametrize("name", ["none", "HS257", "RS256", "", "HS256 "])
def test_unknown_signature_algorithms_are_refused(name: str) -> None:
    """Only HS256, HS384 and HS512 are supported."""
    with pytest.raises(ToolFailed) as caught:
        sign({}, SECRET, name)

    text = "algorithm: expected one of HS256, HS384, HS512, got another string"
    assert (text, "crypto.bad_algorithm", "model") == (caught.value.text, caught.value.code, caught.value.retry)


def test_untrusted_engine_refuses_to_sign(engine: Engine) -> None:
    """Before the arguments are checked, through every entry point."""
    with pytest.raises(PolicyError) as caught:
        engine.call("crypto.signjwt", ["not", "its", "arguments", "at all"])

    assert str(caught.value) == "crypto.signjwt: requires a trusted host"
    assert (caught.value.code, caught.value.retry, caught.value.need) == ("policy.trust", "host", "trust")
    result = engine.execute(ToolCall("crypto.signjwt", [{}, SECRET, "HS256"]))
    assert isinstance(result.error, PolicyError)


def test_secret_arguments_are_declared() -> None:
    """So they do not appear in records and traces."""
    secrets = {(tool.name, arg.name) for tool in toolset for arg in tool.spec.args if arg.secret}

    expected = {("crypto.hmac", "secret_key"), ("crypto.signjwt", "secret"), ("crypto.verifyjwt", "secret")}
    assert expected == secrets


def test_damaged_tokens_are_refused(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """Each of 2,000 damaged tokens is refused with a code of the tool."""
    source = random.Random(4)
    whole = token({"sub": "a", "exp": NOW + DAY})
    seen = set()
    for _ in range(2000):
        place, length = source.randrange(len(whole) - 1), source.randrange(1, 4)
        junk = "".join(source.choices('AZaz09-_.={}"\n\x00é', k=source.randrange(4)))
        damaged = whole[:place] + junk + whole[place + length :]
        if damaged != whole:
            error = failure("crypto.verifyjwt", damaged, SECRET)
            seen.add((error.code, error.retry))

    assert {("crypto.bad_token", "model"), ("crypto.bad_signature", "model")} == seen


WITHOUT_PYJWT = """
import sys
sys.modules["jwt"] = None
from neuroscript import Engine, CallError
from neuroscript_std.crypto import toolset
with Engine(toolsets=[toolset], plugins="none") as engine:
    print(len(engine.call("crypto.uuid")))
    for tool, args in [("decodejwt", ["a.b.c"]), ("verifyjwt", ["a.b.c", "secret"])]:
        try:
            engine.call(f"crypto.{tool}", args)
        except CallError as error:
            print(error.code, error.retry, error)
"""


def test_missing_pyjwt_is_reported() -> None:
    """The toolset loads and its other tools work; only the token tools need the extra."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYJWT], capture_output=True, text=True, check=True)

    text = "JSON Web Tokens require PyJWT; run pip install 'pyjwt>=2.8'"
    expected = ["36", *(f"crypto.needs_jwt host crypto.{each}: {text}" for each in ("decodejwt", "verifyjwt"))]
    assert expected == done.stdout.splitlines()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (
            ["SHA512"],
            "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
            "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
        ),
    ],
    ids=["RFC 4231, test case 1", "RFC 4231, test case 1, SHA-512"],
)
def test_hmacwith_uses_a_secret_of_the_host(engine: Engine, args: list[Any], expected: str) -> None:
    """The caller passes its name and never sees it."""
    assert expected == engine.call("crypto.hmacwith", ["Hi There", "signing", *args])


RETRIES = {"policy.capability": "host", "secret.unknown": "host"}
"""Who can make the call succeed, by code; for every other code it is 'model'."""


def test_hmacwith_needs_a_grant_for_the_secret() -> None:
    """A grant for another name is not enough, and no error contains the secret."""
    host = Host(secrets={"signing": "canary", "payments": "canary"})
    policy = ExecutionPolicy(grants=["secret:read:s*"])
    codes = {}
    with Engine(plugins=["neuroscript-std"], host=host, policy=policy) as engine:
        for args in (["signing", "crc32"], ["payments"], ["*"], ["salt"], [""]):
            with pytest.raises(CallError) as caught:
                engine.call("crypto.hmacwith", ["a message", *args])
            assert "canary" not in f"{caught.value}{caught.value!r}"
            assert caught.value.retry == RETRIES.get(caught.value.code, "model")
            codes[args[0]] = caught.value.code

    assert codes == {
        "signing": "crypto.bad_algorithm",
        "payments": "policy.capability",
        "*": "policy.capability",
        "salt": "secret.unknown",
        "": "coercion.length",
    }
