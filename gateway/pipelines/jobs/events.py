"""Events as a warehouse gets them: a few keys have most rows, some events arrive late, some arrive twice."""

from __future__ import annotations

from typing import Any

ROWS = 1_000_000  # at scale 1
_START = "TIMESTAMP'2024-01-01 00:00:00Z'"
_SECONDS = 90 * 86_400
_KINDS = "array('view', 'view', 'view', 'view', 'view', 'view', 'click', 'click', 'cart', 'purchase')"


def events_frame(spark: Any, scale: float, seed: int) -> Any:
    """A DataFrame of `scale` * 1M rows; everything follows from `seed` and the row's number.

    Columns: event_id (equal in duplicates), user_id (rank r has a share of about 1/r: Zipf), kind, happened_at (over 90 days),
    arrived_at (seconds later; 5% up to an hour, 1% up to seven days), amount (of purchases), device (struct), tags (map).
    About 1% of the rows repeat an event among the 1000 before them and arrive later.
    """
    rows = max(1, round(scale * ROWS))
    users = max(10, rows // 20)

    def h(salt: int, of: str = "event") -> str:
        return f"xxhash64({of}, {seed}L, {salt})"

    def unit(salt: int) -> str:
        return f"(pmod({h(salt)}, 1000000007L) / 1000000007.0D)"

    back = f"1L + pmod({h(2, 'id')}, 1000L)"
    frame = spark.range(0, rows).selectExpr(
        "id", f"IF(pmod({h(1, 'id')}, 100) = 0 AND id >= {back}, id - ({back}), id) AS event"
    )
    late = (
        f"CASE WHEN pmod({h(3)}, 100) = 0 THEN 3600L + pmod({h(4)}, 601200L) "
        f"WHEN pmod({h(3)}, 100) < 6 THEN 60L + pmod({h(4)}, 3540L) ELSE pmod({h(4)}, 10L) END"
    )
    happened = f"unix_micros({_START}) + pmod({h(5)}, {_SECONDS * 1_000_000}L)"
    again = f"IF(event < id, 1000000L * (1 + pmod({h(6, 'id')}, 300L)), 0L)"
    return frame.selectExpr(
        f"concat(lpad(hex({h(7)}), 16, '0'), lpad(hex({h(8)}), 16, '0')) AS event_id",
        f"CAST(floor(exp({unit(9)} * ln({users}.0D))) AS BIGINT) AS user_id",
        f"element_at({_KINDS}, CAST(pmod({h(10)}, 10) AS INT) + 1) AS kind",
        f"timestamp_micros({happened}) AS happened_at",
        f"timestamp_micros({happened} + 1000000L * ({late}) + {again}) AS arrived_at",
        f"IF(pmod({h(10)}, 10) = 9, CAST(pmod({h(11)}, 100000L) / 100 AS DECIMAL(10,2)), NULL) AS amount",
        f"named_struct('os', element_at(array('android', 'ios', 'web'), CAST(pmod({h(12)}, 3) AS INT) + 1), "
        f"'version', CAST(pmod({h(13)}, 20) AS INT)) AS device",
        f"IF(pmod({h(14)}, 4) = 0, map('campaign', concat('c', pmod({h(15)}, 50L))), map()) AS tags",
    ).selectExpr("* EXCEPT (tags)", "CAST(tags AS MAP<STRING, STRING>) AS tags")
