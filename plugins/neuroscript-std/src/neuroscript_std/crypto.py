"""Digests, keyed digests and random ids; with them, the tools on tokens.

Source: upstream ``pkg/tool/crypto``.
"""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std import tokens
from neuroscript_std.algorithms import chosen

PURE: Final = ToolPolicy(effects=("pure",))
RANDOM: Final = ToolPolicy(effects=("random",))

DIGESTS: Final = ("sha256", "sha512", "md5")

toolset = Toolset("crypto", tokens.toolset.tools)


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
    name = chosen(algorithm.lower(), DIGESTS)
    import hashlib

    return hashlib.new(name, input_string.encode(), usedforsecurity=False).hexdigest()


def _keyed_digest(rt: Runtime, input_string: str, secret_key: str, algorithm: str) -> str:
    name = chosen(algorithm.lower(), DIGESTS)
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


def _lent_digest(rt: Runtime, data: str, secret_name: str, algorithm: str) -> str:
    return _keyed_digest(rt, data, rt.secret(secret_name), algorithm)


toolset.add(
    ToolSpec(
        "hmacwith",
        "crypto",
        (
            ArgSpec("data", ArgType.STRING, description="The text, which is read as UTF-8."),
            ArgSpec(
                "secret_name", ArgType.STRING, min_length=1, description="What the host calls the key that it lends."
            ),
            ArgSpec("algorithm", ArgType.STRING, default="sha256", description="sha256, sha512 or md5, in any case."),
        ),
        return_type=ArgType.STRING,
        description="Give the digest of a text under a key that the host lends and nobody sees.",
        when_to_use="For proof with a key that the caller must not know; crypto.hmac takes the key itself.",
        return_help="The HMAC in hexadecimal digits, in lower case.",
        examples=(
            Example(("what do ya want for nothing?", "signing")),
            Example({"data": "a text", "secret_name": "signing", "algorithm": "SHA512"}),
            Example(("a text", "nobody's"), error="secret.unknown"),
        ),
        error_conditions="crypto.bad_algorithm; secret.unknown, where the host lends none of that name.",
    ),
    _lent_digest,
    ToolPolicy(capabilities=("secret:read:{secret_name}",), effects=("reads", "idempotent"), blocking=False),
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
def uuid(rt: Runtime) -> str:
    """Give a new random id.

    Returns:
        A UUID of version 4, 36 characters in lower case.
    """
    from uuid import UUID

    return str(UUID(int=rt.random.getrandbits(128), version=4))
