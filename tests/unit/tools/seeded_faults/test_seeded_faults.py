"""The seeded faults fit the code as it is now, and what their runs say is read right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.seeded_faults.fault import Fault, Lane, Verdict, chosen, failed_tests, verdict_of
from tools.seeded_faults.faults import FAULTS
from tools.seeded_faults.tree import ROOT, copied

PACKAGES = {"demux", "producer", "bronze_ingest", "install_workflow", "deserializer"}
FAULT = Fault("of-one", "pack/count.py", "+ 1", "+ 2", "tests/unit/test_count.py::test_one_more")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_is_put_into_the_code_in_one_place_and_leaves_it_python(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    changed = fault.put_into(source)
    assert changed != source
    compile(changed, fault.file, "exec")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_test_of_each_fault_is_there(fault: Fault) -> None:
    file, *names = fault.test.partition("[")[0].split("::")
    assert f"def {names[-1]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_package_has_faults_and_every_fault_a_name_of_its_own() -> None:
    assert {fault.file.partition("/")[0] for fault in FAULTS} == PACKAGES
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize("source", ["return 1", "return number + 1 + 1"], ids=["nowhere", "twice"])
def test_a_fault_that_does_not_fit_is_refused_by_its_name(source: str) -> None:
    with pytest.raises(ValueError, match=r"^of-one: pack/count\.py has the old text (0|2) times, not once\.$"):
        FAULT.put_into(source)


def test_faults_are_chosen_by_name_and_by_what_their_tests_need() -> None:
    slow = Fault("slow", "a.py", "a", "b", "tests/flow/test_a.py::test_a", Lane.OLDEST)
    both = [FAULT, slow]
    assert [(one.is_unit, one.command) for one in both] == [(True, "make check"), (False, "make test")]
    assert chosen(both, [], only_unit=False) == both
    assert chosen(both, [], only_unit=True) == [FAULT]
    assert chosen(both, ["slow"], only_unit=False) == [slow]
    with pytest.raises(ValueError, match=r"^There is no fault fast; --list shows all\.$"):
        chosen(both, ["fast", "slow"], only_unit=False)


def test_only_a_failed_test_catches_a_fault() -> None:
    found = [verdict_of(code) for code in (0, 1, 2, 4, 5)]
    assert found == [Verdict.SURVIVED, Verdict.CAUGHT, *[Verdict.NOT_RUN] * 3]


def test_the_failed_tests_are_those_of_the_short_summary() -> None:
    output = (
        "tests/unit/test_a.py:1: AssertionError\n"
        "FAILED tests/unit/test_a.py::test_a[x = 1] - assert 1 == 2\n"
        "ERROR tests/flow/test_b.py::TestB::test_b\n"
        "1 failed, 1 error in 0.1s\n"
    )
    assert failed_tests(output) == ["tests/unit/test_a.py::test_a[x = 1]", "tests/flow/test_b.py::TestB::test_b"]
    assert failed_tests("ERROR: not found: tests/unit/test_a.py::test_c\n") == []


@pytest.mark.thorough
def test_a_fault_is_in_the_copy_while_its_test_runs_and_never_in_the_original(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/count.py": "def one_more(number: int) -> int:\n    return number + 1\n",
        "tests/unit/test_count.py": "from pack.count import one_more\ndef test_one_more(): assert one_more(1) == 2\n",
        "tests/conftest.py": 'from hypothesis import settings\nsettings.register_profile("quick")\n',
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["thorough"]\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    with copied(tmp_path) as tree:
        for _ in range(2):
            before = tree.run([FAULT.test], Lane.CURRENT, is_unit=True, stop_early=False)
            assert before.verdict is Verdict.SURVIVED, before.output
            with tree.with_fault(FAULT):
                during = tree.run([FAULT.test], Lane.CURRENT, is_unit=True, stop_early=True)
            assert (during.verdict, failed_tests(during.output)) == (Verdict.CAUGHT, [FAULT.test])
    assert (tmp_path / "pack/count.py").read_text(encoding="utf-8") == files["pack/count.py"]
    assert not (tmp_path / "pack/__pycache__").exists()
