"""The command sbnmt: its imports, its messages, and how a step ends."""

import contextlib
import importlib
import logging
import os
import runpy
import signal
import subprocess
import sys
import termios
import warnings

import pytest
from commands import PLUGIN, ROOT
from steps import call, environment, imported, put, ran

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.command_names import STEPS
from sbnmt_plugin.tools.recipes import runner

CHECK = str(ROOT / "examples" / "toy" / "check.py")


def fails(*words):
    """Return the one line that a step prints when it fails."""
    done = ran(step_command(*words))
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_a_users_mistake_is_one_line():
    words = "bpe", "apply", "--codes", "none", "in", "out"
    assert fails(*words) == "sbnmt bpe: error: none does not exist\n"


@pytest.mark.parametrize(
    ("step", "words", "told"),
    [
        ("translate", "a --sb-rescore", "(--sb-rescore: do you mean --rescore?)"),
        ("translate", "a b --beems=3", "b --beems=3 (--beems: do you mean --beam?)"),
        ("bundle", "--path=a --output=b c --sb-direction", "--sb-direction"),
    ],
)
def test_an_unknown_option_is_told_beside_the_one_that_it_looks_like(
    step, words, told, capsys
):
    """And beside none, where it looks like none."""
    made = importlib.import_module(f"sbnmt_plugin.tools.commands.{step}")
    with pytest.raises(SystemExit, match="2"):
        call(made, *words.split())
    assert capsys.readouterr().err.endswith(f"{told}\n")


def test_a_missing_plugin_is_a_sentence(tmp_path):
    words = ["train", "data", "--arch", "x", "--user-dir", tmp_path / "none"]
    assert f"--user-dir {tmp_path / 'none'} must be a folder, but is" in fails(*words)
    # and what begins with a file stays as it is
    words = ["bpe", "apply", "--codes", tmp_path / "none", "in", "out"]
    assert fails(*words) == f"sbnmt bpe: error: {tmp_path / 'none'} does not exist\n"


def test_standard_input_is_one_input():
    for first, second in ("-", "-"), ("-", "/dev/stdin"):
        words = ["score", "--hypothesis", first, f"--reference={second}"]
        assert "error: standard input must be one input" in fails(*words)


def test_what_the_system_refuses_is_one_line(tmp_path):
    source = put(tmp_path / "in", "a b")
    words = ["tokenise", "--language", "none"]
    assert f"{tmp_path}: Is a directory: choose" in fails(*words, source, tmp_path)
    assert f"{source}: File exists: choose" in fails(*words, source, source / "out")
    assert f"{tmp_path} is no file" in fails(*words, tmp_path, "x")
    assert list(tmp_path.iterdir()) == [source]


# a command is started as this, and then imports neither fairseq nor torch
COMMAND = "import sys; sys.argv[0] = 'sbnmt'"
FALL = f"""
{COMMAND}
import os, signal
from sbnmt_plugin.tools.command import run
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
def fall():
    {{}}
run(fall)
"""


def fallen(how):
    """Run a command that does nothing but fall."""
    return ran([sys.executable, "-c", FALL.format(how)], cwd=ROOT)


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "RuntimeError"])
def test_an_interrupt_is_one_line(raised):
    """And any other surprise has its traceback."""
    done = fallen(f"raise {raised}")
    interrupted = raised == "KeyboardInterrupt"
    assert done.stderr.endswith("sbnmt: interrupted\n") == interrupted
    assert ("Traceback" in done.stderr) != interrupted
    interrupts = -signal.SIGINT, 128 + signal.SIGINT
    assert (done.returncode in interrupts) == interrupted


@pytest.mark.parametrize(
    "sent, statuses",
    [
        ("SIGTERM", {128 + signal.SIGTERM}),
        ("SIGINT", {-signal.SIGINT, 128 + signal.SIGINT}),
        (None, {1}),
    ],
)
def test_a_signal_ends_a_command_whatever_a_library_makes_of_it(sent, statuses):
    """omegaconf, in the middle of a change, makes an AttributeError of any exception;
    without a signal that is an error like others."""
    kill = f"os.kill(os.getpid(), signal.{sent})" if sent else "sys.exit(3)"
    done = fallen(f"""try: {kill}
    except BaseException: raise AttributeError('half changed')""")
    assert done.returncode in statuses, done.stderr
    assert ("half changed" in done.stderr) == (sent is None)


# terminals and pipes

EVERY_HELP = """
import sys
from unittest import mock
from sbnmt_plugin.__main__ import main
from sbnmt_plugin.tools.command_names import STEPS
for step in ["--help", *(f"{step} --help" for step in STEPS)]:
    with mock.patch.object(sys, "argv", ["sbnmt", *step.split()]):
        try:
            main()
        except SystemExit as end:
            assert not end.code, step
"""
STRANGE = "λ = 0 … 好 \udcff"  # the last: a byte of a file's name
PRINTS = f"""
{COMMAND}
from sbnmt_plugin.tools.command import run
run(lambda: print({STRANGE!a}))
"""


