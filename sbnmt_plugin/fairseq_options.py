"""Options of fairseq's that act on something here, and refusal of the others.

fairseq's parsers offer all of its options to every command.  :data:`PLACES` says of
each in which commands something acts on it; a test holds that it is complete.  The
others are refused by name where a user sets them to something else than their default.
Options of an architecture, an optimiser or a schedule that fairseq adds to a parser
because it was chosen are not listed: they act.  Options of ours say so themselves, see
:mod:`task_options`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from sbnmt_plugin.task_options import flag_of

TRAIN, GENERATE = "fairseq-train", "fairseq-generate"
INTERACTIVE = "fairseq-interactive"
HYDRA, BINARISE = "fairseq-hydra-train", "sbnmt binarise"
LINES = "a step that translates a file of lines"
PYTHON = "the Python API"
OVERRIDES = "--model-overrides"
LEARNING = TRAIN, HYDRA
COMMANDS = GENERATE, INTERACTIVE
SEARCHING = *COMMANDS, LINES
EVERYWHERE = *LEARNING, *SEARCHING, BINARISE, PYTHON

GROUPS: dict[tuple[str, ...], str] = {
    EVERYWHERE: """
        help user_dir seed log_format log_interval no_progress_bar num_workers
        source_lang target_lang
    """,
    (*LEARNING, *SEARCHING, PYTHON, OVERRIDES): """
        max_source_positions max_target_positions
    """,
    (*LEARNING, *SEARCHING, PYTHON): "task max_tokens batch_size",
    (*LEARNING, *SEARCHING): "cpu fp16 memory_efficient_fp16 data",
    (*LEARNING, *COMMANDS): """
        skip_invalid_size_inputs_valid_test checkpoint_suffix checkpoint_shard_count
    """,
    (*SEARCHING, PYTHON): """
        max_len_a max_len_b min_len unnormalized lenpen unkpen no_repeat_ngram_size
    """,
    (*COMMANDS, PYTHON): "tokenizer bpe print_alignment",
    (*LEARNING, GENERATE): """
        required_batch_size_multiple required_seq_len_multiple data_buffer_size
        distributed_world_size distributed_rank left_pad_source truncate_source
    """,
    SEARCHING: "path model_overrides beam no_seed_provided",
    (*LEARNING, OVERRIDES): """
        activation_fn encoder_embed_dim encoder_ffn_embed_dim encoder_layers
        encoder_attention_heads encoder_normalize_before encoder_learned_pos
        decoder_embed_dim decoder_ffn_embed_dim decoder_layers decoder_attention_heads
        decoder_normalize_before decoder_learned_pos decoder_output_dim
        share_decoder_input_output_embed share_all_embeddings
        no_token_positional_embeddings layernorm_embedding no_scale_embedding
        no_decoder_final_norm
    """,
    LEARNING: """
        log_file aim_repo aim_run_hash tensorboard_logdir wandb_project azureml_logging
        bf16 memory_efficient_bf16 fp16_no_flatten_grads fp16_init_scale
        fp16_scale_window fp16_scale_tolerance on_cpu_convert_precision min_loss_scale
        threshold_loss_scale amp amp_batch_retries
        empty_cache_freq all_gather_list_size quantization_config_path profile arch
        criterion optimizer lr_scheduler train_subset valid_subset
        ignore_unused_valid_subsets validate_interval validate_interval_updates
        validate_after_updates fixed_validation_seed disable_validation max_tokens_valid
        batch_size_valid max_valid_steps curriculum grouped_shuffling
        update_epoch_batch_itr distributed_num_procs
        distributed_backend distributed_init_method distributed_port device_id
        distributed_no_spawn ddp_backend ddp_comm_hook bucket_cap_mb
        find_unused_parameters gradient_as_bucket_view heartbeat_timeout
        broadcast_buffers slowmo_momentum slowmo_base_algorithm localsgd_frequency
        nprocs_per_node zero_sharding no_reshard_after_forward fp32_reduce_scatter
        cpu_offload use_sharded_state not_fsdp_flatten_parameters max_epoch max_update
        stop_time_hours clip_norm sentence_avg update_freq lr stop_min_lr use_bmuf
        block_lr block_momentum global_sync_iter warmup_iterations use_nbm average_sync
        skip_remainder_batch debug_param_names save_dir restore_file continue_once
        finetune_from_model reset_dataloader reset_lr_scheduler reset_meters
        reset_optimizer optimizer_overrides save_interval save_interval_updates
        keep_interval_updates keep_interval_updates_pattern keep_last_epochs
        keep_best_checkpoints no_save no_epoch_checkpoints no_last_checkpoints
        no_save_optimizer_state best_checkpoint_metric maximize_best_checkpoint_metric
        patience load_checkpoint_on_all_dp_ranks eval_bleu eval_bleu_args
        eval_bleu_detok eval_bleu_detok_args eval_tokenized_bleu eval_bleu_remove_bpe
        eval_bleu_print_samples dropout attention_dropout activation_dropout
        relu_dropout encoder_layerdrop decoder_layerdrop
        checkpoint_activations offload_activations quant_noise_pq
        quant_noise_pq_block_size quant_noise_scalar min_params_to_wrap label_smoothing
    """,
    COMMANDS: "post_process nbest",
    (HYDRA,): "reset_logging suppress_crashes",
    (GENERATE,): "scoring gen_subset quiet results_path prefix_size",
    (INTERACTIVE,): "buffer_size input",
    (BINARISE,): """
        trainpref validpref testpref destdir thresholdtgt thresholdsrc tgtdict srcdict
        nwordstgt nwordssrc joined_dictionary padding_factor workers
    """,
    # nowhere: each is refused
    (): """
        tpu model_parallel_size use_plasma_view plasma_path num_shards shard_id
        dataset_impl encoder_embed_path decoder_embed_path
        fix_batches_to_gpus fast_stat_sync pipeline_model_parallel pipeline_balance
        pipeline_devices pipeline_chunks pipeline_encoder_balance
        pipeline_encoder_devices pipeline_decoder_balance pipeline_decoder_devices
        pipeline_checkpoint store_ema ema_decay ema_start_update ema_seed_model
        ema_update_freq ema_fp32 write_checkpoints_asynchronously sacrebleu beam_mt
        max_len_a_mt max_len_b_mt match_source_len no_early_stop no_beamable_mm
        lenpen_mt temperature replace_unk score_reference sampling sampling_topk
        sampling_topp constraints diverse_beam_groups diverse_beam_strength
        diversity_rate print_step lm_path lm_weight iter_decode_eos_penalty
        iter_decode_max_iter iter_decode_force_max_iter iter_decode_with_beam
        iter_decode_with_external_reranker retain_iter_history retain_dropout
        retain_dropout_modules decoding_format eos_token output_word_probs
        output_word_stats context_window softmax_batch align_suffix alignfile
        only_source dict_only load_alignments left_pad_target num_batch_buckets
        upsample_primary combine_valid_subsets adaptive_input adaptive_softmax_cutoff
        adaptive_softmax_dropout adaptive_softmax_factor tie_adaptive_weights
        tie_adaptive_proj cross_self_attention no_cross_attention merge_src_tgt_embed
        base_layers base_sublayers base_shuffle decoder_xformers_att_config
        encoder_xformers_att_config export char_inputs encoder_layers_to_keep
        decoder_layers_to_keep amp_init_scale amp_scale_window
        update_ordered_indices_seed
    """,
}
PLACES = {name: places for places, names in GROUPS.items() for name in names.split()}
# values that say no more than a default
USUAL = {"dataset_impl": "mmap"}
SHARDS = (
    "fairseq-generate has shards by --distributed-world-size N --distributed-rank I, "
    "sbnmt pseudo by --of N --worker I"
)
REASONS = {  # where there is more to say than that nothing acts on it
    "num_shards": SHARDS,
    "shard_id": SHARDS,
    "dataset_impl": "data folders here are in fairseq's format mmap",
    "encoder_embed_path": "embeddings are learned here",
    "decoder_embed_path": "embeddings are learned here",
    "num_batch_buckets": "its padding would stand inside the streams",
    "load_alignments": "alignment losses know one target stream",
    "left_pad_target": "both streams start at position 0",
    "tokenizer": "tokenise the texts before (sbnmt tokenise)",
    "bpe": "cut the texts into subwords before (sbnmt bpe apply)",
    "bf16": "decode with --sb-bf16",
    "only_source": "a data folder here has targets; use fairseq-preprocess",
    "dict_only": "a data folder here has texts; use fairseq-preprocess",
    "write_checkpoints_asynchronously": "fairseq then saves one file of each "
    "checkpoint, or none without iopath",
    "sacrebleu": "fairseq-generate has --scoring sacrebleu",
    "store_ema": "average checkpoints (sbnmt average)",
    "update_ordered_indices_seed": "a resumed training would have other batches",
    "upsample_primary": "a split here has one part",
    "combine_valid_subsets": "a split here has one part; name each in --valid-subset, "
    "with --ignore-unused-valid-subsets if there are others",
    "adaptive_softmax_cutoff": "the search needs the full softmax",
    "adaptive_input": "the tags need rows of an ordinary embedding",
    "cross_self_attention": "self-attention reads target keys only",
    "no_cross_attention": "a translation has to see its source",
    "merge_src_tgt_embed": "binarise with --joined-dictionary and use "
    "--share-all-embeddings",
    "encoder_layers_to_keep": "train with --encoder-layers instead",
    "decoder_layers_to_keep": "train with --decoder-layers instead",
    "amp_init_scale": "fairseq reads --fp16-init-scale instead",
    "amp_scale_window": "fairseq takes another number for it",
    "base_layers": "BASE layers mix rows of different sentences",
    "beam": "translate(), sample(), generate() and fairseq-generate take it",
    "nbest": "generate() and fairseq-generate take it",
}


def acts(name: str, command: str) -> bool:
    """Tell whether something acts on an option in a command."""
    return command in PLACES.get(name, (command,))


def refuse(name: str, command: str, flag: str = "") -> NoReturn:
    """Refuse an option on which nothing acts.

    Args:
        flag: as the user has written it; by default its flag.

    Raises:
        ValueError: always.
    """
    reason = REASONS.get(name, "nothing acts on it there")
    raise ValueError(
        f"{flag or flag_of(name)} is not supported by {command}: {reason}; leave it out"
    )


def refuse_names(
    given: Iterable[str], known: Iterable[str], where: str, remedy: str
) -> None:
    """Refuse names of settings that nobody knows.

    Raises:
        ValueError: with all of them.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"{where} has unknown options {', '.join(unknown)}: {remedy}")
