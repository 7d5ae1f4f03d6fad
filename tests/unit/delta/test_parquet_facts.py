"""Footers that can be read by nobody here are told before a reader of pages ends the process."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from gateway.delta.parquet_facts import check_facts


class _Keys(pe.KmsClient):  # type: ignore[misc] # pyarrow tells no types
    """Keys that are wrapped in nothing."""

    def __init__(self, configuration: pe.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def test_encrypted_columns_below_a_readable_footer_are_told(tmp_path: Path) -> None:
    table, path = pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "part.parquet"
    how = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["a"]}, plaintext_footer=True)
    keys = pe.CryptoFactory(_Keys).file_encryption_properties(pe.KmsConnectionConfig(), how)
    with pq.ParquetWriter(path, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)
    with pa.OSFile(str(path)) as opened, pytest.raises(pa.ArrowInvalid, match="encrypted"):
        check_facts(opened, path.stat().st_size)


def test_columns_in_the_clear_are_read(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": [["x"], []]}), path, write_page_index=True)
    with pa.OSFile(str(path)) as opened:
        check_facts(opened, path.stat().st_size)