def printed(program, encoding):
    """Return what a program prints on a terminal of an encoding."""
    variables = {**environment(), "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", program], env=variables, **PIPES)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(encoding)


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
ENCODINGS = "latin-1", "ascii", "cp1252", "utf-8"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_letter_of_a_result_ends_a_step(encoding):
    found = printed(PRINTS, encoding)
    known = found.encode("ascii", "backslashreplace").decode("unicode-escape")
    assert known == STRANGE + "\n", "a letter is lost"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_an_empty_one(tmp_path, closed):
    """Nothing that is for standard error goes into the output either."""
    said = "print(sys.stdin.read(), end=''); print('told', file=sys.stderr)"
    script = put(
        tmp_path / "step.py",
        COMMAND,
        "from sbnmt_plugin.tools.command import run",
        f"run(lambda: exec({said!r}))",
    )
    words = ["bash", "-c", f'"$@" {closed}', "bash", sys.executable, script]
    found = subprocess.run(words, env=environment(), capture_output=True, input=b"in")
    err = b"" if "2>" in closed else b"told\n"
    out = b"in" if closed == "2>&-" else b""
    assert (found.returncode, found.stdout, found.stderr) == (0, out, err)


def test_the_check_of_letters_can_fail():
    for encoding in ENCODINGS:
        with pytest.raises(AssertionError, match="EncodeError"):
            printed(f"print({STRANGE!a})", encoding)
    with pytest.raises(AssertionError):
        assert b"?".decode("unicode-escape") == STRANGE


def test_every_step_prints_its_help_on_a_terminal_that_is_not_utf_8():
    found = printed(EVERY_HELP, "ascii")
    assert all(f"usage: sbnmt {step}" in found for step in STEPS)


def test_what_a_process_of_ours_writes_is_utf_8(monkeypatch):
    """Its output is read as that, also where the terminal is none."""
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    words = [sys.executable, "-c", "print('好')"]
    done = subprocess.run(words, env=environment(), **PIPES)
    assert done.stdout.decode() == "好\n"


def on_stderr(program, terminal):
    """Return what a program writes to standard error, which may be a terminal."""
    reader, writer = os.openpty() if terminal else os.pipe()
    if terminal:
        termios.tcsetwinsize(writer, (24, 80))
    started = subprocess.Popen([sys.executable, "-c", program], stderr=writer)
    os.close(writer)
    found = b""
    with contextlib.suppress(OSError):  # of a terminal that is closed
        while piece := os.read(reader, 4096):
            found += piece
    assert started.wait() == 0
    os.close(reader)
    return found.decode()


BAR = f"""
{COMMAND}
from sbnmt_plugin.tools.progress import progress, write
bar = progress(range(3), unit="line", mininterval=0)
for number in bar:
    bar.set_description(f"number {{number}}")
write("failed", file=sys.stderr)
"""


def test_a_progress_bar_is_for_terminals():
    assert "3/3" in on_stderr(BAR, terminal=True)
    assert on_stderr(BAR, terminal=False) == "failed\n"


def test_the_check_of_bars_can_fail():
    plain = BAR.replace("progress(range(3)", "progress.func(range(3)")
    with pytest.raises(AssertionError):
        assert on_stderr(plain, terminal=False) == "failed\n"


def test_a_program_that_has_the_name_of_the_command_registers(tmp_path):
    """Which is what --user-dir does."""
    lines = ["import sys", "sys.path.insert(0, sys.argv[1])", "import sbnmt_plugin"]
    assert "torch" in imported(put(tmp_path / "sbnmt.py", *lines), ROOT)


