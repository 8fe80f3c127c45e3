"""Files larger than the memory: read as they are needed, with equal results."""

import json
import tracemalloc
from collections import deque

import pytest

from sbnmt_plugin.tools import jobs
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.translations import each_translation, texts_to_learn

LONG = 20_000  # lines of 200 signs: 4 MB a file


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    texts.write_lines(folder / "t.en", (f"{i:0200}" for i in range(LONG)))
    texts.write_lines(folder / "t.tsv", (f"{i}\t-1\t{i:0200}" for i in range(LONG)))
    for start in range(0, LONG, 1000):
        records = [
            {"id": i, "score": -1.0, "text": f"{i:0200}"}
            for i in range(start, start + 1000)
        ]
        lines = (json.dumps(record) for record in records)
        texts.write_lines(folder / "shards" / f"{start // 1000:05}.jsonl", lines)
    return folder


READERS = {
    "parallel files": lambda at: texts.check_parallel(at / "t.en", at / "t.en"),
    "translations": lambda at: deque(texts_to_learn(at / "t.tsv", LONG), maxlen=0),
    "shards": lambda at: jobs.merge(
        sorted((at / "shards").iterdir()), LONG, at / "merged.tsv"
    ),
}
TWINS = {  # hold it all
    "parallel files": lambda at: texts.read_parallel(at / "t.en", at / "t.en"),
    "translations": lambda at: dict(each_translation(at / "t.tsv", LONG)),
}


def peak(read, folder):
    """Bytes at most, and what is kept."""
    tracemalloc.start()
    try:
        kept = read(folder)
        return tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", READERS)
def test_a_file_is_not_held_in_memory(name, long):
    assert peak(READERS[name], long)[0] < 1.5e6


@pytest.mark.parametrize("name", TWINS)
def test_the_check_of_memory_can_fail(name, long):
    assert peak(TWINS[name], long)[0] > 4e6


def test_merged_shards_are_whole_or_nothing(long, tmp_path):
    shards = sorted((long / "shards").iterdir())
    output = tmp_path / "merged.tsv"
    for wrong in (shards[1:], shards[:-1], [*shards, shards[0]], shards[::-1]):
        with pytest.raises(ValueError, match="must hold the ids 0 … 19999 once each"):
            jobs.merge(wrong, LONG, output)
        assert not list(tmp_path.iterdir())
    assert jobs.merge(shards, LONG, output) == (LONG, 0)
    rows = (f"{i}\t-1.000000\t{i:0200}\n" for i in range(LONG))
    assert output.read_text() == "".join(rows)
    assert (tmp_path / "merged.tsv.skipped").read_text() == ""
