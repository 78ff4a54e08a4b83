"""The ``crypto`` tools: hashes, HMACs, UUIDs and JSON Web Tokens."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std import tokens
from neuroscript_std.algorithms import require_algorithm

PURE: Final = ToolPolicy(effects=("pure",))
RANDOM: Final = ToolPolicy(effects=("random",))
SIGNING: Final = ToolPolicy(
    capabilities=("secret:read:{secret_name}",),
    effects=("reads", "idempotent"),
    blocking=False,
    sources=(),
    sinks=(),
)
"""An HMAC is made to be sent, and reveals nothing about its key."""

DIGESTS: Final = ("sha256", "sha512", "md5")

toolset = Toolset("crypto", tokens.toolset.tools)


@toolset.tool(
    name="hash",
    policy=PURE,
    when_to_use="Use it for a checksum of a string; for a file, use fs.hash, for a digest with a key, crypto.hmac.",
    examples=(
        Example(("abc", "SHA256"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        Example(("", "md5"), "d41d8cd98f00b204e9800998ecf8427e"),
        Example(("abc", "crc32"), error="crypto.bad_algorithm"),
    ),
)
def digest(input_string: str, algorithm: str) -> str:
    """Compute the hash (digest) of a string with SHA-256, SHA-512 or MD5.

    Args:
        input_string: The string; its UTF-8 bytes are hashed.
        algorithm: sha256, sha512 or md5, case-insensitive; md5 is insecure and only for existing checksums.

    Returns:
        The digest as lowercase hexadecimal digits.

    Raises:
        ToolFailed: crypto.bad_algorithm.
    """
    name = require_algorithm(algorithm.lower(), DIGESTS)
    import hashlib

    return hashlib.new(name, input_string.encode(), usedforsecurity=False).hexdigest()


def _keyed_digest(rt: Runtime, input_string: str, secret_key: str, algorithm: str) -> str:
    name = require_algorithm(algorithm.lower(), DIGESTS)
    from hmac import new

    return new(secret_key.encode(), input_string.encode(), name).hexdigest()


toolset.add(
    ToolSpec(
        "hmac",
        "crypto",
        (
            ArgSpec("input_string", ArgType.STRING, description="The string; its UTF-8 bytes are signed."),
            ArgSpec("secret_key", ArgType.STRING, secret=True, description="The key; its UTF-8 bytes are used."),
            ArgSpec("algorithm", ArgType.STRING, description="sha256, sha512 or md5, case-insensitive."),
        ),
        return_type=ArgType.STRING,
        description="Compute an HMAC (keyed-hash message authentication code) of a message with a key.",
        when_to_use=(
            "Use it if you have the key; if only the host has it, use crypto.hmacwith, without a key, crypto.hash."
        ),
        return_help="The HMAC as lowercase hexadecimal digits.",
        examples=(
            Example(
                ("what do ya want for nothing?", "Jefe", "sha256"),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                note="test case 2 of RFC 4231",
            ),
            Example(("what do ya want for nothing?", "Jefe", "MD5"), "750c783e6ab0b503eaa86e310a5db738"),
            Example(("some text", "a key", "sha-256"), error="crypto.bad_algorithm"),
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
            ArgSpec("data", ArgType.STRING, description="The string; its UTF-8 bytes are signed."),
            ArgSpec(
                "secret_name", ArgType.STRING, min_length=1, description="Name of the secret that the host provides."
            ),
            ArgSpec(
                "algorithm", ArgType.STRING, default="sha256", description="sha256, sha512 or md5, case-insensitive."
            ),
        ),
        return_type=ArgType.STRING,
        description=(
            "Compute an HMAC of a message with a secret that the host stores; the caller names the key but never sees "
            "it."
        ),
        when_to_use="Use it if the caller must not know the key; to pass the key itself, use crypto.hmac.",
        return_help="The HMAC as lowercase hexadecimal digits.",
        examples=(
            Example(("what do ya want for nothing?", "signing")),
            Example({"data": "some text", "secret_name": "signing", "algorithm": "SHA512"}),
            Example(("some text", "nobody's"), error="secret.unknown"),
        ),
        error_conditions="crypto.bad_algorithm; secret.unknown, if the host provides no secret of that name.",
    ),
    _lent_digest,
    SIGNING,
)


@toolset.tool(
    policy=RANDOM,
    when_to_use="Use it for a new, random identifier; for an identifier derived from content, use crypto.hash.",
    examples=(
        Example(()),
        Example({}),
        Example((4,), error="arg.count"),
    ),
)
def uuid(rt: Runtime) -> str:
    """Generate a random UUID, a unique identifier.

    Returns:
        A version 4 UUID, 36 lowercase characters.
    """
    from uuid import UUID

    return str(UUID(int=rt.random.getrandbits(128), version=4))
