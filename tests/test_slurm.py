"""Jobs by submitit, on this machine: followed, preempted, found again, refused.

What differs on Slurm is how jobs are asked for and looked up: see docs/operations.md.
"""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from steps import call, environment, put, wait_for

from sbnmt_plugin.tools.commands import pseudo
from sbnmt_plugin.tools.recipes import costs, runner
from sbnmt_plugin.tools.recipes import slurm as cluster
from sbnmt_plugin.tools.recipes.jobs import alive, jobs_to_follow
from sbnmt_plugin.tools.recipes.process import Logged
from sbnmt_plugin.tools.recipes.slurm import Cluster
from sbnmt_plugin.tools.recipes.step import Step

pytest.importorskip("submitit")
# notes that it was started, and goes on when it is allowed to
PATIENT = """
import os, sys, time
with open(sys.argv[1] + ".begun", "a") as file:
    print(os.getppid(), file=file)
while not os.path.exists(sys.argv[1] + ".go"):
    time.sleep(0.05)
print("5 sentences, done", flush=True)
sys.exit(int(sys.argv[2]))
"""
FOLLOW = """
import sys
sys.argv[0] = "sbnmt"
from pathlib import Path
from sbnmt_plugin.tools.recipes import slurm as cluster
from sbnmt_plugin.tools.recipes.process import Logged
cluster.ASK = 1.0
name, *words = sys.argv[1:]
command = Logged(words, "patient", Path(name + ".log"))
jobs = Path(name + ".jobs")
cluster.Cluster("local").run(jobs, [command], 0, lambda *told: None)
"""


@pytest.fixture(autouse=True)
def questions_at_once(monkeypatch):
    monkeypatch.setattr(cluster, "ASK", 1.0)


def patient(name, status=0):
    return [sys.executable, "-c", PATIENT, str(name), str(status)]


def command(name, status=0, typed="patient"):
    return Logged(patient(name, status), typed, Path(f"{name}.log"))


def begun(name):
    """Processes above those that ran, in order."""
    path = Path(f"{name}.begun")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def children(process):
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(pid) for pid in path.read_text().split()]


def follows(name, *words):
    """Another process that submits a patient command, or follows it."""
    words = [sys.executable, "-c", FOLLOW, str(name), *(words or patient(name))]
    return subprocess.Popen(words, env=environment(), text=True, stderr=subprocess.PIPE)


@pytest.fixture(params=["asked for", "ignored"])
def interrupts(request):
    """SIGINT as a terminal's children have it, and those of a script's background."""
    ways = {"asked for": signal.default_int_handler, "ignored": signal.SIG_IGN}
    before = signal.signal(signal.SIGINT, ways[request.param])
    yield
    signal.signal(signal.SIGINT, before)


def refused(reason):
    return pytest.raises(ValueError, match=reason)


def test_each_of_an_array_leaves_status_and_log(tmp_path):
    names = [tmp_path / "a", tmp_path / "b"]
    for name in names:
        put(Path(f"{name}.go"))
    commands = [command(names[0]), command(names[1], status=3)]
    told, jobs = [], tmp_path / "jobs"
    found = Cluster("local").run(jobs, commands, 0, lambda *line: told.append(line))
    assert found == [0, 3]
    assert [place for place, line in told if line.startswith("job ")] == [0, 1]
    for name in names:
        lines = costs.read_log(Path(f"{name}.log"))
        kinds = [line.partition("2")[0] for line in lines]
        assert kinds == [costs.LAUNCH, "5 sentences, done", costs.AT, costs.END]
    assert not (jobs / "jobs.json").exists()


def test_a_preempted_job_is_queued_again_and_ends_well(tmp_path):
    """USR2 is what Slurm sends, and submitit waits for."""
    name = tmp_path / "a"
    follower = follows(name)
    wait_for(lambda: begun(name))
    os.kill(begun(name)[0], signal.SIGUSR2)
    wait_for(lambda: len(begun(name)) == 2)
    put(Path(f"{name}.go"))
    assert follower.wait(60) == 0
    lines = costs.read_log(Path(f"{name}.log"))
    assert sum(line.startswith(costs.LAUNCH) for line in lines) == 2
    assert lines.count("5 sentences, done") == 1


