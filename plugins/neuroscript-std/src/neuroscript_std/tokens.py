"""``crypto`` tools for JSON Web Tokens (RFC 7519) that are signed with a secret.

They use PyJWT, which the extra ``jwt`` installs. Only HS256, HS384 and HS512 are accepted,
whatever the header of a token says (RFC 8725). Times are checked against the host's clock.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from neuroscript import (
    ArgSpec,
    ArgType,
    CoercionError,
    Example,
    Runtime,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    coerce,
)
from neuroscript_std.algorithms import require_algorithm

PURE: Final = ToolPolicy(effects=("pure",))
CLOCK: Final = ToolPolicy(effects=("clock",))
SIGNING: Final = ToolPolicy(requires_trust=True, capabilities=("crypto:sign:jwt",), sources=(), sinks=())
"""A token contains only what the caller passes."""

SIGNATURES: Final = ("HS256", "HS384", "HS512")
SIGNATURE_ALONE: Final = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "sub", "jti")}
"""PyJWT checks times only against the system clock, so the tool checks them. The caller checks the audience."""

SAMPLE_SECRET: Final = "a secret for examples, of 32 bytes or more"  # noqa: S105
SAMPLE_TOKEN: Final = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # noqa: S105
    ".eyJzdWIiOiJ1c2VyLTEiLCJhZG1pbiI6ZmFsc2V9"
    ".oXy8sU9k47BJH0JuhFhuLU5r3JaOkMLXjCll_8pwMhw"
)
OLD_TOKEN: Final = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # noqa: S105
    ".eyJzdWIiOiJ1c2VyLTEiLCJleHAiOjE3MDAwMDAwMDB9"
    ".d16LZyiUfBmISf2dYW0Mf2mxsWeh0Cgim0CbhPlXpu4"
)

toolset = Toolset("crypto")


@toolset.tool(
    policy=PURE,
    when_to_use="Use it to inspect an untrusted token; for claims that you rely on, use crypto.verifyjwt.",
    examples=(
        Example((SAMPLE_TOKEN,), {"sub": "user-1", "admin": False}),
        Example((OLD_TOKEN,), {"sub": "user-1", "exp": 1700000000}, note="nothing is verified, not even the expiry"),
        Example(("hello.world.again",), error="crypto.bad_token"),
    ),
)
def decodejwt(token_string: str) -> dict[str, Any]:
    """Decode a JWT (JSON Web Token) and read its claims without verifying the signature.

    Args:
        token_string: The token, three parts separated by dots.

    Returns:
        The claims, which are not trustworthy.

    Raises:
        ToolFailed: crypto.bad_token, crypto.needs_jwt.
    """
    jwt = _pyjwt()
    try:
        return _exact_claims(jwt.decode(token_string, options={"verify_signature": False}))
    except (jwt.PyJWTError, TypeError, ValueError, OverflowError, RecursionError):
        raise _bad_token() from None


def _verified(rt: Runtime, token_string: str, secret: str) -> dict[str, Any]:
    jwt = _pyjwt()
    try:
        claims = jwt.decode(token_string, secret, algorithms=list(SIGNATURES), options=SIGNATURE_ALONE)
    except jwt.InvalidAlgorithmError:
        raise _bad_signature(f"one of {', '.join(SIGNATURES)}") from None
    except jwt.InvalidSignatureError:
        raise _bad_signature("one made with this secret") from None
    except jwt.InvalidKeyError:
        raise _bad_secret() from None
    except (jwt.PyJWTError, TypeError, ValueError, OverflowError, RecursionError):
        raise _bad_token() from None
    return _timely(_exact_claims(claims), rt.now())


def _timely(claims: dict[str, Any], now: float) -> dict[str, Any]:
    """Return the claims if the token is valid now: ``nbf`` has passed and ``exp`` has not, where present."""
    times = {name: claims[name] for name in ("nbf", "exp") if name in claims}
    if not all(type(time) in (int, float) for time in times.values()):
        raise _bad_token()
    if times.get("nbf", now) > now:
        raise ToolFailed("the token is not valid yet", code="crypto.not_yet_valid", retry="later")
    if times.get("exp", now + 1) <= now:
        raise ToolFailed("the token has expired", code="crypto.expired", retry="model")
    return claims


toolset.add(
    ToolSpec(
        "verifyjwt",
        "crypto",
        (
            ArgSpec("token_string", ArgType.STRING, description="The token, signed with HS256, HS384 or HS512."),
            ArgSpec(
                "secret",
                ArgType.STRING,
                min_length=1,
                secret=True,
                description="The secret that the token was signed with; its UTF-8 bytes are used.",
            ),
        ),
        return_type=ArgType.MAP,
        description="Verify a JWT (JSON Web Token): check its signature and expiry, and return its claims.",
        when_to_use="Use it before you rely on claims; to inspect a token without its secret, use crypto.decodejwt.",
        return_help="The claims; exp and nbf have been checked, the caller must check the others.",
        examples=(
            Example((SAMPLE_TOKEN, SAMPLE_SECRET), {"sub": "user-1", "admin": False}),
            Example({"secret": SAMPLE_SECRET, "token_string": SAMPLE_TOKEN}, {"sub": "user-1", "admin": False}),
            Example((OLD_TOKEN, SAMPLE_SECRET), error="crypto.expired"),
            Example((SAMPLE_TOKEN, "another secret, just as long as that"), error="crypto.bad_signature"),
        ),
        error_conditions=(
            "crypto.bad_token, crypto.bad_signature, crypto.bad_secret, crypto.expired, crypto.not_yet_valid, "
            "crypto.needs_jwt."
        ),
    ),
    _verified,
    CLOCK,
)


def _signed(rt: Runtime, claims_map: dict[str, Any], secret: str, algorithm: str) -> str:
    name = require_algorithm(algorithm.upper(), SIGNATURES)
    jwt = _pyjwt()
    try:
        return str(jwt.encode(claims_map, secret, algorithm=name))
    except jwt.InvalidKeyError:
        raise _bad_secret() from None
    except TypeError:
        text = "claims_map: expected JSON values and a string as iss, got other values"
        raise ToolFailed(text, code="crypto.bad_claims", retry="model") from None


toolset.add(
    ToolSpec(
        "signjwt",
        "crypto",
        (
            ArgSpec("claims_map", ArgType.MAP, description="The claims; exp and nbf are Unix timestamps in seconds."),
            ArgSpec(
                "secret",
                ArgType.STRING,
                min_length=1,
                secret=True,
                description="The secret to sign with, as UTF-8; at least 32 bytes for HS256.",
            ),
            ArgSpec("algorithm", ArgType.STRING, description="HS256, HS384 or HS512, case-insensitive."),
        ),
        return_type=ArgType.STRING,
        description="Create a JWT (JSON Web Token) from claims and sign it with a secret.",
        when_to_use=(
            "Use it for a token that is verified with the same secret; to sign any other text, use crypto.hmac."
        ),
        return_help="The token, three parts separated by dots.",
        examples=(
            Example(({"sub": "user-1"}, SAMPLE_SECRET, "HS256"), error="policy.trust", note="requires a trusted host"),
            Example(
                {"claims_map": {"sub": "user-1"}, "secret": SAMPLE_SECRET, "algorithm": "HS512"}, error="policy.trust"
            ),
        ),
        error_conditions="crypto.bad_algorithm, crypto.bad_claims, crypto.bad_secret, crypto.needs_jwt.",
    ),
    _signed,
    SIGNING,
)


def _pyjwt() -> ModuleType:
    try:
        import jwt
    except ImportError:
        text = "JSON Web Tokens require PyJWT; run pip install 'pyjwt>=2.8'"
        raise ToolFailed(text, code="crypto.needs_jwt", retry="host") from None
    return jwt


def _exact_claims(claims: dict[str, Any]) -> dict[str, Any]:
    """Return the claims as plain values; JSON can contain numbers and strings that a result cannot."""
    try:
        exact: dict[str, Any] = coerce(claims, ArgType.MAP, mode="strict")
    except CoercionError:
        raise _bad_token() from None
    return exact


def _bad_token() -> ToolFailed:
    text = "token_string: expected a JSON Web Token with plain values as claims, got another string"
    return ToolFailed(text, code="crypto.bad_token", retry="model")


def _bad_signature(expected: str) -> ToolFailed:
    text = f"token_string: expected a signature that is {expected}, got another"
    return ToolFailed(text, code="crypto.bad_signature", retry="model")


def _bad_secret() -> ToolFailed:
    text = "secret: expected a shared secret, got a PEM, SSH or JSON Web Key"
    return ToolFailed(text, code="crypto.bad_secret", retry="model")
