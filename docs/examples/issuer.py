"""An issuer of access tokens on this machine, to try out a server: everyone gets every token. Never use it for more."""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

KEY = ec.generate_private_key(ec.SECP256R1())


class Issuer(BaseHTTPRequestHandler):
    """Serves its metadata, its public key, and tokens for ``/token?audience=URL&scope=SCOPES&sub=USER``."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        match parts.path:
            case "/.well-known/oauth-authorization-server":
                self.answer({"issuer": url, "jwks_uri": f"{url}/keys"})
            case "/keys":
                public = ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
                self.answer({"keys": [{**public, "kid": "1", "alg": "ES256", "use": "sig"}]})
            case "/token":
                asked = dict(parse_qsl(parts.query))
                claims = {
                    "iss": url,
                    "sub": asked.get("sub", "ada"),
                    "aud": asked["audience"],
                    "scope": asked.get("scope", ""),
                    "exp": int(time.time()) + 600,
                }
                head = {"kid": "1", "typ": "at+jwt"}
                self.answer({"access_token": jwt.encode(claims, KEY, algorithm="ES256", headers=head)})
            case _:
                self.send_error(404)

    def answer(self, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because the URLs would be in the log."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0), Issuer) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
