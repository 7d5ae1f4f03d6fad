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

    def answer(self, link: str) -> tuple[int, str, Sequence[bytes | memoryview], str]:
        """HTTP status, media type or an error's text, the file in parts, its owner's name; never raises.

        403: not a link of this server, or over. 404: the operation is closed, or its rows are gone.
        """
        try:
            found = self.signer.read(link)
            page = self.service.piece(found.operation, found.start_row, found.rows)
            file = pages.file(page)
            return 200, file.media, file.parts, page.owner
        except BadLinkError as error:
            return 403, str(error), (), ""
        except GatewayError as error:
            return 404, error.text(), (), ""
