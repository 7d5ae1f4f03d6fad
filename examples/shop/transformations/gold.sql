-- Gold: computed anew by each run.
CREATE MATERIALIZED VIEW gold_revenue_by_country
COMMENT 'orders and revenue of each country'
TBLPROPERTIES (
  'gateway.expect.not_negative' = 'revenue >= 0',
  'gateway.expect.not_negative.action' = 'fail'
)
AS SELECT coalesce(c.country, 'unknown') AS country, COUNT(*) AS orders, SUM(o.amount) AS revenue
FROM silver_orders o LEFT JOIN bronze_customers c ON o.customer_id = c.customer_id
GROUP BY coalesce(c.country, 'unknown');

CREATE MATERIALIZED VIEW gold_daily
COMMENT 'orders and revenue of each day and channel'
AS SELECT ordered_on, channel, COUNT(*) AS orders, SUM(amount) AS revenue
FROM silver_orders
GROUP BY ordered_on, channel;
