"""Credentials that last for seconds: they are renewed in the middle of the work, and no request bears old ones.

The S3 server takes no session tokens: a proxy before it checks them, and signs the requests again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from demux.core.errors import StorageFailed
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from demux.core.storage.files import Storage
from demux.pipeline.engines import decode_of
from producer.run import ProduceReport
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving
from tests.fakes.workspace.path_credentials import PathCredentials
from tests.support.flow.fleet import without_errors
from tests.support.flow.fleet_oracle import check_everything
from tests.support.store.stored import stored
from tools.servers.stores.proxy import Fault, Request, StoreProxy
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

LIFETIME_S = 1.0
POD_TOKEN = "the pod's own"


@pytest.fixture
def issued() -> PathCredentials:
    """The credentials that are given out, each for a second, by whomever."""
    return PathCredentials(lifetime_s=LIFETIME_S)


@pytest.fixture
def proxy(object_store: ObjectStore, issued: PathCredentials) -> Iterator[StoreProxy]:
    """The server behind what refuses credentials that were not given out, or have expired."""
    made = StoreProxy(object_store.url)
    made.keys = (ACCESS_KEY, SECRET_KEY)

    def decide(request: Request) -> Fault | None:
        return None if issued.is_valid(request.session_token) else Fault.EXPIRED

    made.decide = decide
    yield made
    made.close()


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch, issued: PathCredentials, tmp_path: Path) -> Iterator[FakeWorkspace]:
    """A workspace that gives them out, and that its client finds by the environment."""
    with serving(FakeWorkspace(path_credentials=issued)) as said:
        # no profile of whoever runs the tests
        monkeypatch.setenv("HOME", str(tmp_path))
        for name, value in said.environ.items():
            monkeypatch.setenv(name, value)
        yield said


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch, issued: PathCredentials, tmp_path: Path) -> Iterator[list[str]]:
    """The service that gives a container its credentials; yields the tokens that it was asked with."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            expires = time.time() + LIFETIME_S
            token = f"token-{len(issued.given)}"
            issued.given.append({"expiration_time": int(expires * 1000)})
            said = {
                "AccessKeyId": "id",
                "SecretAccessKey": "key",
                "Token": token,
                "Expiration": datetime.fromtimestamp(expires, timezone.utc).isoformat().replace("+00:00", "Z"),
            }
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    file = tmp_path / "token"
    file.write_text(POD_TOKEN, encoding="utf-8")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_address[1]}/keys")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(file))
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def storage_of(proxy: StoreProxy, root: str, **store: str) -> Storage:
    said = {"root": root, "store": {"endpoint": proxy.url, "region": "us-east-1", **store}}
    return layout_of(Settings.model_validate(said)).storage


def work_until_renewed(storage: Storage, root: str, issued: PathCredentials) -> None:
    """Write a file and a table again and again, until credentials were given out many times; check what is there."""
    number = 0
    storage.write_table(f"{root}/kept", pa.table({"number": [0]}), "append")
    kept = storage.table(f"{root}/kept")
    # the client and each table that is opened ask for their own
    while number < 5 or len({one["expiration_time"] for one in issued.given}) < 5:
        number += 1
        storage.write(f"{root}/file", b"%d" % number)
        storage.write_table(f"{root}/table", pa.table({"number": [number]}), "append")
        kept = storage.catch_up(kept, f"{root}/kept")
    assert kept.version() == 0
    assert storage.read(f"{root}/file") == b"%d" % number
    assert storage.table(f"{root}/table").count() == number


def test_credentials_of_unity_catalog_are_renewed_for_files_and_tables(
    workspace: FakeWorkspace, proxy: StoreProxy, tmp_path: Path
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    storage = storage_of(proxy, root, credentials="unity-catalog")
    work_until_renewed(storage, root, workspace.path_credentials)
    assert {one["url"] for one in workspace.path_credentials.given} == {root}


def test_a_fleet_and_its_tasks_that_have_no_login_work_on_with_renewed_credentials(
    workspace: FakeWorkspace, proxy: StoreProxy, object_store: ObjectStore, spark_in_store: SparkSession, tmp_path: Path
) -> None:
    issued = workspace.path_credentials
    # half of it is left for a job whose tasks bear them
    issued.lifetime_s = 12.0
    store = {"endpoint": proxy.url, "region": "us-east-1", "credentials": "unity-catalog"}
    root = stored(spark_in_store, object_store, f"demux/{tmp_path.name}", store=store)
    place = root.workplace()
    decode = decode_of(place, root.settings.round_engine)
    reports: list[ProduceReport] = []
    while len({one["expiration_time"] for one in issued.given}) < 3:
        reports.append(root.produce(events=60, games=3, versions=2, fault_rate=0.2))
        without_errors(root.run(place, decode))
    check_everything(root, reports)


def test_credentials_of_a_container_are_renewed_for_files_and_tables(
    container: list[str], issued: PathCredentials, proxy: StoreProxy, tmp_path: Path
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    work_until_renewed(storage_of(proxy, root), root, issued)
    assert set(container) == {POD_TOKEN}


def test_a_store_that_takes_the_credentials_no_more_says_so_and_not_which(
    workspace: FakeWorkspace, proxy: StoreProxy, tmp_path: Path
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    proxy.decide = lambda _: Fault.EXPIRED
    storage = storage_of(proxy, root, credentials="unity-catalog")
    with pytest.raises(StorageFailed, match="the credentials have expired") as error:
        storage.write(f"{root}/file", b"")
    assert "token-" not in str(error.value)
