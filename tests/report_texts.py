"""Texts of two systems, their references, and a log of fairseq-train."""

LOG = """\
2026 | INFO | train_inner | epoch 001:    100 / 493 loss=9, nll_loss_l2r=8.5, ups=2, wps=10.5, num_updates=100, lr=0.1
2026 | INFO | train_inner | epoch 001:    200 / 493 loss=8, nll_loss_l2r=7, ups=4, read_bits_l2r=0.31, read_bits_r2l=-0.02, num_updates=200, lr=0.1
2026 | INFO | train_inner | epoch 001:    300 / 493 loss=8, nll_loss_l2r=6, ups=9, wps=30, num_updates=300, lr=0.1
2026 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7 | nll_loss_r2l 6.5 | bleu 12.34 | num_updates 300
2026 | INFO | train_inner | epoch 001:    200 / 493 loss=8, nll_loss_l2r=7.5, ups=4, wps=20, num_updates=200, lr=0.1
"""  # noqa: E501

OUTPUTS = {
    "one": ["the cat sat on the mat .", "He walked home", "yes", ""],
    "two": ["a cat sat on a mat .", "he ran home now", "yes , sir", "never"],
}
GOLDS = [
    ["the cat sat on the mat .", "he walked home now", "yes , sir", "never mind"],
    ["the cat is on a mat .", "he went home", "yes", "nothing"],
]
