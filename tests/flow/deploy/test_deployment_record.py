"""The bronze task of a job copies the installer's record, and takes in its records whatever that says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from deltalake import DeltaTable

from demux.core.control.deployment_record import DeploymentRecord, GamePlacement, RecordedGame, deployment_format
from demux.core.control.record_format import file_of
from demux.core.root.layout import Layout
from tests.support.flow.process import Command
from tests.support.flow.root import Root

NOW = datetime(2025, 3, 30, 12, 3, 4, tzinfo=timezone.utc)
PLACE = GamePlacement("chess", "chess", "Game_Protobufs_wrapper_prod", 1001, "deserialize_chess", "cluster_001")


def test_bronze_copies_the_record_and_is_not_stopped_by_one_that_cannot_be_read(
    sent: Root, copy: Callable[..., Root], command: Command, tmp_path: Path
) -> None:
    root, folder = copy(sent), tmp_path / "deployment.prod"
    layout = Layout(str(root.folder))
    words = ("ingest", "--root", layout.root, "--deployment-record", str(folder))
    assert command(*words).code == 0
    assert not Path(layout.deployments).exists()
    folder.mkdir()
    record = DeploymentRecord((RecordedGame(PLACE, "27af7553c72c", NOW),))
    (folder / file_of(2)).write_text(deployment_format("prod").to_text(record), encoding="utf-8")
    assert command(*words).code == 0
    (folder / file_of(3)).write_text("{", encoding="utf-8")
    assert command(*words).code == 0
    assert DeltaTable(layout.deployments).to_pyarrow_table().to_pylist() == [
        {
            "deployment": "prod",
            "game_name": "chess",
            "job": "Game_Protobufs_wrapper_prod",
            "job_id": 1001,
            "task": "deserialize_chess",
            "cluster": "cluster_001",
            "plan_id": "27af7553c72c",
            "since": NOW,
            "record_version": 2,
        }
    ]
    log = (Path(layout.logs) / "demux.log").read_text(encoding="utf-8")
    assert f"the record of the deployment in {folder} was not copied" in log
