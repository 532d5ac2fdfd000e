"""The wheel: its names, its list of files, and its bytes."""

import base64
import csv
import hashlib
import importlib.util
import io
import struct
import sys
import zipfile

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
spec = importlib.util.spec_from_file_location("wheel_maker", ROOT / "python" / "wheel.py")
assert spec and spec.loader
wheel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheel)


def elf(machine, *segments):
    """The headers of a program for a machine, with segments of these kinds."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    return head + b"".join(struct.pack("<I", kind) + bytes(52) for kind in segments)


def test_a_static_program_runs_on_every_linux_of_its_architecture():
    assert wheel.tag(elf(0x3E, 6, 1)) == "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"
    assert wheel.tag(elf(0xB7, 1)) == "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"
    assert wheel.tag(elf(0x3E, 6, 3, 1)) == "linux_x86_64"
    for other in (b"", b"#!/bin/sh\n" * 20, elf(0xF3)):
        with pytest.raises(SystemExit):
            wheel.tag(other)


def test_the_list_of_files_is_right_and_the_bytes_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    import schedviz

    program = elf(0x3E, 1)
    (tmp_path / "program").write_bytes(program)
    made = lambda name: tmp_path / name / wheel.write(tmp_path / "program", tmp_path / name, schedviz.program())
    first, second = made("a"), made("b")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert rows.keys() == set(names) and len(names) == len(set(names))
        for name in names:
            content = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert name == record or rows[name] == (f"sha256={digest}", str(len(content)))
        script = next(entry for entry in archive.infolist() if entry.filename.endswith(".data/scripts/schedviz"))
        assert script.external_attr >> 16 == 0o100755 and archive.read(script) == program
        assert "schedviz/py.typed" in names and "schedviz/answers/workcons.py" in names
        metadata = archive.read(record.replace("RECORD", "METADATA")).decode()
    version = (ROOT / "Cargo.toml").read_text().split('\nversion = "')[1].split('"')[0]
    assert f"\nVersion: {version}\n" in metadata and "Requires-Dist: pyarrow>=12 ; extra" in metadata
