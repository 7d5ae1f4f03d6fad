{{ config(materialized='incremental', incremental_strategy='replace_where', incremental_predicates="order_id >= 11") }}
select order_id, amount from {{ ref('stg_orders') }} {% if is_incremental() %} where order_id >= 11 {% endif %}
