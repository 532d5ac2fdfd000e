#!/usr/bin/env python3
"""Makes the wheel: the static program, and the module beside it.

    wheel.py PROGRAM FOLDER [NATIVE]    writes the wheel into the folder, and prints its path

NATIVE is the program for this machine where PROGRAM does not run on it: the module's methods and types are generated from what it says.

It is also the build backend of this folder: `SCHEDVIZ_PROGRAM=PROGRAM pip install ./python`; without that variable `.ci/dist` builds the program.

A wheel is a zip archive with a list of its files (binary distribution format 1.0). The same files give the same bytes: entries are sorted, and their
time is $SOURCE_DATE_EPOCH.
"""

import base64
import hashlib
import os
import re
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import generate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: Numbers of `e_machine`, and of the segment that names a dynamic linker (elf.h).
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}
PT_INTERP = 3


def tag(program):
    """The platforms that a program runs on: a static one on every Linux, with either C library."""
    head = program[:64]
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        raise SystemExit("the program is no ELF file of 64 bits, little endian")
    (machine,) = struct.unpack_from("<H", head, 18)
    (headers,) = struct.unpack_from("<Q", head, 32)
    size, number = struct.unpack_from("<HH", head, 54)
    kinds = [struct.unpack_from("<I", program, headers + size * n)[0] for n in range(number)]
    name = MACHINES.get(machine)
    if name is None:
        raise SystemExit(f"the program is for a machine of number {machine:#x}; known are {', '.join(MACHINES.values())}")
    if PT_INTERP in kinds:
        return f"linux_{name}"
    return f"manylinux_2_17_{name}.manylinux2014_{name}.musllinux_1_1_{name}"


def project():
    """The table of pyproject.toml, with the program's version."""
    try:
        import tomllib
    except ImportError:
        import tomli as tomllib
    table = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    table["version"] = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    return table


def metadata(table):
    """The file METADATA (core metadata 2.4)."""
    lines = [f"Metadata-Version: 2.4\nName: {table['name']}\nVersion: {table['version']}\nSummary: {table['description']}"]
    lines += [f"Keywords: {','.join(table['keywords'])}", f"License-Expression: {table['license']}"]
    lines += [f"License-File: {name}" for name in table["license-files"]]
    lines += [f"Classifier: {classifier}" for classifier in table["classifiers"]]
    lines.append(f"Requires-Python: {table['requires-python']}")
    for extra, needed in table["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {one} ; extra == "{extra}"' for one in needed]
    lines.append("Description-Content-Type: text/markdown\n")
    return "\n".join(lines) + "\n" + (HERE / table["readme"]).read_text()


def write(path, folder, native=None):
    """Writes the wheel; returns its name."""
    program = Path(path).read_bytes()
    table = project()
    stem = f"{table['name']}-{table['version']}"
    platforms = tag(program)
    about = f"{stem}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms.split("."))
    files = {
        f"{about}/METADATA": metadata(table).encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: schedviz\nRoot-Is-Purelib: false\n{tags}".encode(),
        f"{stem}.data/scripts/schedviz": program,
    }
    for name in table["license-files"]:
        files[f"{about}/licenses/{name}"] = (ROOT / name).read_bytes()
    source = HERE / "src"
    for file in sorted(source.rglob("*")):
        if file.suffix == ".py" or file.name == "py.typed":
            files[file.relative_to(source).as_posix()] = file.read_bytes()
    files.update((f"schedviz/{name}", text.encode()) for name, text in generate.files(str(native or path)).items())
    record = f"{about}/RECORD"
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    # The list stands last, as the format recommends, and has no digest of itself.
    ordered = [(name, files[name]) for name in sorted(files, key=lambda name: (name.startswith(about), name))]
    ordered.append((record, "".join([*sorted(rows), f"{record},,\n"]).encode()))
    # A zip archive has no time before 1980, and steps of two seconds.
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800))[:6]
    file = f"{stem}-py3-none-{platforms}.whl"
    Path(folder).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(Path(folder) / file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in ordered:
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if name.endswith("/scripts/schedviz") else 0o100644) << 16
            archive.writestr(entry, content)
    return file


# The hooks of a build backend (PEP 517).


def get_requires_for_build_wheel(config_settings=None):
    return [] if sys.version_info >= (3, 11) else ["tomli"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    path = os.environ.get("SCHEDVIZ_PROGRAM")
    if not path:
        made = subprocess.run([str(ROOT / ".ci" / "dist")], check=True, stdout=subprocess.PIPE, cwd=str(ROOT))
        path = ROOT / made.stdout.decode().strip()
    return write(path, wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the sources are the repository's")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    print(Path(sys.argv[2]) / write(*sys.argv[1:]))
