"""Questions about a fleet of runs, for Apache Spark.

    spark-submit spark.py export TRACES TABLES   runs `schedviz export` on every .dat below the folder TRACES, one task each;
                                                 a run's group is the folder that its trace is in
    spark-submit spark.py ask TABLES             asks the tables, and prints an answer as JSON on each line

Both folders must be visible on all workers, and schedviz installed there (or named by the variable SCHEDVIZ).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

# Violation and elapsed time by group, kernel and machine: medians over the runs whose violation is known.
VIOLATION = """
SELECT `group`, kernel, machine, COUNT(*) AS runs, MEDIAN(elapsed) AS elapsed_s, MEDIAN(violation) AS violation_percent
FROM run WHERE untrusted IS NULL
GROUP BY `group`, kernel, machine ORDER BY violation_percent DESC, `group`
"""

# The tail of the wakeup latency by command, over all runs.
TAIL = """
SELECT `group`, command, COUNT(*) AS wakeups, PERCENTILE(latency_ns, 0.99) / 1e6 AS p99_ms, MAX(latency_ns) / 1e6 AS max_ms
FROM wakeup WHERE kind = 'wakeup' AND latency_ns IS NOT NULL
GROUP BY `group`, command HAVING COUNT(*) >= 100 ORDER BY p99_ms DESC LIMIT 20
"""

# Missed steals by distance, and the idling in violation that followed.
MISSED = """
SELECT `group`, missed_steal, COUNT(*) AS missed_steals, SUM(violated_ns) / 1e9 AS idling_s
FROM idle WHERE missed_steal IS NOT NULL
GROUP BY `group`, missed_steal ORDER BY `group`, missed_steals DESC
"""


def export(trace, tables):
    """Exports one trace; returns its name, and the error if there is one."""
    group = f"{Path(trace).parent.name}={trace}"
    command = [os.environ.get("SCHEDVIZ", "schedviz"), "export", "--group", group, "--parquet", tables, "-q", "--threads", "1"]
    ran = subprocess.run(command, capture_output=True, text=True)
    return trace, ran.stderr.strip() if ran.returncode else None


def main(action, *folders):
    spark = SparkSession.builder.appName("schedviz").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if action == "export":
        traces, tables = folders
        paths = sorted(str(path) for path in Path(traces).rglob("*.dat"))
        # One partition, and with it one task, for each trace: they differ in size.
        results = spark.sparkContext.parallelize(paths, max(len(paths), 1)).map(lambda path: export(path, tables)).collect()
        failed = [(trace, error) for trace, error in results if error]
        for trace, error in failed:
            print(f"{trace}: {error}", file=sys.stderr)
        print(json.dumps({"exported": len(results) - len(failed), "failed": len(failed)}))
    else:
        (tables,) = folders
        for table in ["run", "wakeup", "idle"]:
            spark.read.parquet(f"{tables}/{table}").createOrReplaceTempView(table)
        for question in [VIOLATION, TAIL, MISSED]:
            print(json.dumps([row.asDict() for row in spark.sql(question).collect()]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
