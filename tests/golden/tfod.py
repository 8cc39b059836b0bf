"""Makes the original TensorFlow Object Detection API importable.

The package tf-object-detection 0.0.3 from PyPI holds its programs and protos of 2019 together with
TF-Slim's nets. They were written for TensorFlow 1 with tf.contrib, which later versions lack.
load() puts replacements in its place. The environment:

    python3.11 -m venv VENV
    VENV/bin/pip install "tensorflow-cpu==2.12.*" tf_slim==1.1.0 "protobuf<3.21" "numpy==1.24.3" \\
        pillow six
    VENV/bin/pip install --no-deps tf-object-detection==0.0.3

Only what the goldens use is replaced; everything else of tf.contrib is a function that returns
None."""
import importlib.abc
import importlib.machinery
import os
import sys
import types

# The generated protos are older than protobuf's compiled implementation accepts.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


class Absent(types.ModuleType):
    """A module whose every name is a function that returns None."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: None


class Absentees(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of tf.contrib, and matplotlib, which is imported for drawings only."""

    def find_spec(self, name, path, target=None):
        if name.startswith(("tensorflow.contrib.", "matplotlib")):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def contrib_module(name, source, **more):
    """A module tensorflow.contrib.NAME with the public names of the module `source`."""
    module = Absent("tensorflow.contrib." + name)
    module.__dict__.update({k: v for k, v in vars(source).items() if not k.startswith("_")})
    module.__dict__.update(more)
    sys.modules[module.__name__] = module
    return module


def load():
    """Returns tensorflow.compat.v1 with tf.contrib, under which object_detection can be imported.
    `import tensorflow` gives this module from now on. With tensorflow_nets.py, call its prepare()
    first."""
    import tensorflow.compat.v1 as tf
    import tf_slim
    import tf_slim.layers
    tf.disable_v2_behavior()
    contrib = Absent("tensorflow.contrib")
    sys.modules.update({"tensorflow.contrib": contrib, "tensorflow.contrib.slim": tf_slim})
    contrib.slim = tf_slim
    contrib.framework = contrib_module(
        "framework", tf_slim, is_tensor=tf.is_tensor, nest=tf.nest,
        deprecated=lambda *args, **options: lambda function: function)
    contrib.layers = contrib_module(
        "layers", tf_slim.layers, l1_regularizer=tf_slim.l1_regularizer,
        l2_regularizer=tf_slim.l2_regularizer)
    tf.contrib = contrib
    sys.modules["tensorflow"] = tf
    sys.meta_path.insert(0, Absentees())
    return tf
