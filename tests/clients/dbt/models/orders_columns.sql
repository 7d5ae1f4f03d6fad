{{ config(materialized='incremental', unique_key='order_id', on_schema_change='append_new_columns') }}
select order_id, amount {% if is_incremental() %}, customer_id {% endif %} from {{ ref('stg_orders') }}
