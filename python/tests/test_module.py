"""The module against the program: the same numbers, words and errors."""

import ast
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import typing
import warnings
import xml.etree.ElementTree
from pathlib import Path

import pytest
import schedviz
from conftest import FIXTURES, ROOT, printed
from schedviz import _arguments, _decode, _program, _spec

PYTHON = ROOT / "python"


def plain(value):
    """A decoded value as the document had it, without fields that are absent."""
    if dataclasses.is_dataclass(value):
        names = {f.name: f.metadata.get("name", f.name) for f in dataclasses.fields(value)}
        return {names[name]: plain(one) for name, one in vars(value).items() if name in names}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def without_absent(value):
    if isinstance(value, dict):
        return {key: without_absent(one) for key, one in value.items() if one is not None and one != []}
    return [without_absent(one) for one in value] if isinstance(value, list) else value


def test_the_options_are_those_of_this_program():
    for name, command in _spec.COMMANDS.items():
        told = printed(name, "--help").decode()
        for option in command.options.values():
            assert f"{option.word} " in told or f"{option.word}\n" in told or f"{option.word}[" in told, (name, option.word)


def test_python_3_9_can_read_the_module():
    for path in (PYTHON / "src").rglob("*.py"):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


def test_every_document_is_decoded_whole(hackbench):
    asked = 0
    for name, command in _spec.COMMANDS.items():
        traces = [part for part in command.positionals if part in ("trace", "traces")]
        if not command.document[0] or not traces or name == "plot":
            continue
        method = name.replace("-", "_")
        method += "_report" if method in ("migrations", "events", "runs") else ""
        answer = getattr(hackbench, method)()
        document = json.loads(printed(*answer.command_line.split()[1:]))
        assert answer.document == document, name
        assert without_absent(plain(answer)) == without_absent(document), name
        assert isinstance(answer, _decode.Answer) and answer.exit_status == 0
        asked += 1
    assert asked > 15


def test_every_type_can_be_decoded():
    for path in (PYTHON / "src" / "schedviz" / "answers").glob("*.py"):
        module = importlib.import_module(f"schedviz.answers.{path.stem}")
        for value in vars(module).values():
            if dataclasses.is_dataclass(value):
                typing.get_type_hints(value)
                _decode.decoder(value)


def test_a_variant_is_told_by_its_constants(hackbench):
    finding = hackbench.findings().findings[0]
    assert type(finding.observation if hasattr(finding, "observation") else finding).__name__.startswith(("Observation", "Finding"))
    kinds = _decode.decoder(importlib.import_module("schedviz.answers.machine").RecordedApplication)
    assert kinds("machine") == "machine"
    assert kinds({"processes": [7]}).processes == [7]
    assert kinds({"cgroup": "/x"}).cgroup == "/x"
    assert kinds({"something": "new"}) == {"something": "new"}


def test_another_version_of_a_document_is_refused():
    ran = _program.Ran(b"", (), 0, "schedviz workcons")
    kind = importlib.import_module("schedviz.answers.workcons").WorkconsAnswer
    with pytest.raises(schedviz.SchedvizError, match="schedviz/workcons/1.*schedviz/workcons/2"):
        _decode.answer(kind, "schedviz/workcons/2", {"schema": "schedviz/workcons/1"}, ran)


def test_keywords_hold_for_all_that_is_asked(hackbench):
    def length(answer):
        return answer.to_ns - answer.from_ns

    part = schedviz.open(FIXTURES / "hackbench.dat", min=0.25, max="0.5", cpus=[0, 1])
    assert length(part.utilization()) == 250_000_000
    assert length(part.utilization(max=0.75)) == 500_000_000
    assert "--cpus 0,1" in part.workcons().command_line
    assert part.info().command_line.endswith("hackbench.dat --json")
    only = hackbench.latency(tasks="^hackbench")
    assert only.measures[0].count < hackbench.latency().measures[0].count


