"""EXPLAIN: which engine runs a statement, why, and by which plan."""

from __future__ import annotations

import time

from gateway.engine.base import Emit, HandedOverError, Statement
from gateway.errors import unsupported
from gateway.planner import Plan, described
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands import changes, merges, replacements
from gateway.runner.commands.targets import written_table
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import STRING, StructField, struct

_PLAN = struct(StructField("plan", STRING, False))


def explained_elsewhere(engine: str, reason: str) -> Answer:
    """EXPLAIN of a statement that the embedded engine does not run."""
    return rows_of("EXPLAIN", _PLAN, [[f"Engine: {engine}\nReason: {reason}"]])


def explained_error(text: str) -> Answer:
    """EXPLAIN of a statement that no engine can plan, in a row for each line, as Spark tells of it."""
    lines = ["Error occurred during query planning: ", *text.rstrip().split("\n")]
    return rows_of("EXPLAIN", _PLAN, [lines])


def change_planned(command: c.Delete | c.Update | c.Merge | c.ReplaceOn, env: Environment, runner: Queries) -> Plan:
    """How the rows are found that a statement changes."""
    if isinstance(command, c.Merge):
        return merges.planned(command, env, runner)
    if isinstance(command, c.ReplaceOn):
        return replacements.planned(command, env, runner)
    return changes.planned(command, env, runner)


def explain(command: c.Explain, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """EXPLAIN."""
    inner = command.statement
    if command.mode == "analyze" and not isinstance(inner, c.Query):
        raise unsupported("EXPLAIN ANALYZE of what is no query")
    if isinstance(inner, c.Insert):
        written_table(inner.table, env, "INSERT", "no rows can be inserted")
    if isinstance(inner, (c.CreateTable, c.Insert)) and inner.query is not None:
        tree = inner.query.tree
    elif isinstance(inner, c.Query):
        tree = inner.tree
    elif isinstance(inner, (c.Delete, c.Update, c.Merge, c.ReplaceOn)):
        decision = change_planned(inner, env, runner)
        return rows_of("EXPLAIN", _PLAN, [[f"{described(decision)}\n\n{runner.engine.explain(decision.query)}"]])
    else:
        return rows_of("EXPLAIN", _PLAN, [["Engine: gateway\nReason: answered without an engine"]])
    try:
        compiled, decision = runner.prepared(tree, env)
    except HandedOverError as handed:
        return explained_elsewhere(handed.handover.engine, handed.handover.reason)
    text = described(decision)
    if command.mode == "analyze":
        return _analyzed(text, decision, runner)
    if command.mode != "simple":
        text += f"\n\n== Engine Text ==\n{compiled.generated.text}"
    text += "\n\n" + runner.engine.explain(decision.query)
    return rows_of("EXPLAIN", _PLAN, [[text]])


def _analyzed(text: str, decision: Plan, runner: Queries) -> Answer:
    """EXPLAIN ANALYZE: the query runs, its rows are dropped, its operators tell what they did."""
    start = time.perf_counter()
    rows, operators = runner.engine.analyze(decision.query)
    seconds = time.perf_counter() - start
    spilled = sum(o.spilled for o in operators)
    lines = [f"Rows: {rows}", f"Time: {seconds * 1000:.1f} ms", f"Spilled: {spilled} bytes", "", "== Analyzed Plan =="]
    return rows_of("EXPLAIN", _PLAN, [["\n".join([text, *lines, *(o.line() for o in operators)])]])
