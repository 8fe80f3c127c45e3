"""BA-NMT by fairseq's own commands: what is not common to all of one direction."""

import pytest
from commands import BA, L2R, best, lines, run_generate, run_train


def test_alignments_are_printed(data, tmp_path):
    path = run_train(data, tmp_path, *BA, "--max-epoch", 2)
    output = run_generate(data, path, *L2R, "--print-alignment", "hard")
    for i, rows in lines(output, "A").items():
        words = len(lines(output, "S")[i][0][0].split())
        pairs = [tuple(map(int, pair.split("-"))) for pair in rows[0][0].split()]
        assert [place for _, place in pairs] == list(range(len(pairs)))
        assert len(pairs) == len(best(output)[i][1].split())
        assert all(place <= words for place, _ in pairs)  # or </s>


def test_a_size_that_cannot_be_is_refused(data, tmp_path):
    with pytest.raises(ValueError, match="--ba-history-size must be"):
        run_train(data, tmp_path, *BA, "--ba-history-size", 0, "--max-epoch", 1)
