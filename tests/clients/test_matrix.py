"""Every client that is here does all the cases; `make test-clients` brings those that the tests' own packages do not have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.matrix.cases import CASES
from tests.clients.matrix.clients import CLIENTS, Client, MissingError, found, outcome
from tests.clients.matrix.report import HEAD, PAGE, door, lines, matrix


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with door(tmp_path_factory.mktemp("matrix")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_does_all_cases(client: Client, request: pytest.FixtureRequest) -> None:
    try:
        found(client)
    except MissingError as reason:
        pytest.skip(str(reason))
    seen = outcome(client, request.getfixturevalue("places")).cases
    wrong = {name: text for name, text in seen.items() if text != "yes" and not text.startswith("- ")}
    assert not wrong


def test_the_page_has_the_matrix_of_these_clients_and_cases() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = lines(page)
    assert list(rows) == [client.name for client in CLIENTS]
    assert matrix(rows) in page, "run: make test-clients"
    for client in CLIENTS:
        cells = [cell.strip() for cell in rows[client.name].strip("| ").split(" | ")]
        assert len(cells) == len(HEAD) and cells[1], f"{client.name} was never tried"
        wanted = ["-" if case.name in client.without else "yes" for case in CASES]
        assert cells[3:] == wanted


def test_a_client_that_sees_something_else_is_found_out() -> None:
    judged = {case.name: case.judge for case in CASES}
    assert judged["connect"]([["2"]])
    assert judged["types"](["false", *("" for _ in range(17))]).startswith("c_boolean: false")
    assert judged["error"]({"text": "[TABLE_OR_VIEW_NOT_FOUND] …", "state": None})
    assert judged["cancel"]({"ended": "rows", "seconds": 0.1, "after": "1"})
    assert judged["metadata"]({"tables": ["shapes"], "columns": ["name", "id"]})