@pytest.mark.parametrize("whom", ["the command", "its job", "its machine"])
def test_a_job_that_has_not_ended_by_itself_is_an_error(tmp_path, whom):
    """Slurm tells all processes; some commands then exit with a status of their own."""
    name = tmp_path / "a"
    follower = follows(name, *patient(name, status=1))
    wait_for(lambda: begun(name))
    (number,) = json.loads((tmp_path / "a.jobs/jobs.json").read_text())["jobs"]
    (job,) = begun(name)
    (child,) = children(job)
    if whom == "its machine":
        for process in int(number), job:
            os.kill(process, signal.SIGKILL)
    else:
        os.kill(job if whom == "its job" else child, signal.SIGTERM)
    _, said = follower.communicate(timeout=60)
    assert follower.returncode == 1
    assert f"job {number} must leave its exit status, but the cluster knows" in said
    assert not (tmp_path / "a.jobs" / "0.status").exists()


def test_a_killed_follower_is_replaced(tmp_path):
    name, jobs = tmp_path / "a", tmp_path / "a.jobs"
    follower = follows(name)
    wait_for(lambda: begun(name))
    follower.kill()
    follower.wait()
    # by nobody else, and by no run without a cluster
    with refused("job .* is at work with other options"):
        Cluster("local").run(jobs, [command(name, typed="x")], 0, lambda *_: None)
    bench = runner.Runner(tmp_path, {})
    jobs.rename(tmp_path / "jobs-a")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs-a").rename(tmp_path / "jobs" / "a")
    with refused("give --executor local to follow it"):
        bench.run(Step("a", "", patient(name), tmp_path / "made"))
    (tmp_path / "jobs" / "a").rename(jobs)
    second = follows(name)
    put(Path(f"{name}.go"))
    assert second.wait(60) == 0
    assert len(begun(name)) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_of_a_step_are_seen_whatever_their_number(workers, tmp_path, monkeypatch):
    """As ``sbnmt pseudo --of 2`` after ``--of 1``, or the other way round."""
    everyone = "sbnmt_plugin.tools.recipes.jobs.alive"
    monkeypatch.setattr(everyone, lambda executor, names: set(names))
    books = {"executor": "local", "jobs": ["1", "2", "3"], "commands": ["x"] * 3}
    put(tmp_path / "jobs" / "pseudo" / "jobs.json", json.dumps(books))
    step = Step.of("pseudo", "", ["true"], tmp_path / "made", gpus=0, workers=workers)
    with refused("job 1 is at work with other options"):
        runner.Runner(tmp_path, {}, Cluster("local")).run(step)
    with refused("give --executor local to follow it"):
        runner.Runner(tmp_path, {}).run(step)


def test_what_has_ended_unseen_is_not_done_again(tmp_path):
    name, jobs = tmp_path / "a", tmp_path / "a.jobs"
    put(jobs / "0.status", "0")
    books = {"executor": "local", "jobs": ["4194305"], "commands": ["patient"]}
    put(jobs / "jobs.json", json.dumps(books))
    assert jobs_to_follow(jobs, ["patient"]) == ["4194305"]
    assert not jobs_to_follow(jobs, ["others"])
    told = []
    found = Cluster("local").run(jobs, [command(name)], 0, lambda _, x: told.append(x))
    assert found == [0]
    assert told == ["job 4194305 is followed again"]
    assert not begun(name)
    put(jobs / "jobs.json", json.dumps(books))
    (jobs / "0.status").unlink()
    assert not jobs_to_follow(jobs, ["patient"])  # it has left no status
    put(jobs / "0.status", "1")
    assert not jobs_to_follow(jobs, ["patient"])  # it has failed: once more


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_recipe_cancels_its_jobs(tmp_path):
    bench = runner.Runner(tmp_path, {}, Cluster("local"))
    name = tmp_path / "a"
    step = Step("train/a", "", patient(name), tmp_path / "made", gpus=0)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(bench.run, step)
        wait_for(lambda: begun(name))
        (job,) = begun(name)
        (child,) = children(job)
        bench.stop()
        with refused("job .* is cancelled"):
            future.result()
    wait_for(lambda: not any(Path(f"/proc/{gone}").exists() for gone in (job, child)))
    lines = costs.read_log(tmp_path / "logs" / "train-a.log")
    assert "5 sentences, done" not in lines


