"""The tables against those that the program prints."""

import io

import pytest
import schedviz
from conftest import FIXTURES, printed

pyarrow = pytest.importorskip("pyarrow")


def csv(table, *words):
    """A table as the program prints it, by pyarrow's reader of CSV."""
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    return pyarrow.csv.read_csv(io.BytesIO(printed("export", *words, "--csv", "-", "--tables", table)), convert_options=options)


def test_tables_are_those_of_export(hackbench):
    words = (FIXTURES / "hackbench.dat", "--topology", FIXTURES / "hackbench.cpus.txt")
    methods = {"recordings": "run", "runs": "on_cpu", "waits": "wait", "idle": "idle", "episodes": "episode", "migrations": "migration", "wakeups": "wakeup"}
    for method, table in methods.items():
        read = getattr(hackbench, method)()
        assert isinstance(read, pyarrow.Table)
        expected = csv(table, *words)
        assert read.column_names == expected.column_names, method
        # Whole numbers and texts; CSV has other forms of numbers with a fraction.
        whole = [field.name for field in read.schema if field.type in (pyarrow.int32(), pyarrow.int64(), pyarrow.bool_())]
        assert whole and read.num_rows == expected.num_rows > 0
        for name in whole:
            assert read[name].to_pylist() == expected[name].to_pylist(), (method, name)
        assert read.schema.metadata[b"schema"] == b"schedviz/export/2"


def test_tables_have_the_sums_of_answers(hackbench):
    assert sum(hackbench.waits()["violated_ns"].to_pylist()) == hackbench.why().runs[0].waiting.total_ns
    assert sum(hackbench.episodes()["dur_ns"].to_pylist()) == hackbench.workcons().runs[0].violation.ns


def test_a_large_table_is_a_reader_of_batches(hackbench, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole = hackbench.runs()
    assert not list(tmp_path.iterdir())
    reader = hackbench.runs(batches=True)
    assert isinstance(reader, pyarrow.RecordBatchReader) and reader.schema == whole.schema
    assert reader.read_all().equals(whole)
    assert not list(tmp_path.iterdir())
    # One that nobody reads leaves nothing either.
    unread = hackbench.runs(batches=True)
    assert list(tmp_path.iterdir())
    del unread
    assert not list(tmp_path.iterdir())


def test_a_failed_export_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(schedviz.SchedvizError):
        schedviz.open("nowhere.dat").waits()
    assert not list(tmp_path.iterdir())


def test_several_recordings_are_one_table():
    both = schedviz.open(FIXTURES / "hackbench.dat", FIXTURES / "hackbench-7.2.dat").waits()
    assert set(both["run"].to_pylist()) == {"hackbench.dat", "hackbench-7.2.dat"} and both["group"].null_count == both.num_rows
    assert both.num_rows == sum(schedviz.open(FIXTURES / name).waits().num_rows for name in ("hackbench.dat", "hackbench-7.2.dat"))


def test_events_have_their_fields_as_columns(hackbench):
    switches = hackbench.events("sched_switch")
    assert set(switches["event"].to_pylist()) == {"sched_switch"}
    row = switches.slice(0, 1).to_pylist()[0]
    assert row["details"].startswith(f"{row['field_prev_comm']}:{row['field_prev_pid']} [{row['field_prev_prio']}]"), row
    assert switches.num_rows == printed("list", FIXTURES / "hackbench.dat", "--events", "sched_switch").count(b"sched_switch:")
    every = hackbench.events(batches=True).read_all()
    assert "field_prev_pid" not in every.column_names and every.num_rows > switches.num_rows
