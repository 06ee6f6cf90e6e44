"""`python -m tools.site.notebook`: runs the cells of docs/notebooks, and writes what they show into the files.

A cell is plain Python, and shows what it prints and the value of its last line: a table as HTML, a figure as a PNG, all
else as text. So no kernel of Jupyter is needed here; the file is one that Jupyter opens.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"

Cell = Mapping[str, Any]


def cells_of(file: Path) -> list[Cell]:
    """Return the cells of a notebook."""
    found: list[Cell] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return found


@dataclass(frozen=True, slots=True)
class RunCells:
    """Cells with what they show, and the names that they left."""

    cells: list[Cell]
    names: Mapping[str, Any]


def run_cells(cells: Sequence[Cell]) -> RunCells:
    """Return the cells as they ran, one after the other in one namespace; raises what a cell raises."""
    # figures need no screen
    os.environ.setdefault("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    ran: list[Cell] = []
    number = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            number += 1
            outputs = _run("".join(cell["source"]), number, names)
            cell = {**cell, "execution_count": number, "outputs": outputs}
        ran.append(cell)
    return RunCells(ran, names)


def as_markdown(cells: Sequence[Cell]) -> str:
    """Return a notebook as a page of the site."""
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _run(source: str, number: int, names: dict[str, Any]) -> list[Mapping[str, Any]]:
    module = ast.parse(source)
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(module, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[Mapping[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if shown is not None:
        data = _data(shown)
        outputs.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return outputs


def _data(shown: Any) -> Mapping[str, Any]:
    data: dict[str, Any] = {"text/plain": repr(shown).splitlines(True)}
    if hasattr(shown, "savefig"):
        png = io.BytesIO()
        # the date of the file is not a part of it
        shown.savefig(png, format="png", bbox_inches="tight", metadata={"Software": None})
        data["image/png"] = base64.b64encode(png.getvalue()).decode("ascii")
    elif hasattr(shown, "_repr_html_"):
        data["text/html"] = shown._repr_html_().splitlines(True)
    return data


def _parts(cell: Cell) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(_shown(output) for output in cell["outputs"])]


def _shown(output: Mapping[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![figure](data:image/png;base64,{data['image/png']})"
    if "text/html" in data:
        # a blank line would end the table
        return "\n".join(line for line in "".join(data["text/html"]).splitlines() if line.strip())
    text = "".join(output["text"] if output["output_type"] == "stream" else data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"


def main() -> None:
    """Run every notebook and write it."""
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(file.read_text(encoding="utf-8"))
        notebook["cells"] = run_cells(notebook["cells"]).cells
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(file.name)


if __name__ == "__main__":
    main()
