"""Checks that TensorFlow reads the output of `checkpoint convert`, and that Pumice reads
TensorFlow's checkpoints.

    python3 tests/checkpoints/tensorflow_check.py PUMICE FOLDER

Trains a small lenet with the program PUMICE and converts it. TensorFlow's own reader and saver must
find every tensor, and its operators must give the probabilities of `pumice predict`. TensorFlow's
Adam must continue from such a checkpoint. Then TensorFlow trains the net for a few steps and saves
it as V2, as V1 and as a SavedModel. `pumice predict` must give TensorFlow's probabilities from each
of them, also with the moving averages, and training must start from them, with and without slots
and step. A Python without tensorflow makes a virtual environment in FOLDER and
installs it there, once. The check exits with 77 (skipped) when the download fails."""
import json
import os
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402

NET = {
    "model": {"name": "lenet"},
    "data": {"folder": "data", "eval_split": "test"},
    "optim": {"name": "momentum", "moving_average_decay": 0.9},
    "schedule": {"policy": "fixed", "base_lr": 0.001},
    "devices": ["cpu"],
    "run": {"folder": "run", "steps": 20, "batch_size": 16},
}
CLASSES, SIZE, PICTURES = 4, 28, 12
NEAR = 1e-5  # largest difference of probabilities; both programs use 32-bit floats


# ---- Pumice --------------------------------------------------------------------------------


def predict(*more):
    """Runs `pumice predict`. Returns the probabilities by picture and class."""
    out = json.loads(pumice("predict", "net.json", "pictures", "--json", *more).stdout)
    p = np.zeros((len(out["images"]), CLASSES))
    for i, image in enumerate(out["images"]):
        for one in image["top"]:
            p[i, one["label"]] = one["probability"]
    return [image["file"] for image in out["images"]], p


def safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], np.float32)
            .reshape(t["shape"]) for name, t in header.items()}


# ---- TensorFlow ----------------------------------------------------------------------------


def logits_of(x, v):
    x = tf.nn.relu(tf.nn.conv2d(x, v("conv1/weights"), 1, "SAME") + v("conv1/biases"))
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.nn.relu(tf.nn.conv2d(x, v("conv2/weights"), 1, "SAME") + v("conv2/biases"))
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.reshape(x, [-1, x.shape[1] * x.shape[2] * x.shape[3]])
    x = tf.nn.relu(tf.matmul(x, v("fc3/weights")) + v("fc3/biases"))
    return tf.matmul(x, v("fc4/weights")) + v("fc4/biases")


def pictures(files):
    return np.stack([(tf.io.decode_png(tf.io.read_file(f)).numpy().astype(np.float32) - 128) / 128
                     for f in files])


def probabilities(files, values):
    return tf.nn.softmax(logits_of(pictures(files), lambda n: values["LeNet/" + n])).numpy()


def near(a, b, what):
    gap = np.abs(a - b).max()
    check(gap < NEAR, f"{what}: probabilities differ by {gap}")
    print(f"{what}: within {gap:.1e}")


def reads_ours():
    pumice("train", "net.json")
    os.mkdir("ours")
    pumice("checkpoint", "convert", "run", "ours/model.ckpt-20")
    pumice("checkpoint", "convert", "run", "ours/averages.ckpt", "keep=variables", "averages=on")
    check(tf.train.latest_checkpoint("ours") == "ours/model.ckpt-20", "the newest is another one")
    reader = tf.train.load_checkpoint("ours/model.ckpt-20")
    tensors = safetensors("run/checkpoints/step-000020.safetensors")
    shapes = reader.get_variable_to_shape_map()
    check(set(shapes) == set(tensors) | {"global_step"}, "other names")
    check(reader.get_tensor("global_step") == 20, "another step")
    check(reader.get_tensor("global_step").dtype == np.int64, "the step is no int64")
    for name, value in tensors.items():
        check(list(value.shape) == shapes[name], f"{name}: shape {shapes[name]}")
        check(np.array_equal(reader.get_tensor(name), value), f"{name}: other values")
    print(f"{len(tensors)} tensors are the same")

    names = [n for n in tensors if n.count("/") == 2]
    with tf.Graph().as_default():
        variables = [tf1.get_variable(n, shape=shapes[n]) for n in names]
        with tf1.Session() as session:
            tf1.train.Saver(variables).restore(session, "ours/averages.ckpt")
            values = dict(zip(names, session.run(variables)))
    files, ours = predict()
    near(ours, probabilities(files, values), "TensorFlow with our moving averages")
    files, ours = predict("eval.averages=off")
    near(ours, probabilities(files, tensors), "TensorFlow with our variables")


