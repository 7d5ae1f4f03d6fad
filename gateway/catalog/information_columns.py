"""Names, types and nullability of the columns of each relation of the information schema, as Databricks documents them."""

from __future__ import annotations

from gateway.sqltypes import INT, STRING, TIMESTAMP, StructField, StructType, struct

_TABLE = "table_catalog! table_schema! table_name!"
_CONSTRAINT = "constraint_catalog! constraint_schema! constraint_name!"
_MADE = "created:timestamp created_by last_altered:timestamp last_altered_by"
_TAG = "tag_name! tag_value!"
_GRANT = "privilege_type! is_grantable! inherited_from!"
_SPECIFIC = "specific_catalog! specific_schema! specific_name!"
_ROUTINE = "routine_catalog! routine_schema! routine_name!"
_VOLUME = "volume_catalog! volume_schema! volume_name!"
_MEASURES = (
    "character_maximum_length:int character_octet_length numeric_precision:int numeric_precision_radix:int numeric_scale:int "
    "datetime_precision:int interval_type interval_precision:int maximum_cardinality:int"
)

# One text per relation: names in order, "!" for NOT NULL, ":" for types other than STRING. When something was made and by whom
# is nullable here: nobody keeps it of views and schemas.
_TEXTS: dict[str, str] = {
    "catalog_privileges": f"grantor! grantee! catalog_name! {_GRANT}",
    "catalog_tags": f"catalog_name! {_TAG}",
    "catalogs": f"catalog_name! catalog_owner! comment {_MADE}",
    "check_constraints": f"{_CONSTRAINT} check_clause! sql_path comment",
    "column_masks": f"{_TABLE} column_name! mask_name! using_columns",
    "column_tags": f"catalog_name! schema_name! table_name! column_name! {_TAG}",
    "columns": (
        f"{_TABLE} column_name! ordinal_position:int! column_default is_nullable! full_data_type! data_type! {_MEASURES} "
        "is_identity! identity_generation identity_start identity_increment identity_maximum identity_minimum identity_cycle "
        "is_generated! generation_expression is_system_time_period_start! is_system_time_period_end! "
        "system_time_period_timestamp_generation is_updatable! partition_index:int comment"
    ),
    "constraint_column_usage": f"{_TABLE} column_name! {_CONSTRAINT}",
    "constraint_table_usage": f"{_TABLE} {_CONSTRAINT}",
    "information_schema_catalog_name": "catalog_name!",
    "key_column_usage": (
        f"{_CONSTRAINT} {_TABLE} column_name! ordinal_position:int! position_in_unique_constraint:int"
    ),
    "parameters": (
        f"{_SPECIFIC} ordinal_position:int! parameter_mode! is_result! as_locator! parameter_name data_type! "
        f"full_data_type! {_MEASURES} parameter_default comment"
    ),
    "referential_constraints": (
        f"{_CONSTRAINT} unique_constraint_catalog! unique_constraint_schema! unique_constraint_name! match_option! "
        "update_rule! delete_rule!"
    ),
    "routine_columns": (
        f"{_SPECIFIC} {_ROUTINE} column_name! ordinal_position:int! data_type! full_data_type! {_MEASURES} comment"
    ),
    "routine_privileges": f"grantor! grantee! {_SPECIFIC} {_ROUTINE} {_GRANT}",
    "routines": (
        f"{_SPECIFIC} {_ROUTINE} routine_owner! routine_type! data_type full_data_type {_MEASURES} routine_body! "
        "routine_definition external_name external_language parameter_style! is_deterministic sql_data_access! "
        f"is_null_call! security_type! sql_path comment {_MADE}"
    ),
    "row_filters": f"{_TABLE} filter_name! target_columns",
    "schema_privileges": f"grantor! grantee! catalog_name! schema_name! {_GRANT}",
    "schema_tags": f"catalog_name! schema_name! {_TAG}",
    "schemata": f"catalog_name! schema_name! schema_owner! comment {_MADE}",
    "table_constraints": f"{_CONSTRAINT} {_TABLE} constraint_type! is_deferrable! initially_deferred! enforced! comment",
    "table_privileges": f"grantor! grantee! {_TABLE} {_GRANT}",
    "table_tags": f"catalog_name! schema_name! table_name! {_TAG}",
    "tables": (
        f"{_TABLE} table_type! is_insertable_into! commit_action! table_owner! comment {_MADE} data_source_format! "
        "storage_path storage_sub_directory"
    ),
    "views": f"{_TABLE} view_definition check_option! is_updatable! is_insertable_into! sql_path is_materialized!",
    "volume_privileges": f"grantor! grantee! {_VOLUME} {_GRANT}",
    "volume_tags": f"catalog_name! schema_name! volume_name! {_TAG}",
    "volumes": f"{_VOLUME} volume_type! volume_owner! comment storage_location! {_MADE}",
}
_TYPES = {"": STRING, "int": INT, "timestamp": TIMESTAMP}


def _field(text: str) -> StructField:
    name, _, kind = text.rstrip("!").partition(":")
    return StructField(name, _TYPES[kind], not text.endswith("!"))


RELATIONS: dict[str, StructType] = {name: struct(*map(_field, text.split())) for name, text in _TEXTS.items()}
