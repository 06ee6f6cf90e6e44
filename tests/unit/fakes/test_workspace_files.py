"""The files of the fake workspace: in volumes, and in its own tree."""

from __future__ import annotations

import io

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import AlreadyExists, BadRequest, NotFound, ResourceAlreadyExists, ResourceDoesNotExist
from databricks.sdk.errors.base import DatabricksError
from databricks.sdk.service.workspace import ImportFormat, ObjectType

from tests.fakes.workspace.fake import FakeWorkspace

WHEEL = "/Volumes/main/demux/wheels/v1/a b+c.whl"
CONTENT = bytes(range(256)) * 5
HOME = "/Users/ann@example.org"


class TestVolumes:
    @pytest.fixture(autouse=True)
    def _volume(self, workspace: FakeWorkspace) -> None:
        workspace.catalog.add("volume", "main.demux.wheels")

    def test_a_file_comes_back_as_it_went(self, client: WorkspaceClient) -> None:
        client.files.upload(WHEEL, io.BytesIO(CONTENT))
        metadata = client.files.get_metadata(WHEEL)
        assert (metadata.content_length, metadata.content_type) == (len(CONTENT), "application/octet-stream")
        contents = client.files.download(WHEEL).contents
        assert contents is not None
        assert contents.read() == CONTENT

    def test_an_empty_file_is_a_file(self, client: WorkspaceClient) -> None:
        client.files.upload(WHEEL, io.BytesIO(b""))
        assert client.files.get_metadata(WHEEL).content_length == 0

    def test_a_file_is_overwritten_unless_that_is_forbidden(self, client: WorkspaceClient) -> None:
        client.files.upload(WHEEL, io.BytesIO(b"1"))
        client.files.upload(WHEEL, io.BytesIO(b"22"))
        with pytest.raises(AlreadyExists):
            client.files.upload(WHEEL, io.BytesIO(b"333"), overwrite=False)
        assert client.files.get_metadata(WHEEL).content_length == 2

    def test_a_deleted_file_is_gone(self, client: WorkspaceClient) -> None:
        client.files.upload(WHEEL, io.BytesIO(b"1"))
        client.files.delete(WHEEL)
        for ask in (client.files.get_metadata, client.files.delete):
            with pytest.raises(NotFound):
                ask(WHEEL)

    def test_folders_are_listed_and_deleted_when_they_are_empty(self, client: WorkspaceClient) -> None:
        folder = WHEEL.rpartition("/")[0]
        client.files.upload(WHEEL, io.BytesIO(b"1"))
        client.files.create_directory(f"{folder}/old")
        found = [(each.name, each.is_directory) for each in client.files.list_directory_contents(folder)]
        assert found == [("a b+c.whl", False), ("old", True)]
        with pytest.raises(BadRequest, match="not empty"):
            client.files.delete_directory(folder)
        client.files.delete(WHEEL)
        client.files.delete_directory(f"{folder}/old")
        # a folder that was made stays, and so do those above it
        client.files.get_directory_metadata(folder)
        client.files.delete_directory(folder)
        with pytest.raises(NotFound):
            client.files.get_directory_metadata(folder)

    def test_a_volume_that_is_not_there_is_missing(self, client: WorkspaceClient) -> None:
        with pytest.raises(NotFound, match=r"Volume 'main\.demux\.other' does not exist"):
            client.files.upload("/Volumes/main/demux/other/a.whl", io.BytesIO(b"1"))
        with pytest.raises(BadRequest, match="It must be below a volume"):
            client.files.upload("/tmp/a.whl", io.BytesIO(b"1"))


class TestTree:
    def test_a_file_comes_back_as_it_went(self, client: WorkspaceClient) -> None:
        client.workspace.mkdirs(f"{HOME}/demux/v1")
        client.workspace.upload(f"{HOME}/demux/v1/a.whl", CONTENT, format=ImportFormat.AUTO)
        status = client.workspace.get_status(f"/Workspace{HOME}/demux/v1/a.whl")
        assert (status.path, status.object_type, status.size) == (
            f"{HOME}/demux/v1/a.whl",
            ObjectType.FILE,
            len(CONTENT),
        )
        assert client.workspace.download(f"{HOME}/demux/v1/a.whl").read() == CONTENT

    def test_a_file_in_base64_is_taken_too(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        client.workspace.import_(f"{HOME}/a.txt", content="SGk=", format=ImportFormat.RAW)
        assert workspace.tree.held[f"/Workspace{HOME}/a.txt"] == b"Hi"

    def test_a_file_is_overwritten_only_when_that_is_said(self, client: WorkspaceClient) -> None:
        client.workspace.upload(f"{HOME}/a.whl", b"1", format=ImportFormat.AUTO)
        with pytest.raises(ResourceAlreadyExists, match="Please pass overwrite=true"):
            client.workspace.upload(f"{HOME}/a.whl", b"2", format=ImportFormat.AUTO)
        client.workspace.upload(f"{HOME}/a.whl", b"3", format=ImportFormat.AUTO, overwrite=True)
        assert client.workspace.download(f"{HOME}/a.whl").read() == b"3"

    def test_the_folder_must_be_there(self, client: WorkspaceClient) -> None:
        with pytest.raises(ResourceDoesNotExist, match="The parent folder"):
            client.workspace.upload(f"{HOME}/demux/a.whl", b"1", format=ImportFormat.AUTO)

    def test_a_file_of_more_than_ten_mebibytes_is_refused(self, client: WorkspaceClient) -> None:
        client.workspace.upload(f"{HOME}/a.whl", bytes(10 * 1024 * 1024), format=ImportFormat.AUTO)
        with pytest.raises(DatabricksError) as raised:
            client.workspace.upload(f"{HOME}/b.whl", bytes(10 * 1024 * 1024 + 1), format=ImportFormat.AUTO)
        assert raised.value.error_code == "MAX_NOTEBOOK_SIZE_EXCEEDED"

    def test_a_folder_with_something_in_it_is_deleted_only_with_all_of_it(self, client: WorkspaceClient) -> None:
        client.workspace.mkdirs(f"{HOME}/demux/v1")
        client.workspace.mkdirs(f"{HOME}/demux/v1")
        with pytest.raises(BadRequest, match="is not empty"):
            client.workspace.delete(f"{HOME}/demux")
        client.workspace.delete(f"{HOME}/demux", recursive=True)
        with pytest.raises(ResourceDoesNotExist, match="doesn't exist"):
            client.workspace.get_status(f"{HOME}/demux/v1")
        with pytest.raises(ResourceDoesNotExist, match="doesn't exist"):
            client.workspace.delete(f"{HOME}/demux")
        assert list(client.workspace.list(HOME)) == []

    def test_a_file_is_no_folder(self, client: WorkspaceClient) -> None:
        client.workspace.upload(f"{HOME}/a", b"1", format=ImportFormat.AUTO)
        with pytest.raises(ResourceAlreadyExists, match="already exists and it is not a folder"):
            client.workspace.mkdirs(f"{HOME}/a/b")
