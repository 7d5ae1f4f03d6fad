"""Arrays, maps, structs, lambdas, generators, dates and casts against Spark's recorded answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.sql.functions.probe_runner import Probes, judge, probes

_COLLECTIONS = """
array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
array_union arrays_overlap arrays_zip cardinality element_at explode explode_outer exists filter flatten
forall get inline inline_outer map map_concat map_contains_key map_entries map_filter map_from_arrays
map_from_entries map_keys map_values named_struct posexplode posexplode_outer sequence size slice sort_array
stack str_to_map struct transform transform_keys transform_values try_element_at zip_with
"""
_DATETIMES = """
add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp
hour last_day make_date make_dt_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval
minute month monthname months_between next_day quarter second timestamp_micros timestamp_millis
timestamp_seconds to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp
trunc try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_timestamp unix_date
unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
"""
_CASTS = """
bigint binary boolean cast date decimal double float int smallint string timestamp tinyint
"""

#: Depends on the moment at which it runs.
UNSTEADY = {"SELECT unix_timestamp()"}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probes]:
    folder: Path = tmp_path_factory.mktemp("probes")
    yield Probes(folder)


@pytest.mark.parametrize("function", [*_COLLECTIONS.split(), *_DATETIMES.split(), *_CASTS.split()])
def test_answers_are_sparks_or_refused(runner: Probes, function: str) -> None:
    bad, same = [], 0
    for name, statement in probes(function):
        if not statement.get("score") or statement["sql"] in UNSTEADY:
            continue
        found = judge(name, statement, runner.run(statement["sql"]))
        same += found.kind == "same"
        if found.kind in ("wrong", "false_ok", "error", "name"):
            bad.append(f"{found.kind}: {statement['sql']}: {found.detail}")
    assert not bad, "\n".join(bad)
    assert same, "no probe of this function is answered"
