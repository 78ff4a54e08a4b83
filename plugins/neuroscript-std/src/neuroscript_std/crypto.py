"""Digests, keyed digests, random ids, and JSON Web Tokens that are signed with a secret.

Tokens are read and made by PyJWT, which comes with ``pip install "neuroscript-std[jwt]"``. Only HS256, HS384 and HS512
are ever accepted, whatever a token says of itself.

Source: upstream ``pkg/tool/crypto``; RFC 7519; RFC 8725 sections 3.1 and 3.2.
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

PURE: Final = ToolPolicy(effects=("pure",))
CLOCK: Final = ToolPolicy(effects=("clock",))
RANDOM: Final = ToolPolicy(effects=("random",))
SIGNING: Final = ToolPolicy(requires_trust=True, capabilities=("crypto:sign:jwt",))

DIGESTS: Final = ("sha256", "sha512", "md5")
SIGNATURES: Final = ("HS256", "HS384", "HS512")
TIMES_ALONE: Final = {"verify_aud": False, "verify_iat": False, "verify_sub": False, "verify_jti": False}
"""Of the claims only ``exp`` and ``nbf`` are looked at, as upstream does; for whom a token is, its caller must say."""

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
    name="hash",
    policy=PURE,
    when_to_use="For a digest that anybody can check; crypto.hmac takes a key, so that only those who know it can.",
    examples=(
        Example(("abc", "SHA256"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        Example(("", "md5"), "d41d8cd98f00b204e9800998ecf8427e"),
        Example(("abc", "crc32"), error="crypto.bad_algorithm"),
    ),
)
def digest(input_string: str, algorithm: str) -> str:
    """Give the digest of a text.

    Args:
        input_string: The text, which is read as UTF-8.
        algorithm: sha256, sha512 or md5, in any case; md5 keeps nothing safe and is there for old checksums.

    Returns:
        The digest in hexadecimal digits, in lower case.

    Raises:
        ToolFailed: crypto.bad_algorithm.
    """
    name = _chosen(algorithm.lower(), DIGESTS)
    import hashlib

    return hashlib.new(name, input_string.encode(), usedforsecurity=False).hexdigest()


def _keyed_digest(rt: Runtime, input_string: str, secret_key: str, algorithm: str) -> str:
    name = _chosen(algorithm.lower(), DIGESTS)
    from hmac import new

    return new(secret_key.encode(), input_string.encode(), name).hexdigest()


toolset.add(
    ToolSpec(
        "hmac",
        "crypto",
        (
            ArgSpec("input_string", ArgType.STRING, description="The text, which is read as UTF-8."),
            ArgSpec("secret_key", ArgType.STRING, secret=True, description="The key, which is read as UTF-8."),
            ArgSpec("algorithm", ArgType.STRING, description="sha256, sha512 or md5, in any case."),
        ),
        return_type=ArgType.STRING,
        description="Give the digest of a text under a key.",
        when_to_use="For proof that a text comes from one who knows the key; crypto.hash needs no key.",
        return_help="The HMAC in hexadecimal digits, in lower case.",
        examples=(
            Example(
                ("what do ya want for nothing?", "Jefe", "sha256"),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                note="test case 2 of RFC 4231",
            ),
            Example(("what do ya want for nothing?", "Jefe", "MD5"), "750c783e6ab0b503eaa86e310a5db738"),
            Example(("a text", "a key", "sha-256"), error="crypto.bad_algorithm"),
        ),
        error_conditions="crypto.bad_algorithm.",
    ),
    _keyed_digest,
    PURE,
)


@toolset.tool(
    policy=RANDOM,
    when_to_use="For a name that nothing else has; crypto.hash gives the same name for the same text.",
    examples=(
        Example(()),
        Example({}),
        Example((4,), error="arg.count"),
    ),
)
def uuid() -> str:
    """Give a new random id.

    Returns:
        A UUID of version 4, 36 characters in lower case.
    """
    from uuid import uuid4

    return str(uuid4())


@toolset.tool(
    policy=PURE,
    when_to_use="For a look into a token that is not trusted; crypto.verifyjwt says whether it can be.",
    examples=(
        Example((SAMPLE_TOKEN,), {"sub": "user-1", "admin": False}),
        Example((OLD_TOKEN,), {"sub": "user-1", "exp": 1700000000}, note="nothing is verified, its end neither"),
        Example(("hello.world.again",), error="crypto.bad_token"),
    ),
)
def decodejwt(token_string: str) -> dict[str, Any]:
    """Give the claims of a JSON Web Token without verifying them.

    Args:
        token_string: The token, three parts with dots between them.

    Returns:
        The claims, which anybody may have written.

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
        return _exact_claims(jwt.decode(token_string, secret, algorithms=list(SIGNATURES), options=TIMES_ALONE))
    except jwt.ExpiredSignatureError:
        raise ToolFailed("the token has expired", code="crypto.expired", retry="model") from None
    except jwt.ImmatureSignatureError:
        raise ToolFailed("the token is not valid yet", code="crypto.not_yet_valid", retry="later") from None
    except jwt.InvalidAlgorithmError:
        raise _bad_signature(f"one of {', '.join(SIGNATURES)}") from None
    except jwt.InvalidSignatureError:
        raise _bad_signature("one made with this secret") from None
    except jwt.InvalidKeyError:
        raise _bad_secret() from None
    except (jwt.PyJWTError, TypeError, ValueError, OverflowError, RecursionError):
        raise _bad_token() from None


