"""Options of a recipe's commands, asked of fairseq's parsers before the first one runs.

A decoding comes hours after the start: a wrong name in recipe.yaml is told at once.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from sbnmt_plugin.tools.recipes.step import Step

BEFORE = "sbnmt", "sbnmt_plugin"  # the word before the name of a step of ours


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
    for name, words in commands.items():
        start = next((i + 1 for i, x in enumerate(words) if x in BEFORE), 0)
        told = io.StringIO()
        try:
            with contextlib.redirect_stderr(told):
                parse(words[start], words[start + 1 :])
        except (SystemExit, ValueError) as error:
            lines = told.getvalue().splitlines() or [str(error)]
            reason = lines[-1].partition("error: ")[2] or lines[-1]
            raise ValueError(
                f"recipe.yaml gives step {name} an option that its command refuses: "
                f"{reason}"
            ) from error


def parse(program: str, words: list[str]) -> None:
    """Parse the words of one command; leave out one that is not fairseq's.

    Args:
        program: fairseq's command, or a step of ours.

    Raises:
        SystemExit, ValueError: they are wrong.
    """
    from fairseq import options

    from sbnmt_plugin.fairseq_options import LINES
    from sbnmt_plugin.given_options import refuse_typed
    from sbnmt_plugin.register import register
    from sbnmt_plugin.tools.jobs import job_parser

    register()
    if program in ("fairseq-train", "train"):
        options.parse_args_and_arch(options.get_training_parser(), words)
    elif program == "fairseq-generate":
        options.parse_args_and_arch(options.get_generation_parser(), words)
    elif program in ("pseudo", "rerank"):
        own = job_parser(None)
        for flag in ("--l2r", "--r2l", "--engine"):
            own.add_argument(flag)
        parser = options.get_generation_parser()
        refuse_typed(parser, LINES)
        _, others = own.parse_known_args(words)
        options.parse_args_and_arch(parser, [*others, "--task", "sb_translation"])
