"""Which files are known to be the first under their names."""

from __future__ import annotations

from gateway.delta.replaced import Standing

UNIQUE = "/t/part-00000-0b6e5a3c-9f0e-4a53-8d1b-2f6a4c1d7e90-c000.snappy.parquet"


def test_another_file_of_the_name_is_none() -> None:
    standing = Standing()
    assert standing.lasts({"/t/a.parquet": (1, 5), "/t/b.parquet": (2, 5)})
    assert standing.lasts({"/t/b.parquet": (2, 5)})
    assert not standing.lasts({"/t/a.parquet": (1, 5), "/t/b.parquet": (2, 6)})
    assert not standing.lasts({"/t/b.parquet": (2, 6)}), "what is kept of the first one may be kept still"
    assert standing.lasts({"/t/b.parquet": (2, 5)})


def test_names_that_nobody_uses_again_are_not_kept() -> None:
    standing = Standing(most=0)
    assert standing.lasts({UNIQUE: (1, 5)})
    assert standing.lasts({UNIQUE: (1, 6)})
    assert not standing.lasts({f"{UNIQUE}/a.parquet": (1, 5)}), "the folder's name is not the file's"


def test_of_more_names_than_are_kept_nothing_is_known() -> None:
    standing = Standing(most=1)
    assert standing.lasts({"/t/a.parquet": (1, 5)})
    assert not standing.lasts({"/t/b.parquet": (1, 5)})
    assert standing.lasts({"/t/a.parquet": (1, 5)})
