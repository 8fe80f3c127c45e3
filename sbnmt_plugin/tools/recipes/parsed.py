"""Options of a recipe's commands, asked of fairseq's parsers before the first one runs.

A decoding comes hours after the start: a wrong name in recipe.yaml is told at once.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from sbnmt_plugin.tools.launch import divided
from sbnmt_plugin.tools.recipes.step import Step

BEFORE = "sbnmt", "sbnmt_plugin"  # the word before the name of a step of ours
PROCESSES = "--nproc-per-node"  # of torchrun


def check_options(steps: Iterable[Step]) -> None:
    """Parse the command lines of steps, in a process that ends and frees its memory.

    Raises:
        ValueError: with the step, and the parser's message.
    """
    commands = {step.name: [str(word) for word in step.words] for step in steps}
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        pool.submit(parse_all, commands).result()


def parse_all(commands: dict[str, list[str]]) -> None:
    """Parse command lines of fairseq's kind, and leave out the others.

    Args:
        commands: by the names of their steps.

    Raises:
        ValueError: see :func:`check_options`.
    """
    from sbnmt_plugin import quiet

    with quiet.while_importing():
        from sbnmt_plugin.register import register

    register()
    for name, words in commands.items():
        told = io.StringIO()
        try:
            with contextlib.redirect_stderr(told):
                parse(words)
        except (SystemExit, ValueError) as error:
            lines = told.getvalue().splitlines() or [str(error)]
            reason = lines[-1].partition("error: ")[2] or lines[-1]
            raise ValueError(
                f"recipe.yaml, or the command line, gives step {name} an option that "
                f"its command refuses: {reason}"
            ) from error


def parse(words: list[str]) -> None:
    """Parse one command line; leave out one that is not fairseq's.

    Raises:
        SystemExit, ValueError: it is wrong.
    """
    from fairseq import options

    from sbnmt_plugin.fairseq_options import LINES
    from sbnmt_plugin.given_options import refuse_typed
    from sbnmt_plugin.tools.jobs import job_parser

    start = next((i + 1 for i, x in enumerate(words) if x in BEFORE), 0)
    program, *given = words[start:]
    if program in ("fairseq-train", "train"):
        if PROCESSES in words[:start]:
            divided(given, int(words[words.index(PROCESSES) + 1]))
        options.parse_args_and_arch(options.get_training_parser(), given)
    elif program == "fairseq-generate":
        options.parse_args_and_arch(options.get_generation_parser(), given)
    elif program in ("pseudo", "rerank"):
        own = job_parser(None)
        for flag in ("--l2r", "--r2l", "--engine"):
            own.add_argument(flag)
        parser = options.get_generation_parser()
        refuse_typed(parser, LINES)
        _, others = own.parse_known_args(given)
        options.parse_args_and_arch(parser, [*others, "--task", "sb_translation"])
