{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='order_id') }}
select order_id, amount, customer_id from {{ ref('stg_orders') }}
