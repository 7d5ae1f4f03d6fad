{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='customer_id') }}
select order_id, amount, customer_id from {{ ref('stg_orders') }}
