"""Spark in a JVM of our own, the oracle: a session for all cases, whole-stage code generation off unless it is asked for."""

from __future__ import annotations

import contextlib
import datetime
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gateway.delta.schema import parse_schema, struct_of
from gateway.engine.spark import session as spark_session
from gateway.engine.spark import setup
from gateway.errors import GatewayError
from gateway.worker_jobs import Parameter
from tests.fuzz.embedded import columns_of
from tests.fuzz.outcome import Outcome
from tests.fuzz.tree import Case
from tests.live.spark import jars

# Small plans on few rows: planning them costs more than running them. A statement that takes all memory is no end of the rest.
QUICK = {
    "spark.executor.killOnFatalError.depth": "0",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.ui.enabled": "false",
}
# What takes long is worth the slower of the JVM's compilers: it halves the time of a plan, after some minutes.
_JVM = {False: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", True: "-XX:+UseSerialGC -XX:MetaspaceSize=512m"}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# What moves or derives conditions, so that they are asked of rows which others would have dropped, or not asked at all.
_MOVING = frozenset(
    {
        "EliminateOuterJoin",
        "InferFiltersFromConstraints",
        "InferFiltersFromGenerate",
        "OptimizeJoinCondition",
        "PushDownLeftSemiAntiJoin",
        "PushDownPredicates",
        "PushExtraPredicateThroughJoin",
        "PushLeftSemiLeftAntiThroughJoin",
        "PushPredicateThroughJoin",
        "PushPredicateThroughNonJoin",
        "PushdownPredicatesAndPruneColumnsForCTEDef",
    }
)
# What gives other values than the rows and the text do.
_VALUED = frozenset({"ConvertToLocalRelation", "OptimizeJoinCondition"})
# What Spark cannot run a plan without, though it lets itself be told to.
_NEEDED = frozenset(
    {
        "CleanUpTempCTEInfo",
        "ColumnPruning",
        "InlineCTE",
        "PrepareDeltaScan",
        "RewriteNonCorrelatedExists",
        "RewriteWithExpression",
    }
)
_ZONE = "spark.sql.session.timeZone"
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_ORACLE = Path(__file__).with_name("Oracle.java")
#: The types that parameters have here, as Python values that Spark takes for them.
_PYTHON: dict[str, Callable[[str], Any]] = {"INT": int, "STRING": str, "DATE": datetime.date.fromisoformat}


class Spark:
    """A Spark that this process has started. Cases share a session: what they leave in it is taken away."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._oracle = _oracle(root)
        self._interpreted = _session(root, INTERPRETED)
        rules = _rules(self._interpreted)
        moving = [rule for rule in rules if _short(rule) in _MOVING]
        valued = [rule for rule in rules if _short(rule) in _VALUED]
        spared = [rule for rule in rules if _short(rule) not in _NEEDED]
        self._ways = {
            "generated code": _session(root, COMPILED),
            "conditions stay": _session(root, INTERPRETED | {_EXCLUDED: ",".join(moving)}),
            "values stay": _session(root, INTERPRETED | {_EXCLUDED: ",".join(valued)}),
            "no optimizer": _session(root, INTERPRETED | {_EXCLUDED: ",".join(spared)}),
        }

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: Path, memory: int = 1 << 30, *, long: bool = False) -> Iterator[Spark]:
        """A Spark with a JVM of its own for the block, a `long` one or not; what it logs goes to a file below `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = spark_session.settings(
            setup.check(jars()), folder, memory=memory, extra=QUICK | {_JVM_OPTIONS: _JVM[long]}
        )
        with warnings.catch_warnings():  # pyspark speaks of pandas, which it only imports
            warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")
            with spark_session.output_to(folder / "spark.log"):
                root = spark_session.start("local[1]", settings, app="fuzz")
        try:
            yield cls(root)
        finally:
            root.stop()

    def ask(self, case: Case, *, way: str = "") -> Outcome:
        """The answer to the case's last statement, or the first failure before it; in one of `exceptions.WAYS` or as ever."""
        session = self._ways[way] if way else self._interpreted
        session.conf().set(_ZONE, case.zone)
        told = self._oracle.inOrder(session, case.statements, _arguments(case.parameters))
        if len(case.statements) > 1:
            session.sessionState().catalog().clearTempTables()
        return _outcome(json.loads(told)[-1])

    def ask_all(self, cases: Sequence[Case]) -> list[Outcome]:
        """The answers to cases of one statement without parameters and of one time zone: a single call of the JVM."""
        if not cases:
            return []
        self._interpreted.conf().set(_ZONE, cases[0].zone)
        return [_outcome(t) for t in json.loads(self._oracle.each(self._interpreted, [c.statements[0] for c in cases]))]


def _oracle(root: Any) -> Any:
    """The class that answers inside of the JVM."""
    gateway = root.sparkContext._gateway
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_ORACLE.read_text(encoding="utf-8"))
    made = compiler.getClassLoader().loadClass("fuzz.Oracle").getDeclaredConstructor(gateway.new_array(jvm.Class, 0))
    return made.newInstance(gateway.new_array(jvm.Object, 0))


def _rules(session: Any) -> list[str]:
    """The optimizer's rules by their full names."""
    batches = session.sessionState().optimizer().batches()
    found = [batches.apply(i).rules() for i in range(batches.size())]
    return sorted({rules.apply(j).ruleName() for rules in found for j in range(rules.size())})


def _short(rule: str) -> str:
    return rule.rpartition(".")[2]


def _session(root: Any, settings: dict[str, str]) -> Any:
    session = root.newSession()._jsparkSession
    for key, value in settings.items():
        session.conf().set(key, value)
    return session


def _outcome(told: dict[str, Any]) -> Outcome:
    if "condition" in told:
        return Outcome("error", condition=told["condition"], message=told["message"], sqlstate=told["sqlstate"])
    try:
        schema = struct_of(parse_schema(told["schema"]))
    except GatewayError as error:  # a type that the gateway has none for
        return Outcome("error", condition=error.condition, message=error.message)
    return Outcome("answer", columns_of(schema), told["rows"])


def _arguments(parameters: tuple[Parameter, ...]) -> Any:
    """Values as Spark's literals, by name or by position."""
    from pyspark.sql.functions import lit

    if not parameters:
        return None
    values = [lit(None if p.value is None else _PYTHON[p.type](p.value))._jc for p in parameters]
    if parameters[0].name is None:
        return values
    return {str(p.name): v for p, v in zip(parameters, values, strict=True)}