def test_words_of_the_command_line():
    def words(name, **given):
        return _arguments.words(name, _spec.COMMANDS[name], given, ["t.dat"])

    assert words("why", min=1e-06, rows=3, gate=True, markdown=False) == ["why", "t.dat", "--rows", "3", "--gate", "--min", "0.000001"]
    assert words("latency", pid=range(3), policy=["fifo", "batch"])[2:] == ["--pid", "0,1,2", "--policy", "fifo,batch"]
    assert words("why", min=-1)[2:] == ["--min=-1"]
    assert words("list", latency_format=True)[2:] == ["--latency-format"]
    assert words("list", latency_format="never")[2:] == ["--latency-format=never"]
    assert _arguments.words("why", _spec.COMMANDS["why"], {"rows": 3}, ["-t.dat"]) == ["why", "--rows", "3", "--", "-t.dat"]
    with pytest.raises(TypeError, match="why has no keyword 'mni'.*min"):
        words("why", mni=1)
    with pytest.raises(TypeError, match="not True"):
        words("why", min=True)
    assert _arguments.words("compare", _spec.COMMANDS["compare"], {"base": ["a", "b"], "new": Path("c")}) == [
        *("compare", "--base", "a", "--base", "b", "--new", "c")
    ]


def test_errors_are_the_program_s():
    with pytest.raises(schedviz.SchedvizError, match="cannot read nowhere.dat") as failed:
        schedviz.open("nowhere.dat").info()
    assert failed.value.exit_status == 1 and failed.value.command_line == "schedviz info nowhere.dat --json"
    with pytest.raises(schedviz.ArgumentError, match="is not a time") as refused:
        schedviz.open(FIXTURES / "hackbench.dat").workcons(min="soon")
    assert "Usage" not in str(refused.value) and isinstance(refused.value, ValueError)


def test_the_program_is_missing(monkeypatch):
    monkeypatch.setenv("SCHEDVIZ_PROGRAM", "/nowhere/schedviz")
    with pytest.raises(schedviz.ProgramNotFound, match="/nowhere/schedviz: No such file"):
        schedviz.open("x.dat").info()


def test_an_exceeded_limit_is_an_answer_with_a_status(hackbench):
    with pytest.warns(schedviz.SchedvizWarning, match="more than 5 %"):
        answer = hackbench.workcons(min_episode="1ms", max_violation=5)
    assert (answer.exit_status, answer.verdict.verdict) == (2, "fail")
    assert any("more than 5 %" in message for message in answer.messages)


def test_losses_reach_the_user_at_their_line():
    trace = schedviz.open(FIXTURES / "mask.dat")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        answer = trace.workcons()
    assert given and given[0].filename == __file__ and issubclass(given[0].category, schedviz.SchedvizWarning)
    assert answer.messages == trace.messages == tuple(str(warning.message) for warning in given)


def test_figures(hackbench, tmp_path):
    drawn = hackbench.figure("dat2graph", min=0.49, max=0.56)
    root = xml.etree.ElementTree.fromstring(drawn._repr_svg_())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    topology, trace = FIXTURES / "hackbench.cpus.txt", FIXTURES / "hackbench.dat"
    assert drawn.svg.encode() == printed("dat2graph", trace, "--min", 0.49, "--max", 0.56, "--topology", topology, "-o", "-", "--format", "svg")
    drawn.save(tmp_path / "part.pdf")
    assert (tmp_path / "part.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(ValueError, match="there is no command 'dat2grpah'"):
        hackbench.figure("dat2grpah")


def test_texts(hackbench):
    told = hackbench.text("workcons")
    assert repr(told) == str(told) and "violated 27.30 %" in " ".join(told.split())


def test_groups_are_compared():
    base, new = FIXTURES / "hackbench.dat", schedviz.open(FIXTURES / "hackbench-7.2.dat")
    answer = schedviz.compare(base, new)
    assert [group.name for group in answer.groups] == ["base", "new"]
    pages = schedviz.figure("compare", base=base, new=new)
    assert len(pages.pages) > 1 and all(page.startswith("<svg") for page in pages.pages)
    assert pages._repr_svg_() is None and pages._repr_html_().count("<img ") == len(pages.pages)
    assert "elapsed" in schedviz.text("compare", base=base, new=new)


def test_tables_without_pyarrow(monkeypatch, hackbench):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'schedviz\[arrow\]'") as missing:
        hackbench.waits()
    assert isinstance(missing.value, schedviz.ArrowMissing)
    assert hackbench.workcons().runs


def test_the_program_is_that_of_the_wheel_where_it_is_installed(monkeypatch):
    installed = [file for file in (_installed() or []) if file.parent.name == "bin"]
    if not installed:
        pytest.skip("the wheel is not installed")
    monkeypatch.delenv("SCHEDVIZ_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", "")
    assert os.path.samefile(schedviz.program(), installed[0].locate())


def _installed():
    import importlib.metadata

    try:
        return importlib.metadata.distribution("schedviz").files
    except importlib.metadata.PackageNotFoundError:
        return None
