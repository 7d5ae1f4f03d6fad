"""What the console tells beyond its lists: plan, tables, parameters, a place in the queue; files and pipelines."""

from __future__ import annotations

import json
import time

import pytest

from tests.console.test_editor import write
from tests.live.browser import Page
from tests.live.console import LONG, behind, end_all, record_pipelines, run
from tests.live.gateway import Server, connect_to
from tests.live.processes import eventually

pytestmark = [pytest.mark.browser]

SLOW = """SELECT a.k, count(*) AS of_long, sum(sqrt(a.id * b.id)) FROM main.default.facts a
JOIN main.default.facts b ON a.k = b.k AND b.id + 77777 < 80776 GROUP BY a.k"""


@pytest.fixture(scope="module")
def facts(open_server: Server) -> None:
    run(
        open_server,
        "CREATE TABLE IF NOT EXISTS main.default.facts PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(100000)",
    )


def open_statement(page: Page, name: str) -> None:
    """Open the newest statement whose text has this in it."""
    page.evaluate("location.hash = '#/statements'")
    page.click("input[name=text]")
    page.evaluate("document.querySelector('input[name=text]').select()")
    page.type(name)
    page.until(f"[...document.querySelectorAll('.c-text a')].some(a => a.textContent.includes({json.dumps(name)}))")
    page.evaluate(
        f"[...document.querySelectorAll('.c-text a')].find(a => a.textContent.includes({json.dumps(name)})).click()"
    )
    page.until("[...document.querySelectorAll('dt')].some(d => d.textContent === 'Rows given')")


@pytest.mark.usefixtures("facts")
def test_the_plan_that_was_run_is_a_picture_with_its_figures(page: Page, open_server: Server) -> None:
    run(open_server, SLOW)
    open_statement(page, "of_long")
    page.until("document.querySelectorAll('.plan .operator').length > 3")
    told = page.evaluate(
        "[...document.querySelectorAll('.plan .operator')].map(o => o.getAttribute('aria-label')).join('; ')"
    )
    assert "HashJoin mode=" in told and "rows" in told and "ms" in told
    assert "77777" not in page.evaluate("document.querySelector('.plan').outerHTML")  # a literal
    page.evaluate("[...document.querySelectorAll('.plan .operator')].find(o => /HashJoin/.test(o.outerHTML)).focus()")
    page.until("/memory [\\d.]+ [KM]iB/.test(document.querySelector('.plan-detail').innerText)")
    page.shows("3 of 3")  # files of a table, in how it was read


@pytest.fixture(scope="module")
def groups(open_server: Server) -> None:
    """A table of one file with three groups of rows."""
    run(
        open_server,
        "CREATE TABLE IF NOT EXISTS main.default.groups AS SELECT id, id % 7 AS k FROM range(300000) ORDER BY id",
    )


SPARED = "[...document.querySelectorAll('.plan .spared')].map(o => o.textContent).filter(Boolean).join('; ')"


@pytest.mark.usefixtures("facts", "groups")
def test_what_was_pruned_stands_in_the_picture(page: Page, open_server: Server) -> None:
    write(page, "SELECT count(*), sum(id * 1.5) FROM main.default.groups WHERE id BETWEEN 100 AND 900")
    page.click("button", "Analyze")
    page.until(f"{SPARED}.includes('2 of 3 row groups pruned')")
    page.shows("files 1 of 1")
    page.click(".plan-slowest button")  # leads to an operator, which is told in full
    page.until("document.activeElement.classList.contains('operator')")
    page.until("document.querySelector('.plan-detail').innerText.includes(' ms')")
    write(page, "SELECT sum(id) FROM main.default.facts WHERE k = 1")
    page.click("button", "Explain")
    page.shows("files 1 of 3")
    run(
        open_server,
        "SELECT count(*) AS of_pruned FROM main.default.groups a JOIN range(20000) b JOIN range(30) c "
        "ON (a.id * b.id + c.id) % 7 = 3 WHERE a.id < 300",  # plans of what takes long are kept
    )
    open_statement(page, "of_pruned")
    page.until(f"{SPARED}.includes('2 of 3 row groups pruned')")  # as the history keeps it


def test_the_place_of_an_error_is_marked_when_its_message_is_gone(page: Page, open_server: Server) -> None:
    with connect_to(open_server) as connection, connection.cursor() as cursor, pytest.raises(Exception, match="wrong"):
        cursor.execute("SELECT 'a secret', \n  wrong_name FROM samples.tpch.nation -- of_place")
    open_statement(page, "wrong_name")
    page.shows("The history keeps messages with --log-sql only.")
    page.shows("line 2, position 3")
    assert page.evaluate("document.querySelector('pre.sql .hl-error').innerText") == "wrong_name"


