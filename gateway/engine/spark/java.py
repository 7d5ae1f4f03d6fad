"""Classes of the JVM, each looked up once.

py4j asks the JVM for every part of a dotted path each time that it is read, and the JVM searches all jars for each package as
if it were a class: some milliseconds for one name.
"""

from __future__ import annotations

from typing import Any

# What pyspark itself reads with each statement that has parameters, by names that it has imported.
_PYSPARK = ("PythonUtils",)


def java_class(spark: Any, name: str) -> Any:
    """The class of a full name in the JVM of a SparkSession or SparkContext. Raises Py4JError if there is none."""
    jvm = spark._jvm  # noqa: SLF001 (no public door)
    known = vars(jvm)
    if name not in known:
        known[name] = getattr(jvm, name)
    return known[name]


def keep_classes(spark: Any) -> None:
    """Look up what pyspark would with each statement."""
    for name in _PYSPARK:
        java_class(spark, name)
