"""The ledger against Kafka: offsets that are nowhere are told, and those that were given up are not."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from demux import api
from demux.core.settings.settings import Settings
from demux.operations.reconcile.balance import DifferenceExample, Ledger, LedgerFault, OffsetHole
from tests.support.kafka.intake import Intake, of_chess
from tests.support.kafka.records import Record, forget, make_topic, put
from tools.servers.broker import Broker


def ledger(root: Intake) -> Ledger:
    settings = Settings.model_validate({"root": root.layout.root, "source": {"kind": "kafka"}, "kafka": root.kafka})
    return api.Root(settings).reconcile()


def test_offsets_that_are_nowhere_are_holes_and_a_record_that_is_there_twice_does_not_balance(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    make_topic(broker.bootstrap, "reconciled", 2)
    options = {"bootstrap.servers": broker.bootstrap}
    good = [Record(of_chess(str(number).encode())) for number in range(6)]
    put(options, "reconciled", *good, Record(b"no wrapper"), Record(of_chess(b"other"), partition=1))
    root = Intake.at(spark, tmp_path, broker.bootstrap, "reconciled")
    root.ingest()
    found = ledger(root)
    assert found.intake is not None
    assert (found.intake.bronze, found.intake.quarantined, found.intake.source) == (7, 1, None)
    assert (found.differences, found.holes, found.notes) == ((), (), ())
    assert [(one.game, one.bronze, one.waiting) for one in found.accounts] == [("chess", 7, 7)]

    # what was given up is no hole
    put(options, "reconciled", *good[:3])
    forget(broker.bootstrap, "reconciled", {0: 9})
    put(options, "reconciled", good[0])
    root.ingest(accept_gaps=True)
    assert root.gaps() == [("reconciled", 0, 7, 9, "expired")]
    assert ledger(root).holes == ()

    bronze = DeltaTable(root.layout.bronze)
    twice = bronze.to_pyarrow_table().filter(pc.field("record_id") == "reconciled/0/4")
    bronze.delete("record_id IN ('reconciled/0/0', 'reconciled/0/2', 'reconciled/0/9', 'reconciled/1/0')")
    write_deltalake(root.layout.bronze, twice, mode="append")
    found = ledger(root)
    assert found.holes == (
        OffsetHole("reconciled", 0, 3, ((0, 1), (2, 3), (9, 10))),
        OffsetHole("reconciled", 1, 1, ((0, 1),)),
    )
    (double,) = found.differences
    assert (double.kind, double.game, double.rows) == (LedgerFault.TAKEN_TWICE, "chess", 1)
    assert double.examples == (DifferenceExample("reconciled/0/4", 0),)
