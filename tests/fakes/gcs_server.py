"""Google Cloud Storage as its XML API shows it to the client: objects with generations, over HTTP, in memory.

No server that packages have takes `x-goog-if-generation-match` there. https://cloud.google.com/storage/docs/xml-api
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

# https://cloud.google.com/storage/docs/xml-api/get-bucket-list: at most 1,000
PAGE = 1000
_CONDITION = "x-goog-if-generation-match"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: its bytes, its generation, and when it was written."""

    data: bytes
    generation: int
    written: datetime

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.data, usedforsecurity=False).hexdigest()}"'


@dataclass(slots=True)
class GcsServer:
    """The server, and what it holds.

    Attributes:
        bucket: the name of its one bucket.
        page: how many names an answer to a listing has at most.
        url: where it answers.
        objects: by key.
        refused: how many requests did not meet their condition.
        pages: how many answers to listings there were.
    """

    bucket: str = "demux"
    page: int = PAGE
    url: str = ""
    objects: dict[str, StoredObject] = field(default_factory=dict)
    refused: int = 0
    pages: int = 0
    _uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    _generation: int = 0
    _key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def service_account(self) -> str:
        """The key of the one service account that is let in, as Google gives it out (JSON)."""
        private = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        said = {
            "type": "service_account",
            "private_key": private.decode(),
            "private_key_id": "1",
            "client_email": "demux@test.iam.gserviceaccount.com",
        }
        return json.dumps(said)

    def lets_in(self, authorization: str | None) -> bool:
        """Return whether a request bears a token that the service account has signed."""
        kind, _, token = (authorization or "").partition(" ")
        text, _, signature = token.rpartition(".")
        try:
            raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
            self._key.public_key().verify(raw, text.encode(), padding.PKCS1v15(), hashes.SHA256())
        except (InvalidSignature, ValueError):
            return False
        return kind == "Bearer"

    def put(self, key: str, data: bytes, condition: str | None) -> StoredObject | None:
        """Write an object; None where it has not the generation that the request wants, 0 being no object."""
        with self._lock:
            there = self.objects.get(key)
            if condition is not None and int(condition) != (0 if there is None else there.generation):
                self.refused += 1
                return None
            self._generation += 1
            written = datetime.now(timezone.utc)
            self.objects[key] = StoredObject(data, self._generation, written)
            return self.objects[key]

    def remove(self, key: str) -> bool:
        with self._lock:
            return self.objects.pop(key, None) is not None

    def begin_upload(self) -> str:
        with self._lock:
            self._uploads[name := f"upload-{len(self._uploads)}"] = {}
            return name

    def add_part(self, upload: str, number: int, data: bytes) -> None:
        with self._lock:
            self._uploads[upload][number] = data

    def complete(self, upload: str, numbers: list[int]) -> bytes:
        with self._lock:
            return b"".join(self._uploads[upload][number] for number in numbers)

    def listed(self, query: dict[str, str]) -> bytes:
        """Return a page of names in order, as version 2 of the listing has it."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        with self._lock:
            self.pages += 1
            keys = sorted(key for key in self.objects if key.startswith(prefix))
            names: dict[str, StoredObject | None] = {}
            for key in keys:
                head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
                name = f"{prefix}{head}{found}" if found else key
                if name > after:
                    names[name] = None if found else self.objects[key]
        page = dict(list(names.items())[: min(self.page, int(query.get("max-keys", PAGE)))])
        answer = Element("ListBucketResult")
        SubElement(answer, "IsTruncated").text = str(len(page) < len(names)).lower()
        if len(page) < len(names):
            SubElement(answer, "NextContinuationToken").text = max(page)
        for name, stored in page.items():
            if stored is None:
                SubElement(SubElement(answer, "CommonPrefixes"), "Prefix").text = name
                continue
            entry = SubElement(answer, "Contents")
            said = {
                "Key": name,
                "Generation": str(stored.generation),
                "LastModified": stored.written.isoformat().replace("+00:00", "Z"),
                "ETag": stored.etag,
                "Size": str(len(stored.data)),
            }
            for what, value in said.items():
                SubElement(entry, what).text = value
        return tostring(answer)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    store: GcsServer

    def log_message(self, *_: object) -> None:
        return

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, key = parts.path.removeprefix("/").partition("/")
        if not self.store.lets_in(self.headers.get("Authorization")):
            self._failed(401, "AuthenticationRequired")
        elif bucket != self.store.bucket:
            self._failed(404, "NoSuchBucket", "The specified bucket does not exist.")
        elif not key:
            self._answer(200, self.store.listed(query))
        else:
            self._object(unquote(key), query, body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any

    def _object(self, key: str, query: dict[str, str], body: bytes) -> None:
        match self.command:
            case "POST" if "uploads" in query:
                answer = Element("InitiateMultipartUploadResult")
                SubElement(answer, "UploadId").text = self.store.begin_upload()
                self._answer(200, tostring(answer))
            case "PUT" if "partNumber" in query:
                self.store.add_part(query["uploadId"], int(query["partNumber"]), body)
                self._answer(200, headers={"ETag": f'"{query["partNumber"]}"'})
            case "POST" if "uploadId" in query:
                numbers = [int(one.text or 0) for one in fromstring(body).iter() if one.tag.endswith("PartNumber")]
                self._put(key, self.store.complete(query["uploadId"], numbers), as_xml=True)
            case "PUT":
                self._put(key, body)
            case "DELETE":
                self._answer(204) if self.store.remove(key) else self._failed(404, "NoSuchKey")
            case _:
                self._read(key)

    def _put(self, key: str, data: bytes, *, as_xml: bool = False) -> None:
        stored = self.store.put(key, data, self.headers.get(_CONDITION))
        if stored is None:
            self._failed(412, "PreconditionFailed")
            return
        answer = Element("CompleteMultipartUploadResult")
        SubElement(answer, "ETag").text = stored.etag
        self._answer(200, tostring(answer) if as_xml else b"", _headers(stored))

    def _read(self, key: str) -> None:
        stored = self.store.objects.get(key)
        if stored is None:
            self._failed(404, "NoSuchKey")
            return
        data, headers, status = stored.data, _headers(stored), 200
        if (wanted := self.headers.get("Range")) is not None:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, len(data) - int(last))
            end = min(int(last) + 1 if first and last else len(data), len(data))
            if begin >= len(data):
                self._failed(416, "InvalidRange")
                return
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            data, status = data[begin:end], 206
        self._answer(status, data, headers)

    def _failed(self, status: int, code: str, message: str = "") -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _headers(stored: StoredObject) -> dict[str, str]:
    return {
        "ETag": stored.etag,
        "x-goog-generation": str(stored.generation),
        "Last-Modified": format_datetime(stored.written, usegmt=True),
    }


@contextmanager
def serving_gcs(store: GcsServer) -> Iterator[GcsServer]:
    """Let the server answer on this machine while the block runs."""
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
