"""What links to result rows lead to: a link is read, one verb called, its rows encoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import GatewayError
from gateway.protocol import pages
from gateway.results.bucket import Bucket
from gateway.results.links import BadLinkError, LinkSigner
from gateway.service.api import WholeResults


@dataclass(frozen=True, slots=True)
class Downloads:
    """The files behind links. Thread-safe."""

    service: WholeResults
    signer: LinkSigner
    bucket: Bucket | None = None

    def is_open(self, operation: bytes) -> bool:
        """Whether an operation still has its result."""
        try:
            self.service.owner_of(operation)
        except GatewayError:
            return False
        return True

    def owner(self, link: str) -> str:
        """The name of whom the operation of a link belongs to; "" for what is no link, or is over."""
        try:
            return self.service.owner_of(self.signer.read(link).operation)
        except (BadLinkError, GatewayError):
            return ""

    def answer(self, link: str, leads_on: bool) -> tuple[int, str, Sequence[bytes | memoryview]]:
        """HTTP status, media type or an error's text, and the file in parts; never raises for what a link may be.

        307: the file is elsewhere, under the address in the text; only if it `leads_on`. 403: not a link of this server, or
        over. 404: the operation is closed, or its rows are gone.
        """

        def made() -> tuple[str, Sequence[bytes | memoryview]]:
            file = pages.file(self.service.piece(found.operation, found.start_row, found.rows))
            return file.media, file.parts

        try:
            found = self.signer.read(link)
            if self.bucket is not None and leads_on:
                address = self.bucket.link(found.operation, f"{found.start_row}-{found.rows}", made)
                if address is not None:
                    return 307, address, ()
            return 200, *made()
        except BadLinkError as error:
            return 403, str(error), ()
        except GatewayError as error:
            return 404, error.text(), ()
