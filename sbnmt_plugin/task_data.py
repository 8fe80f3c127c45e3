"""The data of task ``sb_translation``: dictionaries with tags, two target streams.

The part of :class:`task.SBTranslationTask` that needs no model.
"""

import functools
import logging
import os
from collections.abc import Callable
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE
from fairseq.tasks.translation import TranslationTask

from sbnmt_plugin.config import DIRECTIONS, SBTranslationConfig
from sbnmt_plugin.layout import R2L
from sbnmt_plugin.network.transformer import writable
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.symbols import BYTES, TAGS, join_pieces
from sbnmt_plugin.task_options import TASK_OPTIONS
from sbnmt_plugin.training.checksums import check_sums
from sbnmt_plugin.training.data_files import (
    check_dictionary,
    check_split,
    load_opposite,
    refuse_reserved,
)
from sbnmt_plugin.training.dataset import SBLanguagePairDataset
from sbnmt_plugin.training.epoch_position import SETTINGS, SIZE, ResumableIterator
from sbnmt_plugin.training.input_noise import PartnerNoise
from sbnmt_plugin.training.start_checks import groups_of

logger = logging.getLogger(__name__)


class Words(Dictionary):
    """Dictionary of fairseq's that fetches a text from its device at once.

    fairseq's own fetches one token after the other, each by a host-device
    synchronisation: dozens for a sentence in fairseq-generate.
    """

    def string(
        self, tensor: Any, bpe_symbol: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Return the text of tokens (T,), or lines of them (B, T): see fairseq's.

        Args:
            bpe_symbol: kind of subwords to join, as in ``--remove-bpe``.  Where the
                words are sentencepiece's pieces, these are joined for each kind:
                fairseq's own would leave bytes as they are spelt.
        """
        if torch.is_tensor(tensor):
            tensor = tensor.cpu() if tensor.dim() > 1 else tensor.tolist()
        joins = bpe_symbol not in (None, "none")
        pieces = joins and BYTES.keys() <= self.indices.keys()
        text = super().string(tensor, None if pieces else bpe_symbol, *args, **options)
        return "\n".join(map(join_pieces, text.split("\n"))) if pieces else text


class StreamData(TranslationTask):
    """Data of a language pair, of which each sentence has two target streams.

    They are what ``fairseq-preprocess`` writes, and beside it, for every split that has
    R2L texts, ``SPLIT.SRC-TGT.r2l.{bin,idx}``, in natural word order like all text that
    users see.

    Attributes:
        directions: that are written: see :data:`DIRECTIONS`.
    """

    cfg: SBTranslationConfig

    def __init__(self, cfg: SBTranslationConfig, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.directions = DIRECTIONS[str(cfg.sb_direction)]
        with writable(cfg):
            # batches of an epoch then depend on the epoch alone: resuming is exact
            cfg.rebuild_batches = True
            # a worker that outlives an epoch has the data set as it was forked, and
            # would draw the same noise in all of them
            cfg.reuse_dataloader = False

    @classmethod
    def load_dictionary(cls, filename: str) -> Any:
        """Load a dictionary and append the two tags.

        Raises:
            FileNotFoundError: no such file.
            ValueError: see :func:`check_dictionary`; it has been changed.
        """
        if not os.path.exists(filename):
            raise FileNotFoundError(
                f"dictionary {filename} does not exist: give the folder that "
                f"fairseq-preprocess or sbnmt binarise wrote, and its "
                "languages"
            )
        check_sums(filename)
        check_dictionary(filename)
        dictionary = Words.load(filename)
        for tag in TAGS:
            dictionary.add_symbol(tag)
        return dictionary

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """Load a split; both streams are the target where it has no R2L texts.

        Raises:
            ValueError: files that are there only in part, or cut off.
        """
        languages = self.cfg.source_lang, self.cfg.target_lang
        pairs = "-".join(languages), "-".join(languages[::-1])
        streams = [*languages, *(["r2l"] if R2L in self.directions else [])]
        folder = self._folder(split, epoch)
        self._check_words(folder)
        prefix = os.path.join(folder, split)
        check_split(prefix, pairs, streams, combine)
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        loaded = self.datasets[split]
        opposite = None
        if R2L in self.directions and loaded.tgt is not None:
            opposite = load_opposite(prefix, self.cfg, loaded, self.tgt_dict)
            both = len(self.directions) == 2
            if opposite is None and both and split == self.cfg.train_subset:
                logger.warning(
                    "there are no R2L texts (%s): both streams are the same gold text. "
                    "That is right for streams that do not read each other "
                    "(--sb-lambda 0). Others see what they have to predict: build "
                    "triples with sbnmt triples",
                    f"{prefix}.{pairs[0]}.r2l.*",
                )
        trained = split == self.cfg.train_subset
        self.datasets[split] = self._with_streams(loaded, opposite, trained)

    def _check_words(self, folder: str) -> None:
        """Check that a data folder has the words of the first one, which are read.

        Raises:
            ValueError: they are others.
        """
        if folder == utils.split_paths(self.cfg.data)[0]:
            return
        languages = self.cfg.source_lang, self.cfg.target_lang
        for language, words in zip(languages, (self.src_dict, self.tgt_dict)):
            path = os.path.join(folder, f"dict.{language}.txt")
            if os.path.isfile(path) and self.load_dictionary(path) != words:
                raise ValueError(
                    f"{path} must be the dictionary of the first data folder, but is "
                    "another: binarise anew, with that one as --srcdict or --tgtdict"
                )

    def _folder(self, split: str, epoch: int) -> str:
        """Return the data folder of an epoch; only training data may have several."""
        paths = utils.split_paths(self.cfg.data)
        place = (epoch - 1) % len(paths) if split == self.cfg.train_subset else 0
        return str(paths[place])

    def _with_streams(
        self, pairs: Any, opposite: Any = None, trained: bool = False
    ) -> SBLanguagePairDataset:
        noise = None
        if trained and self.cfg.sb_partner_noise:
            noise = PartnerNoise(self.cfg.sb_partner_noise, self.cfg.sb_seed)
        starts, completions = self.symbols.starts, self._completions
        return SBLanguagePairDataset(
            pairs, opposite, starts, self.directions, completions, noise
        )

    def build_bpe(self, args: Any) -> Any:
        """Build what ``--bpe`` names; fairseq's own sentencepiece would print bytes."""
        made = super().build_bpe(args)
        if isinstance(made, SentencepieceBPE):
            made.decode = join_pieces
        return made

    @functools.cached_property
    def _completions(self) -> list[Callable[[dict[str, Any]], dict[str, Any]]]:
        """Functions that add the families' own tensors to a batch's ``net_input``."""
        given = self.cfg, self.src_dict, self.tgt_dict
        found = [options.completion(*given) for options in TASK_OPTIONS.values()]
        return [completion for completion in found if completion is not None]

    @property
    def symbols(self) -> Symbols:
        """Special ids of the search."""
        return Symbols.of(self.tgt_dict, self.directions)

    def get_batch_iterator(
        self,
        dataset: Any,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Make batches; a line of which not even one fits into a batch is too long.

        A search loads them itself where fairseq's default would start one process for
        that: forked from a thread, it now and then aborts the command at its end.

        Raises:
            ValueError: a text is, and lines that are too long are not left out.
        """
        size = max_tokens, max_sentences, max_positions, ignore_invalid_inputs
        settings = dict(zip(SIZE, size))
        settings |= {name: kwargs[name] for name in SETTINGS if name in kwargs}
        if self.cfg.sb_path and kwargs.get("num_workers") == 1:
            kwargs["num_workers"] = 0
        if max_positions is not None:
            model = max_positions
            if max_tokens is not None:
                batch = max_tokens, max_tokens // len(self.directions)
                max_positions = min(model[0], batch[0]), min(model[1], batch[1])
            trains = dataset.tgt_sizes is not None and not self.cfg.sb_path
            valid = "--max-tokens-valid (fairseq-validate: --max-tokens)"
            limit = valid if trains else "--max-tokens"
            texts = zip(("source", "target"), (dataset.src_sizes, dataset.tgt_sizes))
            for place, (text, sizes) in enumerate(texts):
                longest = 0 if sizes is None else int(sizes.max(initial=0))
                most = max_positions[place]
                if longest > most and not ignore_invalid_inputs:
                    own = f"--max-{text}-positions" if most == model[place] else ""
                    fixed = own and not trains  # the model has so many
                    remedy = "" if fixed else f"raise {own or limit}, or "
                    raise ValueError(
                        f"a {text} must have at most {most} tokens with </s>, by "
                        f"{own or limit}, but one has {longest}: {remedy}leave out "
                        "what is too long (--skip-invalid-size-inputs-valid-test)"
                    )
        made = super().get_batch_iterator(
            *(dataset, max_tokens, max_sentences, max_positions),
            *(ignore_invalid_inputs, *args),
            **kwargs,
        )
        if not isinstance(made, ResumableIterator):  # one that is kept
            made.__class__ = ResumableIterator
            made.settings, again = settings, {"disable_iterator_cache": True}
            made.make = functools.partial(self.get_batch_iterator, dataset, **again)
            groups, made.sharded = groups_of(self.cfg), self.has_sharded_data("")
            made.update_freq = groups.optimization.update_freq if groups else ()
        return made

    def build_dataset_for_inference(
        self, src_tokens: Any, src_lengths: Any, constraints: Any = None
    ) -> Any:
        """Refuse text that contains a reserved symbol, and make fairseq's data set."""
        refuse_reserved(self.src_dict, src_tokens)
        return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)

    def can_reuse_epoch_itr(self, dataset: Any) -> bool:
        """Tell whether a data set comes again, so that its batches are kept.

        fairseq-interactive would keep every line that it has read.
        """
        ours = any(dataset is split for split in self.datasets.values())
        return ours and super().can_reuse_epoch_itr(dataset)
