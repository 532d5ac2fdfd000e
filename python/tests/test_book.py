"""The page of the book says what the module does."""

import doctest

import pytest
from conftest import ROOT


def test_the_page_of_the_book(monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "notebook.md").read_text()
    test = doctest.DocTestParser().get_doctest(page, {}, "notebook.md", None, 0)
    assert len(test.examples) > 5
    told = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    assert not told, "".join(told)
