"""Who calls: the headers of a request become an identity, or a refusal."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.errors import GatewayError


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller; `proof` stands for the token behind it, which may be taken away.

    `ends`, in seconds since the epoch, is when a token that was given for a while is over.
    """

    name: str
    proof: bytes = field(default=b"", repr=False, compare=False)
    ends: float = field(default=math.inf, compare=False)


class AuthenticationError(GatewayError):
    """The credentials are missing or wrong; the text never tells which, nor what was expected."""

    fault = "client"

    def __init__(self, mechanism: str, message: str) -> None:
        super().__init__("UNAUTHENTICATED", message)
        self.mechanism = mechanism  # none, basic, bearer or other: for counting, not for the client


class Authenticator(Protocol):
    """One way to tell who calls."""

    def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """The caller, from request headers with lower-case names. Quick. Raises AuthenticationError."""

    def proofs(self, name: str) -> Collection[bytes]:
        """What opens for a name now: who was let in before with another `Identity.proof` is so no longer."""