WITHOUT = """
import sys
sys.modules["jinja2"] = None
sys.argv[0] = "sbnmt"
from sbnmt_plugin.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "words", [["report"], ["trace-page", "--trace", "none"]], ids=lambda w: w[0]
)
def test_a_missing_extra_is_named(tmp_path, words):
    command = [sys.executable, "-c", WITHOUT, *words, "--output", str(tmp_path / "x")]
    done = ran(command, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr == (
        f"sbnmt {words[0]}: error: the module jinja2 must be installed for this step, "
        "but is not: run pip install -c constraints.txt '.[report]' in the clone\n"
    )


MESSAGES = {  # of fairseq's, and whether the steps of sbnmt show them
    ("fairseq.tasks.fairseq_task", "can_reuse_epoch_itr = True"): False,
    ("fairseq.tasks.fairseq_task", "creating new batches for epoch 1"): True,
    ("fairseq.tasks.text_to_speech", "Please install tensorboardX: pip …"): False,
    ("fairseq.tasks.text_to_speech", "can_reuse_epoch_itr = True"): True,
    ("fairseq.tasks.translation", "can_reuse_epoch_itr = True"): True,
}


@pytest.fixture
def shown(caplog):
    """Return a function that logs all MESSAGES and returns those that are shown."""
    loggers = [logging.getLogger(name) for name in quiet.SILENCED]
    for name in (None, "fairseq"):  # a report has quietened fairseq
        caplog.set_level(logging.INFO, name)

    def logged():
        caplog.clear()
        for name, text in MESSAGES:
            logging.getLogger(name).info(text)
        return {(name, text) for name, _, text in caplog.record_tuples}

    for logger in loggers:
        logger.removeFilter(quiet.wanted)
    yield logged
    for logger in loggers:
        logger.removeFilter(quiet.wanted)


def test_two_messages_of_fairseqs_are_left_out_and_no_others(shown):
    wanted = {key for key, kept in MESSAGES.items() if kept}
    assert shown() == set(MESSAGES)
    with quiet.while_importing():
        assert shown() == wanted
    assert shown() == set(MESSAGES)
    with warnings.catch_warnings():
        quiet.silence()
        quiet.silence()
    with quiet.while_importing():
        pass
    assert shown() == wanted
    loggers = [logging.getLogger(name) for name in quiet.SILENCED]
    assert all(logger.filters == [quiet.wanted] for logger in loggers)


def test_importing_the_plugin_leaves_a_programs_logging_as_it_is():
    lines = "import logging; root = logging.getLogger()", "print(root.level)"
    lines += "import sbnmt_plugin", "print(root.level, root.handlers)"
    lines += ("import sys; print({'torch', 'fairseq'} <= {*sys.modules})",)
    done = ran([sys.executable, "-c", "\n".join(lines)], env=environment())
    assert done.stdout == "30\n30 []\nTrue\n" and not done.stderr


@pytest.mark.usefixtures("shown")
def test_a_users_warning_that_resembles_one_that_is_left_out_is_kept():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        quiet.silence()
        for message in quiet.WARNINGS:
            for text in (message, f"\n{message} more", f"my {message}", message[:-1]):
                warnings.warn(text, stacklevel=1)
    kept = [
        text for message in quiet.WARNINGS for text in (f"my {message}", message[:-1])
    ]
    assert [str(warning.message) for warning in told] == kept


NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
NOISE = "tensorboardX", "can_reuse_epoch_itr", "pin_memory", "JobRuntime", "Warning: "
STARTED = {  # how the plugin is started, and whether what calls for nothing is told
    "a script of an example": ([sys.executable, CHECK, "--help"], False),
    "a user's fairseq": ([sys.executable, "-m", "fairseq_cli.train", "--help"], True),
}


@pytest.mark.parametrize("name", STARTED)
def test_what_our_commands_start_is_quiet_and_what_a_user_starts_is_not(name):
    command, told = STARTED[name]
    done = ran(command, env=environment())
    assert done.returncode == 0, done.stderr
    assert ("tensorboardX: pip install" in done.stdout + done.stderr) == told
    assert told or not done.stderr


def test_a_command_of_fairseqs_that_a_recipe_starts_has_its_own_messages(
    data, teacher, tmp_path
):
    words = [data, "--path", teacher, *PLUGIN, "--task", "sb_translation", "--cpu"]
    words += ["--sb-direction", "r2l", "--beam", 2, "--batch-size", 8]
    command = runner.executable(["fairseq-generate", *words])
    done = ran(command, env={**environment(), **NO_GPU})
    assert done.returncode == 0, done.stderr
    assert "Generate test with beam=2" in done.stdout
    assert not [noise for noise in NOISE if noise in done.stdout + done.stderr]
    missing = runner.executable(["fairseq-generate", tmp_path, *words[1:]])
    done = ran(missing, env=environment())
    assert done.returncode == 1 and "Traceback" in done.stderr


SCRIPTS_OF_EXAMPLES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*/*.py")
)


@pytest.mark.parametrize("script", SCRIPTS_OF_EXAMPLES)
def test_scripts_of_examples_show_their_help(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert not stopped.value.code
    assert "usage: " in capsys.readouterr().out


def test_a_reader_that_has_enough_is_no_error():
    words = step_command("recipe", "--list")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, **pipes)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1


@pytest.mark.parametrize(
    "words",
    [
        ["recipe", "toy", "--work", "a:b"],
        ["binarise", "-s", "a", "-t", "b", "--destdir", "a:b"],
    ],
)
def test_a_folder_that_fairseq_would_split_is_refused(words, tmp_path):
    done = ran(step_command(*words), cwd=tmp_path, env=environment())
    assert done.returncode == 2 and "must have no : in it" in done.stderr
    assert not list(tmp_path.iterdir())
