"""What links to result rows lead to: a link is read, one verb called, its rows encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import GatewayError
from gateway.protocol import pages
from gateway.results.links import BadLinkError, LinkSigner
from gateway.service.api import WholeResults


@dataclass(frozen=True, slots=True)
class Downloads:
    """The files behind links. Thread-safe."""

    service: WholeResults
    signer: LinkSigner

    def owner(self, link: str) -> str:
        """The name of whom the operation of a link belongs to; "" for what is no link, or is over."""
        try:
            return self.service.owner_of(self.signer.read(link).operation)
        except (BadLinkError, GatewayError):
            return ""

    def answer(self, link: str) -> tuple[int, str, Sequence[bytes | memoryview]]:
        """HTTP status, media type or an error's text, and the file in parts; never raises for what a link may be.

        403: not a link of this server, or over. 404: the operation is closed, or its rows are gone.
        """
        try:
            found = self.signer.read(link)
            file = pages.file(self.service.piece(found.operation, found.start_row, found.rows))
            return 200, file.media, file.parts
        except BadLinkError as error:
            return 403, str(error), ()
        except GatewayError as error:
            return 404, error.text(), ()
