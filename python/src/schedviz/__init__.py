"""What the Linux scheduler did, from a recording, in Python.

    import schedviz

    trace = schedviz.open("trace.dat")
    trace.waits().to_pandas()              # a row for each wait; also polars.from_arrow(…), duckdb.sql(…)
    trace.workcons().runs[0].violation     # an answer as dataclasses
    trace.figure("dat2graph", min="0.5")   # shown in a notebook
    schedviz.compare("old.*.dat", "new.*.dat")

All numbers are those of the program `schedviz`, which this module runs. Its book explains them.
"""

from ._decode import Answer
from ._program import ArgumentError, ArrowMissing, ProgramNotFound, SchedvizError, SchedvizWarning, program
from ._questions import *  # noqa: F403
from ._shown import Figure, Text
from ._trace import Trace, figure, text