def test_a_job_that_is_being_submitted_is_cancelled_too(tmp_path, monkeypatch):
    """Also where its follower ends before the jobs to be cancelled are looked up."""
    cancelled = []
    bench = Cluster("local")

    def submit(job):
        bench.ending.set()  # as cancel() begins
        return SimpleNamespace(job_id=7)

    monkeypatch.setattr(bench, "made", lambda *_: SimpleNamespace(submit=submit))
    monkeypatch.setattr(cluster, "cancel", lambda _, names: cancelled.extend(names))
    words = [command(tmp_path / "a")], 0, lambda *_: None
    with refused("job 7 is cancelled"):
        bench.run(tmp_path / "jobs", *words)
    bench.cancel()
    assert cancelled == ["7"]
    with refused("no job is submitted"):
        bench.run(tmp_path / "others", *words)


def test_steps_without_a_model_stay_here(tmp_path, capsys):
    bench = runner.Runner(tmp_path, {}, Cluster("nowhere"))
    put(Path(f"{tmp_path / 'a'}.go"))
    step = Step("texts", "", patient(tmp_path / "a"), tmp_path / "made")
    bench.run(step)
    assert "done in" in capsys.readouterr().out
    with refused("--cluster parameters .* but submitit says"):
        bench.run(Step("train", "", ["true"], tmp_path / "made", gpus=1))


def test_what_is_asked_of_a_cluster_is_checked(tmp_path, monkeypatch):
    assert cluster.chosen(None, None) is None
    with refused("--cluster is for --executor"):
        cluster.chosen(None, ["a=1"])
    with refused("KEY=VALUE …, each value YAML, but is .*partition"):
        cluster.chosen("slurm", ["partition"])
    with refused(r"KEY=VALUE …, each value YAML, but is .*b=\["):
        cluster.chosen("slurm", ["a=1", "b=["])
    found = cluster.chosen("local", ["timeout_min=5", "slurm_partition=gpu"])
    assert found.parameters == {"timeout_min": 5, "slurm_partition": "gpu"}
    found.made(tmp_path / "jobs", 1)
    for wrong in "teaspoons=3", "timeout_min=long", "slurm_teaspoons=3", "=3":
        with refused("--cluster parameters of submitit's AutoExecutor"):
            cluster.chosen("local", [wrong]).made(tmp_path / "jobs", 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused("--executor slurm must be there, .* but submitit says: .*srun"):
        Cluster("slurm").made(tmp_path / "jobs", 0)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with refused(r"submitit must be installed .* '.\[cluster\]'"):
        Cluster("local").made(tmp_path / "jobs", 0)


def test_slurms_answers_are_understood(tmp_path, monkeypatch):
    squeue = put(tmp_path / "squeue", "#!/bin/sh", 'cat "$ANSWER.out"', "exit $STATUS")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ANSWER", str(tmp_path / "answer"))
    monkeypatch.setenv("STATUS", "0")
    put(tmp_path / "answer.out", "7_0", "7_2")
    assert alive("slurm", ["7_0", "7_1", "7_2"]) == {"7_0", "7_2"}
    put(tmp_path / "answer.out")
    assert not alive("slurm", ["7"])
    monkeypatch.setenv("STATUS", "1")  # no answer: nobody can tell
    assert alive("slurm", ["7"]) == {"7"}
    put(squeue, "#!/bin/sh", "echo 'error: Invalid job id specified' >&2", "exit 1")
    assert not alive("slurm", ["7"])


def test_an_array_of_jobs_translates_as_one_command_does(data, teacher, tmp_path):
    source = data.parent / "texts" / "test.en"
    words = [data, "--path", teacher, "--sb-direction", "r2l", "--cpu", "--beam", 2]
    words += ["--input", source, "--shard-size", 5]
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    call(pseudo, *words, "--output", one)
    asked = ["--executor", "local", "--of", 2]
    call(pseudo, *words, "--output", two, *asked)
    assert two.read_bytes() == one.read_bytes()
    logs = {path.name for path in (tmp_path / "two.tsv.shards" / "logs").iterdir()}
    assert logs == {"pseudo-0.log", "pseudo-1.log"}
    with refused("--executor starts all workers: leave --worker out"):
        call(pseudo, *words, "--output", two, *asked, "--worker", 1)
    with refused("--of must be ≥ 1, but is 0"):
        call(pseudo, *words, "--output", two, *asked, "--of", 0)
    for name in "-", "/dev/stdin", "/dev/null", tmp_path / "no":
        with refused("--input must be a file with --executor"):
            call(pseudo, *words, "--input", name, "--output", one, *asked)
