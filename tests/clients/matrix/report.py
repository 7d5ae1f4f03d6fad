"""``python -m tests.clients.matrix.report``: every client that is here does the cases, and docs/clients.md gets its matrix.

The line of a client that is not here stays as it was, and the reason is printed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.clients.matrix.cases import CASES, PREPARED
from tests.clients.matrix.clients import CLIENTS, ROOT, Client, MissingError, Outcome, outcome
from tests.live.doors import make_certificates
from tests.live.gateway import HTTP_PATH, connect_to, start_server

PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- The matrix: make test-clients -->", "<!-- End of the matrix -->"
HEAD = ("client", "version", "door", *(case.name for case in CASES))


@contextmanager
def door(folder: Path) -> Iterator[dict[str, str]]:
    """A gateway with all its doors, and how clients find them."""
    certificates = make_certificates(folder / "tls")
    server = start_server(folder / "gateway", "--tcp-port", "0", "--tls-port", "0", *certificates.flags)
    try:
        connection = connect_to(server)
        with connection.cursor() as cursor:
            for statement in PREPARED:
                cursor.execute(statement)
        connection.close()
        places = {"http": server.url, "https": str(server.https), "tcp": str(server.tcp)}
        yield {**places, "path": HTTP_PATH, "ca": str(certificates.authority)}
    finally:
        server.stop()


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def row(client: Client, found: Outcome) -> str:
    """The line of a client."""
    seen = (found.cases[case.name] for case in CASES)
    return _line((client.name, found.version, client.door, *(text if text == "yes" else "-" for text in seen)))


def lines(page: str) -> dict[str, str]:
    """The lines of the matrix in a page, by client."""
    table = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in table if line.startswith("| ")}


def matrix(rows: Mapping[str, str]) -> str:
    """The matrix, and why clients have no way of their own for some cases."""
    table = [_line(HEAD), _line(("---",) * len(HEAD))]
    table += [rows.get(client.name, _line((client.name, "", client.door, *("",) * len(CASES)))) for client in CLIENTS]
    reasons = [
        f"{client.name} {' and '.join(f'{why} ({case})' for case, why in client.without.items())}"
        for client in CLIENTS
        if client.without
    ]
    return "\n".join([BEGIN, "", *table, "", f"No way of its own: {'; '.join(reasons)}.", "", END])


def main() -> int:
    """Exit code 1 if a client could not do a case."""
    text = PAGE.read_text(encoding="utf-8")
    rows, wrong = lines(text), 0
    with tempfile.TemporaryDirectory() as folder, door(Path(folder)) as places:
        for client in CLIENTS:
            try:
                found = outcome(client, places)
            except MissingError as reason:
                print(f"{client.name}: not tried: {reason}")
                continue
            failed = {name: text for name, text in found.cases.items() if text != "yes" and not text.startswith("- ")}
            for name, why in failed.items():
                print(f"{client.name}: {name}: {why}")
            wrong += len(failed)
            if not failed:
                rows[client.name] = row(client, found)
                print(f"{client.name} {found.version}: yes")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + matrix(rows) + rest.partition(END)[2], encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