def adam_goes_on():
    """TensorFlow's Saver restores every variable of Adam from our checkpoint. The powers of its
    decays are those that TensorFlow itself has after as many updates."""
    pumice("train", "net.json", "run.folder=adam", "optim.name=adam", "optim.beta2=0.99",
           "optim.moving_average_decay=0")
    pumice("checkpoint", "convert", "adam", "ours/adam.ckpt-20")
    tensors = safetensors("adam/checkpoints/step-000020.safetensors")
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        variables = [tf1.get_variable(n, shape=t.shape) for n, t in tensors.items()
                     if n.count("/") == 2]
        adam = tf1.train.AdamOptimizer(0.001, beta2=0.99)
        train = adam.apply_gradients([(tf.zeros(v.shape), v) for v in variables], global_step=step)
        powers = [v for v in tf1.global_variables() if v.op.name in ("beta1_power", "beta2_power")]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(20):
                session.run(train)
            theirs = session.run(powers)
            tf1.train.Saver().restore(session, "ours/adam.ckpt-20")
            ours = session.run(powers)
            slot = session.run(adam.get_slot(variables[0], "v"))
    check(len(powers) == 2, "TensorFlow's Adam has other variables")
    check(ours == theirs, f"powers {ours}, but {theirs} in TensorFlow")
    check(np.array_equal(slot, tensors[variables[0].op.name + "/Adam_1"]), "another slot")
    print("TensorFlow's Adam goes on from ours")


def writes_theirs(shapes):
    """Trains the net with TensorFlow and writes its files."""
    averages = tf.train.ExponentialMovingAverage(0.5)
    rng = np.random.default_rng(1)
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        step = tf1.train.get_or_create_global_step()
        with tf1.variable_scope("LeNet"):
            v = {n: tf1.get_variable(n, shape=s, initializer=tf1.random_normal_initializer(0, 0.03))
                 for n, s in shapes.items()}
        x = tf1.placeholder(tf.float32, [None, SIZE, SIZE, 3])
        logits = logits_of(x, v.get)
        loss = tf.reduce_mean((logits - [[3.0, -3.0, 2.0, -2.0]]) ** 2)
        train = tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=step)
        with tf.control_dependencies([train]):
            train = averages.apply(list(v.values()))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(3):
                session.run(train, {x: rng.random((4, SIZE, SIZE, 3), np.float32)})
            for folder, version in (("v2", tf1.train.SaverDef.V2), ("v1", tf1.train.SaverDef.V1)):
                os.mkdir(folder)
                tf1.train.Saver(write_version=version).save(session, folder + "/model.ckpt",
                                                            global_step=step)
            tf1.saved_model.simple_save(session, "saved", {"x": x}, {"logits": logits})
            return (dict(zip(("LeNet/" + n for n in v), session.run(list(v.values())))),
                    dict(zip(("LeNet/" + n for n in v),
                             session.run([averages.average(a) for a in v.values()]))))


def reads_theirs():
    tensors = safetensors("run/checkpoints/step-000020.safetensors")
    shapes = {n[len("LeNet/"):]: t.shape for n, t in tensors.items() if n.count("/") == 2}
    raw, mean = writes_theirs(shapes)
    files, _ = predict()
    apart = np.abs(probabilities(files, raw) - probabilities(files, mean)).max()
    check(apart > 100 * NEAR, f"the averages say what the variables say ({apart}): no test of them")
    for path in ("v2", "v2/model.ckpt-3", "v1", "v1/model.ckpt-3", "saved"):
        files, ours = predict("run.folder=none", f"eval.checkpoint={path}", "eval.averages=off")
        near(ours, probabilities(files, raw), f"from TensorFlow's {path}")
        files, ours = predict("run.folder=none", f"eval.checkpoint={path}", "eval.averages=on")
        near(ours, probabilities(files, mean), f"from TensorFlow's {path}, averages")
    for path in ("v2/model.ckpt-3", "v1/model.ckpt-3"):
        folder = "from_" + path[:2]
        printed = pumice("train", "net.json", f"run.folder={folder}", f"init.checkpoint={path}",
                         "run.steps=2").stderr
        for part in ("8 of 8 variables", "8 moving averages, 8 optimizer slots"):
            check(part in printed, printed)
    pumice("checkpoint", "diff", "from_v1", "from_v2")
    for path in ("v2/model.ckpt-3", "v1/model.ckpt-3"):
        folder = "on_" + path[:2]
        printed = pumice("train", "net.json", f"run.folder={folder}", f"init.checkpoint={path}",
                         "init.restore=all", "run.steps=3").stderr
        check("moving averages and the step 3 are restored" in printed, printed)
        ours = safetensors(f"{folder}/checkpoints/step-000003.safetensors")
        reader = tf.train.load_checkpoint(path)
        for name, value in ours.items():
            check(np.array_equal(reader.get_tensor(name), value), f"{path}: {name} is another")
    print("slots, averages and step are TensorFlow's")


def main():
    folder = tempfile.mkdtemp(prefix="pumice-tensorflow-")
    os.chdir(folder)
    try:
        pumice("dataset", "make", "shapes", "data", f"size={SIZE}", "train=64", "validation=0",
               f"test={PICTURES}")
        pumice("dataset", "inspect", "data", "--records", str(PICTURES), "--pictures", "all")
        os.mkdir("pictures")
        for name in os.listdir("all"):
            if name.startswith("shapes_test"):
                os.rename("all/" + name, "pictures/" + name)
        check(len(os.listdir("pictures")) == PICTURES, "not all pictures are there")
        with open("net.json", "w") as f:
            json.dump(NET, f)
        reads_ours()
        adam_goes_on()
        reads_theirs()
    finally:
        shutil.rmtree(folder)
    print("tensorflow_check: TensorFlow", tf.__version__, "agrees")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    packages.find("tensorflow", ["tensorflow"], ["tensorflow-cpu>=2.12"])
    import numpy as np
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf.get_logger().setLevel("ERROR")
    main()
