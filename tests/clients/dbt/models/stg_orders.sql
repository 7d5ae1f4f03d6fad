{{ config(materialized='view') }}
select id as order_id, customer_id, cast(amount as decimal(10,2)) as amount, ordered_at from {{ ref('orders') }}
