"""`demux.decode` and `demux.encode` over Spark Connect, in a process without a JVM."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.flow.process import run
from tools.servers.connect import ConnectServer

_EVENT = 'syntax = "proto3"; package g; message Event { string name = 1; repeated int64 scores = 2; }'
_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import demux

url, schema = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
values = [bytes.fromhex("0a03616e6e12020102"), bytes.fromhex("0a05"), None]
rows = spark.createDataFrame([*enumerate(values, 1)], "id INT, value BINARY")
decoded = demux.decode(rows, "value", schema=schema)
print(json.dumps([[row.id, row.message and row.message.asDict(), row._quarantine and row._quarantine.cause]
                  for row in decoded.orderBy("id").collect()]))
encoded = demux.encode(decoded.where("id = 1").select("id", "message"), "message", schema=schema)
print(json.dumps([[row.id, row.value.hex()] for row in encoded.select("id", "value").collect()]))
"""


def test_a_column_is_decoded_and_encoded_by_the_servers_workers(server: ConnectServer, tmp_path: Path) -> None:
    schema = tmp_path / "event.proto"
    schema.write_text(_EVENT, encoding="utf-8")
    said = run([sys.executable, "-c", _PROGRAM, server.url, str(schema)], environment={"JAVA_HOME": "/nowhere"})
    assert said.code == 0, said.err
    decoded, encoded = map(json.loads, said.out.splitlines())
    assert decoded == [
        [1, {"name": "ann", "scores": [1, 2]}, None],
        [2, None, "MALFORMED_PAYLOAD"],
        [3, None, None],
    ]
    assert encoded == [[1, "0a03616e6e12020102"]]
