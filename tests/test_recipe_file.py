"""Recipe files: the keys and values that are refused."""

import in_process
import pytest
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typo": 1}, "unknown keys typo: known are source"),
        (
            {"bpe": {"kind": "word"}},
            "bpe.kind must be joint, separate or none, but is 'word'",
        ),
        ({"teachers": "three"}, "teachers must be two or one"),
        ({"systems": {"sbb": {}}}, "systems has unknown keys sbb"),
        ({"score": {"case": 1}}, "score has unknown keys case"),
        ({"average": "ten"}, "average must be"),
        ({"detokenise": "ger"}, r"yaml: detokenise: the language must be .* 'ger'"),
        ({"rows": ["sbb"]}, r"^\S*recipe\.yaml: rows must name teacher-l2r.*'sbb'$"),
        ({"rows": ["sb-same"]}, r"^\S*recipe\.yaml: rows sb-same: .* use sb-staged$"),
        (
            {"systems": {"sb": {"--sb-same-text": 0.5}}},
            "recipe.yaml, row sb: --sb-same-text is no option any more: train on three",
        ),
    ],
)
def test_recipes_are_checked(tmp_path, changes, message):
    folder = in_process.write_recipe(tmp_path / "recipe", **changes)
    with pytest.raises(ValueError, match=message):
        call(run_recipe, folder, "--work", tmp_path / "work")


def test_a_recipe_must_be_whole(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"is no recipe: give a folder with recipe.yaml .* toy"
    ):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "source: de")
    with pytest.raises(ValueError, match="must have the key target, but has not"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "")
    with pytest.raises(ValueError, match="must hold keys and values"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    folder = in_process.write_recipe(tmp_path / "toy")
    with pytest.raises(ValueError, match="has no small setting"):
        call(run_recipe, folder, "--work", tmp_path / "work", "--small")


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfbpe: {}\n", b"source: \xff\n"])
def test_a_recipe_that_is_no_plain_text_is_named_with_its_line(tmp_path, content):
    folder = in_process.write_recipe(tmp_path / "recipe")
    (folder / "recipe.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=r"recipe.yaml, line 1, must"):
        call(run_recipe, folder, "--work", tmp_path / "work")
