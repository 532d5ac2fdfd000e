"""The tables of facts, as Arrow."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from typing import Any, Iterator, List, Mapping, Sequence

from . import _arguments, _program, _spec
from ._program import ArrowMissing


def arrow() -> Any:
    """pyarrow with its datasets."""
    try:
        import pyarrow
        import pyarrow.dataset
    except ImportError as error:
        raise ArrowMissing("tables need pyarrow: pip install 'schedviz[arrow]'") from error
    return pyarrow


class _Folder:
    """A temporary folder that is removed when it is no longer needed, at the latest when Python ends."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="schedviz-")
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def read(table: str, traces: Sequence[str], given: Mapping[str, Any], batches: bool, told: List[str]) -> Any:
    """Exports one table and opens it: whole, or as a reader of record batches."""
    pa = arrow()
    folder = _Folder()
    place = os.path.join(folder.path, "tables")
    options = {**given, "tables": [table], "parquet": place}
    words = _arguments.words("export", _spec.COMMANDS["export"], options, traces)
    ran = _program.run(words, unsaid=folder.path)
    told += [warning for warning in ran.warnings if warning not in told]
    # The group and the run are in the names of the folders.
    names = pa.schema([("group", pa.string()), ("run", pa.string())])
    parts = pa.dataset.HivePartitioning(names, null_fallback="__HIVE_DEFAULT_PARTITION__")
    files = pa.dataset.dataset(os.path.join(place, table), format="parquet", partitioning=parts)
    columns = [*names.names, *(name for name in files.schema.names if name not in names.names)]
    scanner = files.scanner(columns=columns)
    facts = {
        "schema": _spec.TABLES_SCHEMA,
        "schedviz.warnings": json.dumps(ran.warnings),
        "schedviz.command_line": ran.command_line.replace(place, "tables"),
    }
    schema = scanner.projected_schema.with_metadata(facts)
    if not batches:
        try:
            return scanner.to_table().replace_schema_metadata(schema.metadata)
        finally:
            folder.remove()
    return pa.RecordBatchReader.from_batches(schema, _stream(scanner, folder))


def _stream(scanner: Any, folder: _Folder) -> Iterator[Any]:
    """The batches; the folder lives as long as there can be more."""
    try:
        yield from scanner.to_batches()
    finally:
        folder.remove()
