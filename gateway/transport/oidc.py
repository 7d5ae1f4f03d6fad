"""OAuth for machines: where its endpoints are, and access tokens for a client id and secret (grant `client_credentials`).

The id is the name of a token's holder, or `token`, and the secret the token; they come as HTTP Basic or as fields of the form.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote_plus

from gateway.auth.authenticators import basic_credentials, scheme_of
from gateway.auth.base import AuthenticationError
from gateway.auth.issued import LIFETIME_SECONDS, IssuedTokens

DISCOVERY = "/oidc/.well-known/oauth-authorization-server"
_OPENID = "/oidc/.well-known/openid-configuration"  # where databricks-sql-go asks
_HOST = "/.well-known/databricks-config"  # where databricks-sdk asks first
TOKEN = "/oidc/v1/token"
_OLD_TOKEN = "/oidc/oauth2/v2.0/token"  # to which Databricks JDBC 2 posts, without asking
FORM_LIMIT = 16 * 1024
_SCOPE = "all-apis"


class GrantError(Exception):
    """A refusal in OAuth's words; `cause` is set where the credentials are at fault."""

    def __init__(self, status: int, error: str, text: str, cause: AuthenticationError | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.body = json.dumps({"error": error, "error_description": text}).encode()
        self.cause = cause


def issuer_of(origin: str) -> str:
    """What a server calls itself in OAuth."""
    return f"{origin}/oidc"


def discovery(origin: str) -> bytes:
    """The endpoints of a server that its client calls `origin` (``https://host:port``)."""
    return json.dumps(
        {
            "issuer": issuer_of(origin),
            "authorization_endpoint": f"{origin}/oidc/v1/authorize",
            "token_endpoint": origin + TOKEN,
            "grant_types_supported": ["client_credentials"],
            "response_types_supported": ["token"],
            "scopes_supported": [_SCOPE],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
    ).encode()


def host_metadata(origin: str) -> bytes:
    """Where a server that its client calls `origin` has the pages of OAuth."""
    return json.dumps({"oidc_endpoint": issuer_of(origin)}).encode()


PAGES: Mapping[str, Callable[[str], bytes]] = {DISCOVERY: discovery, _OPENID: discovery, _HOST: host_metadata}
PATHS = frozenset({*PAGES, TOKEN, _OLD_TOKEN})


def grant(tokens: IssuedTokens, headers: Mapping[str, str], form: bytes, origin: str) -> tuple[str, bytes]:
    """Who asks for a token, and the answer. Raises GrantError."""
    try:
        pairs = parse_qsl(form.decode(), keep_blank_values=True, max_num_fields=20)
    except (UnicodeDecodeError, ValueError) as error:
        raise GrantError(400, "invalid_request", "The form is malformed.") from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise GrantError(400, "invalid_request", "The form names a field twice.")
    kind = fields.get("grant_type", "")
    if kind != "client_credentials":
        raise GrantError(400, "unsupported_grant_type", "The only grant here is client_credentials.")
    try:
        token = tokens.issue({"authorization": _basic(headers, fields)}, issuer_of(origin))
    except AuthenticationError as error:
        raise GrantError(401, "invalid_client", error.message, error) from error
    answer = {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS, "scope": _SCOPE}
    name = tokens.authenticate({"authorization": f"Bearer {token}"}).name
    return name, json.dumps(answer).encode()


def _basic(headers: Mapping[str, str], fields: Mapping[str, str]) -> str:
    """Client id and secret as HTTP Basic of a token's holder; in a header, OAuth has both encoded like fields of a form."""
    if scheme_of(headers) == "basic":
        if "client_secret" in fields:  # RFC 6749, 2.3
            raise GrantError(
                400, "invalid_request", "The client's secret comes in a header or in the form, not in both."
            )
        user, secret = map(unquote_plus, basic_credentials(headers["authorization"]) or ("", ""))
    else:
        user, secret = fields.get("client_id", ""), fields.get("client_secret", "")
    if not user or not secret:
        raise GrantError(401, "invalid_client", "Client id and secret are required.")
    return "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()
