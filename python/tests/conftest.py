"""What the tests share. The program is $SCHEDVIZ_PROGRAM, or that of the installed wheel."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"


@pytest.fixture
def hackbench():
    """The recording of the book, with its topology."""
    import schedviz

    return schedviz.open(FIXTURES / "hackbench.dat", topology=FIXTURES / "hackbench.cpus.txt")


def printed(*words):
    """What the program prints, without the module."""
    import schedviz

    return subprocess.run([schedviz.program(), *map(str, words)], capture_output=True, check=True).stdout
