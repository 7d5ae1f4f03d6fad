{% snapshot customers_check %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['name','city']) }}
select * from {{ ref('customers') }}
{% endsnapshot %}
{% snapshot orders_ts %}
{{ config(target_schema='shop', unique_key='id', strategy='timestamp', updated_at='ordered_at') }}
select * from {{ ref('orders') }}
{% endsnapshot %}
