"""Bronze rows to silver rows by Spark's own `from_protobuf`, equal to the `arrow` decoder's.

A payload is read by the lowered descriptor and the struct written again by `to_protobuf`. Where the bytes are the same,
the struct holds all that the payload says, and the column rules are applied to it as Spark SQL. Where they differ
(unknown or doubled fields, foreign encodings, malformed bytes), a Python function asks the reference, which refuses the
row or gives the same message in canonical bytes, and those are read instead.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from demux.commits import REFUSED
from demux.protobuf.lowered import ROOT, lowered
from demux.protobuf.pool import message_class, opened, pool_of
from demux.protobuf.reference import MalformedRow, Reference, parse
from demux.protobuf.shape import Message, shape_of
from demux.spark_types import spark_struct
from demux.tables import SILVER_RESERVED
from deserializer.decisions import Decisions, Writer
from deserializer.decode import ORIGIN, silver_columns
from deserializer.native_rules import Oneofs, canonical_sql, lawful_sql, row_sql

def native_rows(frame: DataFrame, decisions: Decisions, descriptors: str, kind="udf") -> DataFrame:
    writers = {i: w for i, w in decisions.by_schema_id.items() if isinstance(w, Writer)}
    shapes={}; 
    functions={}; ones={}
    for i,w in writers.items():
        pool=pool_of(FileDescriptorSet.FromString(w.descriptor_set))
        shapes[i]=shape_of(pool.FindMessageTypeByName(w.message), SILVER_RESERVED)
        functions[i]=_functions(lowered(shapes[i],"proto2").SerializeToString(), descriptors)
        ones[i]=_oneofs(pool,shapes[i])
    mine = {i: F.col("schema_id") == i for i in writers}
    parsed = frame.select("*", *[functions[i][0](F.when(mine[i], F.coalesce("payload", F.lit(bytearray())))).alias(f"_m{i}") for i in writers])
    def case(make):
        c=None
        for i in writers:
            c = F.when(mine[i], make(i)) if c is None else c.when(mine[i], make(i))
        return c
    judged = parsed.select("*", case(lambda i: F.coalesce((functions[i][1](F.col(f"_m{i}")) == F.coalesce("payload", F.lit(bytearray()))) & F.expr(canonical_sql(f"_m{i}", shapes[i], ones[i])), F.lit(False))).alias("_canonical"))
    if kind=="udf":
        rep=F.udf(repair(decisions), BinaryType())
    else:
        import pandas as pd
        f=repair(decisions)
        def g(ids, payloads):
            out=[None]*len(ids)
            bad = payloads.notna().to_numpy().nonzero()[0]
            for k in bad: out[k]=f(ids.iloc[k],payloads.iloc[k])
            return pd.Series(out,dtype=object)
        rep=F.pandas_udf(g, BinaryType(), F.PandasUDFType.SCALAR)
    repaired = judged.select("*", rep("schema_id", F.when(~F.col("_canonical"), F.col("payload"))).alias("_repaired"))
    settled = repaired.select("*", *[F.when(F.col("_canonical"),F.col(f"_m{i}")).otherwise(functions[i][0](F.when(mine[i],F.col("_repaired")))).alias(f"_s{i}") for i in writers])
    target=spark_struct(decisions.columns)
    row = settled.select("schema_id", *[c.name for c in ORIGIN.columns[1:] and frame.columns[2:]] if False else [], *[F.col(c) for c in frame.columns if c not in ("schema_id","payload")], case(lambda i: F.expr(f"IF({lawful_sql(f'_s{i}',shapes[i])}, {row_sql(f'_s{i}',shapes[i],decisions.columns)}, NULL)").cast(target)).alias("_row"))
    return row.select(*[F.col("_row").getField(c.name).alias(c.name) for c in decisions.columns], *[F.col(c.name[1:]).alias(c.name) for c in ORIGIN], F.col("_row").isNull().alias(REFUSED))

def repair(decisions):
    writers = {i: w for i, w in decisions.by_schema_id.items() if isinstance(w, Writer)}
    def f(i, payload):
        return None if payload is None else canonical_bytes(reference_of(writers[i].descriptor_set,writers[i].message), bytes(payload))
    return f

@lru_cache(maxsize=256)
def reference_of(ds, message):
    files=FileDescriptorSet.FromString(ds); pool=pool_of(files)
    return Reference(message_class(pool_of(opened(files, pool)), message), shape_of(pool.FindMessageTypeByName(message),SILVER_RESERVED), pool)

def canonical_bytes(r, payload):
    try:
        r.row(payload)
    except MalformedRow:
        return None
    m=parse(r.message,payload); m.DiscardUnknownFields()
    return m.SerializeToString()

def _oneofs(pool, shape):
    found={}
    def visit(s):
        found[s.full_name]=tuple(tuple(f.number for f in o.fields) for o in pool.FindMessageTypeByName(s.full_name).oneofs if len(o.fields)>1)
        for f in s.fields:
            if isinstance(f.value,Message): visit(f.value)
    visit(shape)
    return found

def _functions(descriptor: bytes, folder: str):
    from pyspark.sql.protobuf.functions import from_protobuf, to_protobuf
    path=Path(folder)/f"{hashlib.sha256(descriptor).hexdigest()}.desc"
    path.parent.mkdir(parents=True,exist_ok=True); path.write_bytes(descriptor)
    return (lambda c: from_protobuf(c, ROOT, str(path))), (lambda c: to_protobuf(c, ROOT, str(path)))