@pytest.mark.usefixtures("facts")
def test_tables_lead_to_the_catalog_and_its_files(page: Page, open_server: Server) -> None:
    run(
        open_server,
        "CREATE TABLE IF NOT EXISTS main.default.`fa<b>cts` AS SELECT 1 AS x",
        "INSERT INTO main.default.`fa<b>cts` SELECT id AS written_one FROM main.default.facts LIMIT 5",
    )
    open_statement(page, "written_one")
    links = "[...document.querySelectorAll('.links a')].map(a => a.innerText)"
    assert page.evaluate(links) == ["main.default.fa<b>cts", "main.default.facts"]
    page.shows("Files written")
    page.click(".links a", "main.default.facts")
    page.until("document.querySelector('h1')?.innerText === 'main.default.facts'")
    page.click("button", "Files")
    page.shows("3 files")
    page.shows("k=2")
    page.shows("33,333")
    page.click("button", "Partitions")
    page.until("document.querySelectorAll('.tab-body tbody tr').length === 3")


def test_parameters_are_told_without_their_values(page: Page, open_server: Server) -> None:
    with connect_to(open_server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT :named AS with_parameters", {"named": "a secret value"})
        cursor.fetchall()
    open_statement(page, "with_parameters")
    page.until("document.querySelector('section[aria-label=Parameters]')")
    told = page.evaluate("document.querySelector('section[aria-label=Parameters]').innerText")
    assert "named" in told and "STRING" in told and "secret" not in told and "--log-sql" in told


def test_fetching_is_the_last_bar(page: Page, open_server: Server) -> None:
    with connect_to(open_server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, repeat('x', 100) AS fetched_long FROM range(300000)")
        assert len(cursor.fetchmany(10)) == 10
        time.sleep(0.3)  # a client that takes its time
        assert len(cursor.fetchall()) == 299_990

    def is_told() -> bool:  # it becomes known a moment after the end
        open_statement(page, "fetched_long")
        return bool(page.evaluate("document.querySelector('.wide-bar .fetch')?.getBoundingClientRect().width > 0"))

    eventually(is_told, 30)
    assert "fetched" in page.evaluate("document.querySelector('.wide-bar .phases').getAttribute('aria-label')")
    page.until("[...document.querySelectorAll('dt')].some(d => d.textContent === 'Fetching')")


def test_who_waits_sees_its_place_in_the_queue(page: Page, open_server: Server) -> None:
    ends = [behind(open_server, LONG + f" -- {i}") for i in range(5)]  # two slots, and the lane of short ones
    page.until("document.querySelectorAll('.is-running').length === 5")
    page.until("document.querySelector('.is-running .state.queued')")
    page.evaluate(
        "document.querySelector('.state.queued').closest('[role=row], .is-running').querySelector('a').click()"
    )
    page.shows("in the queue")
    page.evaluate("location.hash = '#/statements'")
    end_all(page)
    for end in ends:
        end()


def test_no_pipeline_is_said(page: Page) -> None:
    page.evaluate("location.hash = '#/pipelines'")
    page.until("document.querySelector('.view-pipelines h1')")
    page.until("/No pipeline has run|Runs of/.test(document.body.innerText)")


def test_pipelines_show_their_graph_runs_and_expectations(page: Page, open_server: Server) -> None:
    hostile = "<img src=x onerror=complaints.push('run')>"
    record_pipelines(open_server, "sh'op", hostile)
    page.key("4", alt=True)
    page.shows("Runs of other")
    page.shows("has not recorded its graph")
    page.click(".names a", "sh'op")
    page.until("document.querySelectorAll('.graph .box').length === 4")
    assert page.evaluate("document.querySelectorAll('.graph .edge').length") == 4
    page.shows("amount > 0")
    page.shows("9.00 s")
    page.shows(hostile)
    page.click("td a", "20260101")
    page.until("[...document.querySelectorAll('section[aria-label=Run] code')].some(c => c.innerText === '20260101')")
    page.until("document.querySelector('section[aria-label=Run] .state.failed')")
    page.evaluate("document.querySelector('.graph a').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    page.until("location.hash.startsWith('#/catalog/main/shop/')")


def test_a_run_without_a_state_hides_no_others(page: Page, open_server: Server) -> None:
    record_pipelines(open_server, "stateless", "told")
    assert run(open_server, "UPDATE pipelines.runs SET state = NULL WHERE pipeline = 'stateless'") == []
    page.key("4", alt=True)
    page.click(".names a", "stateless")
    page.shows("Runs of stateless")
    page.shows("unknown")
