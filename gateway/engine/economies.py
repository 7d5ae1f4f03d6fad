"""How a query is run again that did not fit into memory, or that the engine could not plan: each time more sparingly."""

from __future__ import annotations

from dataclasses import dataclass, replace

BATCH_ROWS = 16_384
_FEW_ROWS = 64
_MERGED_BYTES = 1 << 24  # what merging takes for each spilled file: two batches of usual rows
_LEAST_MERGED = 2  # files at once; what the engine takes at least

# The second is what others are told that waited for the same side of a join.
_LOST_PARTITION = ("partition not used yet", "inner future panicked during poll")
# A sort that is taken for one of constants below a union; a column that one rule finds to be NULL at times and another never;
# a DISTINCT that may stop early, and is taken for one that is ordered; a panic at a null-safe equality to the query around it;
# a condition on days that leaves more instants than statistics know of, where these begin before 1970.
_AT_ODDS = (
    "SanityCheckPlan",
    "Physical input schema should be the same as the one converted from logical input schema",
    "Ordering direction required for DISTINCT with limit",
    "index out of bounds",
    "Selectivity is out of limit",
)
_SORTS = ("ExternalSorter", "SortPreservingMerge", "TopK")


@dataclass(frozen=True, slots=True)
class Economy:
    """What a query goes without."""

    plain: bool = False  # texts are plain arrays, not views
    sorted_joins: bool = False  # hash joins cannot spill, sort-merge joins can
    one_partition: bool = False  # sorts beside each other share memory; the engine loses count (DataFusion 55)
    few_rows: bool = False  # a batch of wide rows is many megabytes
    fewer_rules: bool = False  # the engine's own rules are at odds with each other (DataFusion 55)

    def settings(self, partitions: int) -> dict[str, str]:
        """The engine's settings for it."""
        made = {
            "datafusion.execution.target_partitions": str(1 if self.one_partition else partitions),
            "datafusion.execution.batch_size": str(_FEW_ROWS if self.few_rows else BATCH_ROWS),
            "datafusion.optimizer.prefer_hash_join": str(not self.sorted_joins).lower(),
        }
        if self.few_rows:
            made["datafusion.execution.enforce_batch_size_in_joins"] = "true"
        if self.fewer_rules:
            made["datafusion.optimizer.repartition_sorts"] = "false"
            made["datafusion.execution.skip_physical_aggregate_schema_check"] = "true"
            made["datafusion.optimizer.enable_distinct_aggregation_soft_limit"] = "false"
        return made

    def merged_files(self, memory_limit: int, partitions: int) -> int:
        """How many spilled files a sort merges at once: without a limit the first one takes all memory, and others fail."""
        return max(_LEAST_MERGED, memory_limit // (_MERGED_BYTES * (1 if self.one_partition else partitions)))

    def after(self, message: str, views: bool) -> Economy | None:
        """How to run again what has failed with `message`, or not at all; `views`: whether the query has texts as views."""
        if any(mark in message for mark in _LOST_PARTITION):
            return None if self.one_partition else replace(self, plain=True, one_partition=True)
        if is_at_odds(message):
            return None if self.fewer_rules else replace(self, plain=True, fewer_rules=True)
        if "Resources exhausted" not in message:
            return None
        if views and self == NONE:
            return replace(self, plain=True)
        if "HashJoin" in message and not self.sorted_joins:
            return replace(self, plain=True, sorted_joins=True)
        if any(operator in message for operator in _SORTS):
            if not self.one_partition and not self.sorted_joins:  # of one partition all joins are by hashes
                return replace(self, plain=True, one_partition=True)
            return None if self.few_rows else replace(self, plain=True, few_rows=True)
        if "HashAggregate" in message and not self.few_rows:
            return replace(self, plain=True, few_rows=True)
        return None


NONE = Economy()
ONE_PARTITION = Economy(plain=True, one_partition=True)
FEWER_RULES = Economy(plain=True, fewer_rules=True)


def is_at_odds(message: str) -> bool:
    """Whether the engine's rules contradict each other."""
    return any(part in message for part in _AT_ODDS)


def is_failure(error: BaseException) -> bool:
    """Whether the statement has failed, rather than been stopped; panics of Rust are no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
