"""Task ``sb_translation``: its model, its search, its training step, validation."""

import functools
import os
from argparse import Namespace
from typing import Any

from fairseq import utils
from fairseq.data import encoders
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask

from sbnmt_plugin.checkpoint_checks import (
    check_checkpoints,
    check_dictionaries,
    check_direction,
    check_function,
    check_goes_on,
    check_start,
    fingerprint,
    forget_files,
)
from sbnmt_plugin.checkpoints import Checkpoint, checkpoint_files, own_file
from sbnmt_plugin.config import SBTranslationConfig
from sbnmt_plugin.given_options import (
    check_architecture,
    command_of,
    refuse_model_settings,
    refuse_set,
    refuse_typed,
)
from sbnmt_plugin.layout import DEFAULT_BEAM
from sbnmt_plugin.network.cpu_products import for_decoding, for_processor
from sbnmt_plugin.network.protocol import said
from sbnmt_plugin.network.transformer import writable
from sbnmt_plugin.numerics import leave_cudnn_out
from sbnmt_plugin.option_checks import (
    check_model,
    check_outputs,
    check_settings,
    check_values,
    refuse_out_of_scope,
)
from sbnmt_plugin.search.arguments import check_names, search_options
from sbnmt_plugin.search.logits_processing import check_longest
from sbnmt_plugin.search.records import RecordWriter
from sbnmt_plugin.search.registry import Search, search_for
from sbnmt_plugin.search.trace import Tracer, TraceWriter
from sbnmt_plugin.task_data import StreamData
from sbnmt_plugin.task_options import DECODING, TRAINING
from sbnmt_plugin.training.data_files import check_languages
from sbnmt_plugin.training.dataset import with_stream_labels
from sbnmt_plugin.training.read_bits import log_read_bits
from sbnmt_plugin.training.start_checks import (
    begin,
    check_metric,
    forget_trainings,
    groups_of,
    has_other_metric,
)
from sbnmt_plugin.training.train_step import bare, in_bfloat16, nan_is_named, take_step
from sbnmt_plugin.training.validation import NAMES, log_bleu, read_json


