-- Questions about many runs, for DuckDB. Export the runs with
--   schedviz export --group on='on.*.dat' --group off='off.*.dat' --parquet tables
-- and ask in that folder: cd tables && duckdb < duckdb.sql

CREATE VIEW run AS SELECT * FROM read_parquet('run/**/*.parquet', hive_partitioning = true);
CREATE VIEW wakeup AS SELECT * FROM read_parquet('wakeup/**/*.parquet', hive_partitioning = true);
CREATE VIEW wait AS SELECT * FROM read_parquet('wait/**/*.parquet', hive_partitioning = true);
CREATE VIEW idle AS SELECT * FROM read_parquet('idle/**/*.parquet', hive_partitioning = true);

-- Violation and elapsed time by group, kernel and machine: medians over the runs whose violation is known.
SELECT "group", kernel, machine, COUNT(*) AS runs, MEDIAN(elapsed) AS elapsed_s,
       MEDIAN(violation) AS violation_percent, MAX(violation) AS most_percent
FROM run WHERE untrusted IS NULL
GROUP BY ALL ORDER BY violation_percent DESC;

-- The tail of the wakeup latency by command, over all runs.
SELECT "group", command, COUNT(*) AS wakeups, QUANTILE_CONT(latency_ns, 0.99) / 1e6 AS p99_ms, MAX(latency_ns) / 1e6 AS max_ms
FROM wakeup WHERE kind = 'wakeup' AND latency_ns IS NOT NULL
GROUP BY ALL HAVING wakeups >= 100 ORDER BY p99_ms DESC LIMIT 20;

-- Missed steals by distance: switches to idle while a counted task waited, and the idling in violation that followed.
SELECT "group", missed_steal, COUNT(*) AS missed_steals, SUM(violated_ns) / 1e9 AS idling_s
FROM idle WHERE missed_steal IS NOT NULL
GROUP BY ALL ORDER BY "group", missed_steals DESC;

-- The waiting in violation by how the waits began and ended, as schedviz why has it for one run.
SELECT "group", origin, origin_cause, nearest_idle, ended_by, ended_by_cause, COUNT(*) AS waits, SUM(violated_ns) / 1e9 AS waited_s
FROM wait WHERE violated_ns > 0
GROUP BY ALL ORDER BY waited_s DESC LIMIT 20;
