"""Volumes are names of a schema: made, listed and dropped; they hold no files."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session, refused


def test_volumes_are_made_listed_and_dropped(session: Session) -> None:
    session.run("CREATE VOLUME Stage COMMENT 'x'")
    session.run("CREATE VOLUME IF NOT EXISTS stage")
    session.run("CREATE VOLUME `a-b=1`")
    assert session.rows("SHOW VOLUMES") == [("shop", "Stage"), ("shop", "a-b=1")]
    assert session.rows("SHOW VOLUMES IN main.shop LIKE 's*'") == [("shop", "Stage")]
    listed = "SELECT volume_name, volume_type FROM information_schema.volumes WHERE volume_schema = 'shop' ORDER BY 1"
    assert session.rows(listed) == [("a-b=1", "MANAGED"), ("stage", "MANAGED")]
    assert refused(session, "DROP SCHEMA shop").condition == "SCHEMA_NOT_EMPTY"
    session.run("DROP VOLUME STAGE")
    session.run("DROP VOLUME IF EXISTS stage")
    assert session.rows("SHOW VOLUMES") == [("shop", "a-b=1")]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("CREATE VOLUME v", "VOLUME_ALREADY_EXISTS"),
        ("CREATE VOLUME nope.v", "SCHEMA_NOT_FOUND"),
        ("CREATE VOLUME samples.tpch.v", "PERMISSION_DENIED"),
        ("CREATE VOLUME `.v`", "INVALID_IDENTIFIER"),
        ("CREATE VOLUME w LOCATION '/x'", "UNSUPPORTED_FEATURE"),
        ("CREATE EXTERNAL VOLUME w LOCATION '/x'", "UNSUPPORTED_FEATURE"),
        ("CREATE OR REPLACE VOLUME w", "UNSUPPORTED_FEATURE"),
        ("DROP VOLUME w", "VOLUME_DOES_NOT_EXIST"),
        ("DROP VOLUME nope.v", "VOLUME_DOES_NOT_EXIST"),
        ("PUT 'x' INTO '/Volumes/main/shop/v/x'", "UNSUPPORTED_FEATURE"),
    ],
)
def test_refusals(session: Session, text: str, condition: str) -> None:
    session.run("CREATE VOLUME v")
    assert refused(session, text).condition == condition
    assert session.rows("SHOW VOLUMES") == [("shop", "v")]
