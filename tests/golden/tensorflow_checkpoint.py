#!/usr/bin/env python3
"""Writes tf_checkpoint/: small checkpoints made by TensorFlow's own savers.

Run by hand: python3 tensorflow_checkpoint.py (tensorflow 2.12.1; 2.21.0 writes the same bytes).
    v2/         V2 with the file `checkpoint`: every dtype that TensorFlow and Pumice share, a
    scalar,
                an empty tensor, strings; one variable in slices along the first dimension, one
                along the last, and two whose slices begin beyond 64 and (V2 only) beyond 8192
    v1/         V1 in one file: the same without the dtypes that V1 lacks
    v2_shards/  V2 in three shards, without strings; the slices of a variable lie in several shards
    v1_shards/  the same as V1
    object/     written by tf.train.Checkpoint: keys with /.ATTRIBUTES/VARIABLE_VALUE
    plain/      V2 without slices and strings; pm_tf_bundle_write must write the same bytes
tests/formats/tf_checkpoint_test.c holds the expected values.
"""
import itertools
import os
import shutil
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tf_checkpoint")
NUMBERS = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"]
V2_ONLY = ["bfloat16", "uint16", "uint32", "uint64"]


def part(values, parts, axis):
    def init(shape, dtype=None, partition_info=None):
        at = [slice(o, o + n) for o, n in zip(partition_info.var_offset, shape)]
        return tf.constant(values[tuple(at)])

    def partitioner(shape, dtype):
        return [parts if i == axis else 1 for i in range(len(values.shape))]

    return dict(shape=values.shape, dtype=values.dtype, initializer=init, partitioner=partitioner)


def variables(v2):
    tf1.get_variable("global_step", initializer=np.int64(46900))
    tf1.get_variable(
        "net/weights", initializer=np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 4
    )
    tf1.get_variable("net/empty", initializer=np.zeros((0, 3), np.float32))
    tf1.get_variable("net/half", initializer=np.float32(0.5))
    for name in NUMBERS + (V2_ONLY if v2 else []):
        low = 0 if name.startswith("u") else -2
        tf1.get_variable(
            "dtype/" + name, initializer=tf.cast(tf.constant([low, 0, 1, 3, 100]), name)
        )
    tf1.get_variable("dtype/bool", initializer=np.array([True, False, True]))


def slices():
    tf1.get_variable("slices/rows", **part(np.arange(20, dtype=np.float32).reshape(5, 4), 2, 0))
    tf1.get_variable("slices/columns", **part(np.arange(20, dtype=np.int32).reshape(4, 5), 2, 1))
    tf1.get_variable("slices/many", **part(np.arange(200, dtype=np.int16), 3, 0))


def save(folder, make, v1=False, sharded=False):
    path = os.path.join(HERE, folder)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    with tf1.Graph().as_default():
        turns = itertools.cycle(["/cpu:0", "/cpu:1"])
        with tf1.device(lambda op: next(turns) if sharded and op.type == "VarHandleOp" else ""):
            make()
        version = tf1.train.SaverDef.V1 if v1 else tf1.train.SaverDef.V2
        saver = tf1.train.Saver(write_version=version, sharded=sharded, save_relative_paths=True)
        with tf1.Session(config=tf1.ConfigProto(device_count={"CPU": 2})) as session:
            session.run(tf1.global_variables_initializer())
            saver.save(
                session, os.path.join(path, "model.ckpt"), global_step=7, write_meta_graph=False
            )


def everything(v2, sharded=False):
    variables(v2)
    slices()
    if v2 and not sharded:
        tf1.get_variable("slices/long", **part((np.arange(9100) % 7).astype(np.int8), 11, 0))
        tf1.get_variable("strings", initializer=np.array([b"one", b"", b"three"]))


def objects():
    path = os.path.join(HERE, "object")
    shutil.rmtree(path, ignore_errors=True)
    kernel = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
    layer = tf.Module()
    layer.kernel = kernel
    tf.train.Checkpoint(layer=layer, step=tf.Variable(np.int64(5))).write(
        os.path.join(path, "model")
    )


if __name__ == "__main__":
    print(tf.__version__, file=sys.stderr)
    objects()
    tf1.disable_eager_execution()
    save("v2", lambda: everything(True))
    save("plain", lambda: variables(True))
    save("v1", lambda: everything(False), v1=True)
    save("v2_shards", lambda: everything(True, True), sharded=True)
    save("v1_shards", lambda: everything(False), v1=True, sharded=True)
