"""Notebooks: what their cells show, as a page, and without a trace of the machine that ran them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.site.notebook import NOTEBOOKS, Cell, as_markdown, cells_of, run_cells

FILES = sorted(NOTEBOOKS.glob("*.ipynb"))


def code(source: str) -> Cell:
    return {"cell_type": "code", "metadata": {}, "source": source.splitlines(True), "outputs": []}


def test_a_cell_shows_what_it_prints_and_the_value_of_its_last_line() -> None:
    ran = run_cells([code("a = 2"), {"cell_type": "markdown", "source": ["# Sum"]}, code("print('now')\na + 1")])
    assert ran.names["a"] == 2
    assert [cell.get("execution_count") for cell in ran.cells] == [1, None, 2]
    assert as_markdown(ran.cells) == (
        "```python\na = 2\n```\n\n# Sum\n\n"
        "```python\nprint('now')\na + 1\n```\n\n```text\nnow\n```\n\n```text\n3\n```\n"
    )


def test_a_table_is_html_and_a_figure_is_a_picture() -> None:
    table, figure = run_cells(
        [
            code("import pandas as pd\npd.DataFrame({'a': [1]})"),
            code("from matplotlib.figure import Figure\nFigure(figsize=(1, 1))"),
        ]
    ).cells
    assert "<td>1</td>" in as_markdown([table])
    assert as_markdown([figure]).count("](data:image/png;base64,") == 1


def test_a_cell_that_fails_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run_cells([code("1 / 0")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_notebook_is_plain_python_and_has_no_path_of_a_machine(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert [word for word in ("/tmp/", "/home/", "/root/", "/work/", "/Users/") if word in text] == []
    for cell in cells_of(file):
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), file.name, "exec")
