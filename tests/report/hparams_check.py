"""Checks that TensorBoard's HParams plugin shows a study of pumice sweep.

    python3 tests/report/hparams_check.py PUMICE FOLDER

Trains a small study with halving, repeats and a point that fails. A running TensorBoard must show
the points, their values and the means of the study's own table, with both of its loaders. FOLDER
and the exit code 77 are as in tensorboard_check.py."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packages  # noqa: E402
from checks import check, pumice  # noqa: E402
from tensorboard_check import NET, Server, same  # noqa: E402

STUDY = {
    "metric": "accuracy", "repeats": 2,
    "vary": {"schedule.base_lr": [0.01, 0.001, 1000],
             "optim": [{"name": "momentum", "momentum": 0.9}, {"name": "sgd"}],
             "schedule.warmup_steps": [0]},
    "halving": {"factor": 3, "first_steps": 20},
}
STATUSES = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]


def sweep(work):
    config = {**NET, "study": {**STUDY, "folder": f"{work}/study"}}
    config.pop("optim")
    config["data"] = {"folder": f"{work}/data"}
    with open(f"{work}/study.json", "w") as f:
        json.dump(config, f)
    return json.loads(pumice("sweep", f"{work}/study.json", "--json").stdout)


def groups(server, keys):
    request = {
        "allowedStatuses": STATUSES, "startIndex": 0, "sliceSize": 100,
        "aggregationType": "AGGREGATION_AVG",
        "colParams": [{"hparam": k} for k in keys] + [{"metric": {"tag": "accuracy"}}],
    }
    got = server.get("plugin/hparams/session_groups", request=json.dumps(request))
    found = {g["name"]: g for g in got.get("sessionGroups", [])}
    return found if len(found) == 6 else None


def experiment(server):
    got = server.get("plugin/hparams/experiment", request=json.dumps({"includeMetrics": True}))
    return got if got.get("timeCreatedSecs") else None


def check_point(point, group):
    name, ended = point["name"], [s["status"] for s in group["sessions"]]
    want = {"schedule.base_lr": point["values"]["schedule.base_lr"], "schedule.warmup_steps": 0,
            "optim": point["values"]["optim"]["name"]}
    if want["optim"] == "momentum":
        want["optim.momentum"] = 0.9
    check(group["hparams"] == want, f"{name}: {group['hparams']}, not {want}")
    failed = point["failed"] > 0
    check(ended == ["STATUS_FAILURE" if failed else "STATUS_SUCCESS"] * 2, f"{name}: {ended}")
    if failed:
        return
    metric = [m for m in group["metricValues"] if m["name"]["tag"] == "accuracy"]
    check(len(metric) == 1 and same(metric[0]["value"], point["mean"]) and
          metric[0]["trainingStep"] == point["step"], f"{name}: {metric}, not {point}")


def check_server(study, folder, fast):
    server = Server(folder, fast)
    try:
        found = server.wait(lambda: experiment(server), "shows the experiment")
        infos = {h["name"]: h for h in found["hparamInfos"]}
        check(sorted(infos) == ["optim", "optim.momentum", "schedule.base_lr",
                                "schedule.warmup_steps"], f"keys: {infos}")
        check(infos["optim"]["domainDiscrete"] == ["momentum", "sgd"], f"{infos['optim']}")
        check(infos["schedule.base_lr"]["domainInterval"] == {"minValue": 0.001, "maxValue": 1000},
              f"{infos['schedule.base_lr']}")
        shown = server.wait(lambda: groups(server, infos), "shows all points")
        for point in study["points"]:
            check(point["name"] in shown, f"no group {point['name']}: {list(shown)}")
            check_point(point, shown[point["name"]])
    finally:
        server.stop()


def main():
    packages.find("tensorboard", ["tensorboard"], ["tensorboard>=2.17"])
    with tempfile.TemporaryDirectory(prefix="pumice-hparams-") as work:
        pumice("dataset", "make", "shapes", f"{work}/data", "size=32", "train=48",
               "validation=0", "test=20")
        study = sweep(work)
        steps = sorted(p["step"] for p in study["points"])
        check(steps == [20, 20, 20, 20, 40, 40], f"steps of the points: {steps}")
        check(sum(p["failed"] > 0 for p in study["points"]) == 2, "two points fail")
        for fast in "true", "false":
            check_server(study, f"{work}/study", fast)
    print("hparams_check: keys, points, states and means: as they should be")


if __name__ == "__main__":
    main()