toolset.add(
    ToolSpec(
        "verifyjwt",
        "crypto",
        (
            ArgSpec(
                "token_string", ArgType.STRING, description="The token, signed with HS256, HS384 or HS512 and no other."
            ),
            ArgSpec(
                "secret",
                ArgType.STRING,
                min_length=1,
                secret=True,
                description="The secret that the token must have been signed with, read as UTF-8.",
            ),
        ),
        return_type=ArgType.MAP,
        description="Give the claims of a JSON Web Token whose signature and times hold.",
        when_to_use="For claims that can be relied on; crypto.decodejwt shows those of any token.",
        return_help="The claims; exp and nbf hold now, and what the others say is for the caller to judge.",
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
    name = _chosen(algorithm.upper(), SIGNATURES)
    jwt = _pyjwt()
    try:
        return str(jwt.encode(claims_map, secret, algorithm=name))
    except jwt.InvalidKeyError:
        raise _bad_secret() from None
    except TypeError:
        text = "claims_map: expected JSON values, and a text as iss, got others"
        raise ToolFailed(text, code="crypto.bad_claims", retry="model") from None


toolset.add(
    ToolSpec(
        "signjwt",
        "crypto",
        (
            ArgSpec("claims_map", ArgType.MAP, description="The claims; exp and nbf are seconds since 1970-01-01 UTC."),
            ArgSpec(
                "secret",
                ArgType.STRING,
                min_length=1,
                secret=True,
                description="The secret to sign with, read as UTF-8; for HS256 at least 32 bytes.",
            ),
            ArgSpec("algorithm", ArgType.STRING, description="HS256, HS384 or HS512, in any case."),
        ),
        return_type=ArgType.STRING,
        description="Sign claims as a JSON Web Token.",
        when_to_use="For a token that others verify with the same secret; crypto.hmac signs a text that is no token.",
        return_help="The token, three parts with dots between them.",
        examples=(
            Example(({"sub": "user-1"}, SAMPLE_SECRET, "HS256"), error="policy.trust", note="a host has to permit it"),
            Example(
                {"claims_map": {"sub": "user-1"}, "secret": SAMPLE_SECRET, "algorithm": "HS512"}, error="policy.trust"
            ),
        ),
        error_conditions="crypto.bad_algorithm, crypto.bad_claims, crypto.bad_secret, crypto.needs_jwt.",
    ),
    _signed,
    SIGNING,
)


def _chosen(name: str, known: tuple[str, ...]) -> str:
    if name in known:
        return name
    text = f"algorithm: expected one of {', '.join(known)}, got another text"
    raise ToolFailed(text, code="crypto.bad_algorithm", retry="model")


def _pyjwt() -> ModuleType:
    try:
        import jwt
    except ImportError:
        text = "tokens need PyJWT: pip install 'neuroscript-std[jwt]'"
        raise ToolFailed(text, code="crypto.needs_jwt", retry="host") from None
    return jwt


def _exact_claims(claims: dict[str, Any]) -> dict[str, Any]:
    """Return claims as plain values; JSON can hold numbers and texts that no result can."""
    try:
        exact: dict[str, Any] = coerce(claims, ArgType.MAP, mode="strict")
    except CoercionError:
        raise _bad_token() from None
    return exact


def _bad_token() -> ToolFailed:
    text = "token_string: expected a JSON Web Token whose claims are plain values, got another text"
    return ToolFailed(text, code="crypto.bad_token", retry="model")


def _bad_signature(expected: str) -> ToolFailed:
    text = f"token_string: expected a signature that is {expected}, got another"
    return ToolFailed(text, code="crypto.bad_signature", retry="model")


def _bad_secret() -> ToolFailed:
    text = "secret: expected a text that is no PEM, SSH or JSON Web Key, got one"
    return ToolFailed(text, code="crypto.bad_secret", retry="model")
