-- Silver: orders that can be used, and beside them those that cannot.
CREATE TEMPORARY VIEW checked_orders
AS SELECT *, (customer_id IS NOT NULL AND quantity > 0 AND unit_price >= 0) IS TRUE AS is_good
FROM STREAM(bronze_orders);

CREATE STREAMING TABLE silver_orders
COMMENT 'orders with a customer, a quantity and a price'
TBLPROPERTIES (
  'gateway.expect.has_id' = 'order_id IS NOT NULL',
  'gateway.expect.has_id.action' = 'fail',
  'gateway.expect.small' = 'quantity <= 10',
  'gateway.expect.recent' = 'ordered_on >= DATE''2026-01-02''',
  'gateway.expect.recent.action' = 'count'
)
AS SELECT order_id, customer_id, CAST(ordered_at AS DATE) AS ordered_on, channel, quantity * unit_price AS amount, quantity
FROM STREAM(checked_orders)
WHERE is_good;

CREATE STREAMING TABLE quarantine_orders
COMMENT 'orders that lack something'
AS SELECT order_id, customer_id, ordered_at, quantity, unit_price, channel
FROM STREAM(checked_orders)
WHERE NOT is_good;