class SBTranslationTask(StreamData):
    """Translation with synchronous bidirectional decoding: see :mod:`register`."""

    def __init__(self, cfg: SBTranslationConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.loaded: dict[str, Any] = {}  # by path, what a family's search reads
        self._probed: int | None = None  # the last update at which it was
        self._logged: list[str] | None = None  # in validation; empty: checked
        self._starts: list[Checkpoint] = []  # that a training may start from

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the task's options; refuse those that do nothing."""
        super().add_args(parser)
        refuse_typed(parser, command_of(parser))

    @classmethod
    def setup_task(cls, cfg: SBTranslationConfig, **kwargs: Any) -> "SBTranslationTask":
        """Check the options that would be ignored otherwise, and set the task up."""
        trained = kwargs.get("from_checkpoint")
        if trained:
            cfg.sb_records = cfg.sb_trace = None  # of the command that trained it
        else:
            refuse_out_of_scope(cfg, "" if cfg.sb_path is None else DECODING)
            refuse_set(groups_of(cfg))
        check_values(cfg)
        leave_cudnn_out()
        given = [] if trained else check_checkpoints(checkpoint_files(cfg))
        folder, *_ = utils.split_paths(cfg.data)
        check_languages(folder, cfg.source_lang, cfg.target_lang)
        task: SBTranslationTask = super().setup_task(cfg, **kwargs)
        task._starts = given if cfg.sb_path is None else []
        return task

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build, check that architecture and direction fit, prepare validation.

        Raises:
            ValueError: a one-directional architecture for two streams or the other
                way round; a checkpoint of another direction, task or dictionary.
        """
        check_architecture(cfg)
        if not from_checkpoint:
            refuse_out_of_scope(self.cfg, TRAINING)
            begin(self.cfg)
        refuse_model_settings(cfg, groups_of(self.cfg), from_checkpoint)
        wanted = str(self.cfg.sb_direction)
        check_direction(getattr(cfg, "sb_direction", None), wanted, from_checkpoint)
        words = self.src_dict, self.tgt_dict
        languages = self.cfg.source_lang, self.cfg.target_lang
        if from_checkpoint:
            check_dictionaries(cfg, words, languages, "the checkpoint")
            forget_files(cfg)
        else:
            for start in self._starts:
                check_start(start, words, languages)
                check_function(start, cfg)
                if not self._begins_anew(start) or start.path == own_file(self.cfg):
                    check_goes_on(start, wanted)
        with writable(cfg):
            cfg.sb_direction = wanted
            if not from_checkpoint:
                cfg.sb_languages = list(languages)
            cfg.sb_dictionaries = [fingerprint(dictionary) for dictionary in words]
            if from_checkpoint:  # they are for gradients, and hide what a layer is
                cfg.checkpoint_activations = cfg.offload_activations = False
        model = FairseqTask.build_model(self, cfg, from_checkpoint)
        check_model(self.cfg, model, cfg)
        said(model, "check_task")(self.cfg, not from_checkpoint)
        if from_checkpoint:
            model.requires_grad_(True)  # weights are frozen for a training alone
        else:
            ways = [(start, self._begins_anew(start)) for start in self._starts]
            said(model, "check_starts")(cfg, ways)
            for start, begins in ways:
                if not begins:
                    check_function(start, cfg, said(model, "function"))
            refuse_out_of_scope(self.cfg, TRAINING, [model])
            for_processor(model)
        if self.cfg.eval_bleu:
            self._prepare_validation(model)
        return model

    def _begins_anew(self, start: Checkpoint) -> bool:
        """Tell whether the training takes the weights alone of a checkpoint."""
        tuned = start.path == self.cfg.sb_finetune_from_model
        wins = self.cfg.sb_continue_once  # over that
        return bool(tuned and not wins) or bool(self.cfg.sb_reset_optimizer)

    def _prepare_validation(self, model: Any) -> None:
        """Make the detokeniser and the search that ``--eval-bleu`` uses."""
        detok_args = read_json("--eval-bleu-detok-args", self.cfg.eval_bleu_detok_args)
        chosen = read_json("--eval-bleu-args", self.cfg.eval_bleu_args)
        self.tokenizer = encoders.build_tokenizer(
            Namespace(**{**detok_args, "tokenizer": self.cfg.eval_bleu_detok})
        )
        args = {"beam": DEFAULT_BEAM, **chosen}
        self.check_names(chosen, "--eval-bleu-args")
        self.sequence_generator = self.build_generator(
            [model], Namespace(**args, nbest=1)
        )
        check_longest(self.sequence_generator, self.cfg.max_source_positions)

    # for the hub interface
    check_names = staticmethod(check_names)
    check_settings = staticmethod(check_settings)

    def build_generator(
        self,
        models: list[Any],
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> Search:
        """Build the search that the models want.

        Args:
            args: fairseq's generation options, and ours where a caller sets them.

        Raises:
            ValueError: an option that the search cannot honour.
        """
        if seq_gen_cls is not None or prefix_allowed_tokens_fn is not None:
            raise ValueError(
                "sb_translation has a search of its own: seq_gen_cls and "
                "prefix_allowed_tokens_fn must be None"
            )
        bf16, int8 = self.cfg.sb_bf16, self.cfg.sb_int8
        models = [for_decoding(model, bf16, int8) for model in models]  # in place
        refuse_out_of_scope(self.cfg, models=models, given=args)
        search = search_for(models)
        shared = search.shares_beam
        options = search_options(args, self.cfg, self.directions, shared)
        check_outputs(args, self.cfg, self.datasets)
        recorder, trace = self._writers
        tracer = Tracer(trace, models, options) if trace else None
        made = search(models, self.symbols, options, recorder, tracer)
        made.prepare(self)
        return made

    @functools.cached_property
    def _writers(self) -> tuple[RecordWriter | None, TraceWriter | None]:
        """Writers of ``--sb-records`` and ``--sb-trace``, or None, for all searches."""
        records, trace = self.cfg.sb_records, self.cfg.sb_trace
        words = self.src_dict, self.tgt_dict
        return (
            None if records is None else RecordWriter(records, *words),
            None if trace is None else TraceWriter(trace, *words),
        )

    def begin_epoch(self, epoch: int, model: Any) -> None:
        """Forget, at first, a best score without a checkpoint here, or of no use."""
        if self._starts and (
            not os.path.isfile(own_file(self.cfg, "best"))
            or has_other_metric(self.cfg, self._starts)
        ):
            forget_trainings()
        self._starts = []
        super().begin_epoch(epoch, model)

    @nan_is_named()
    def train_step(
        self,
        sample: dict[str, Any],
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
    ) -> Any:
        """Probe where ``--sb-probe`` asks, and train on the labels of streams."""
        every = self.cfg.sb_probe
        # before this update, whose line has it; a model that knows nothing reads noise
        due = every and (update_num + 1) % every == 0
        if due and self._probed != update_num:
            self._probed = update_num
            names = [name for name in self.datasets if name != self.cfg.train_subset]
            gold = self._with_streams(self.datasets[names[0]].pairs)
            log_read_bits(bare(model), gold, sample["live"].device)
        narrow = self.cfg.sb_autocast
        with in_bfloat16(criterion, sample["live"].device, narrow) as its:
            done = super().train_step(
                with_stream_labels(sample),
                model,
                its,
                optimizer,
                update_num,
                ignore_grad,
            )
        if self._logged is None:
            counts = dict.fromkeys(NAMES, 0) if self.cfg.eval_bleu else {}
            with metrics.aggregate(new_root=True) as found:
                self.reduce_metrics([{**done[2], **counts}], criterion)
            self._logged = list(found.get_smoothed_values())
        return done

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """Take fairseq's step, with gradients of ``--amp`` that are unscaled once."""
        if self._logged:  # an error of train_step would leave a crash.pt
            check_metric(self.cfg, self._logged)
            self._logged = []
        take_step(optimizer)

    def inference_step(
        self,
        generator: Any,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Any = None,
        constraints: Any = None,
    ) -> Any:
        """Search; a batch that a caller has made itself is completed first."""
        for complete in self._completions:
            sample = {**sample, "net_input": complete(sample["net_input"])}
        return super().inference_step(
            generator, models, sample, prefix_tokens, constraints
        )

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> Any:
        """Compute the loss on streams' labels, BLEU on the natural-order target."""

        def on_streams(model: Any, sample: dict[str, Any]) -> Any:
            return criterion(model, with_stream_labels(sample))

        return super().valid_step(sample, model, on_streams)

    def reduce_metrics(
        self, logging_outputs: list[dict[str, Any]], criterion: Any
    ) -> None:
        """Log fairseq's values, and BLEU: see :func:`validation.log_bleu`."""
        FairseqTask.reduce_metrics(self, logging_outputs, criterion)
        if self.cfg.eval_bleu:
            log_bleu(logging_outputs)
