"""Made model.pt, dict.*.txt, input.en and expected.json, at commit 9e98947 (0.1.0).

    git checkout 9e98947 && python make.py FOLDER     (in an environment of that commit)

Not run by the tests, which load what it has written.
"""

import json
import sys
from pathlib import Path

import torch

sys.path[:0] = ["tests", "scripts", "."]
import commands  # noqa: E402

SIZE = ["--encoder-embed-dim", 16, "--decoder-embed-dim", 16]
SIZE += ["--encoder-ffn-embed-dim", 16, "--decoder-ffn-embed-dim", 16]
SIZE += ["--encoder-attention-heads", 2, "--decoder-attention-heads", 2]
LINES = ["w1 w2 w3", "w4", "w5 w5 w6 w7 w8", "", "w9 w10 w11 w0 w2 w1"]


def main(folder: Path) -> None:
    texts = commands.write_texts(
        folder / "texts", {"train": 300, "valid": 9, "test": 9}
    )
    data = commands.binarise(texts, folder / "bin")
    words = [*commands.SB, *SIZE, "--sb-lambda", 0.7, "--max-epoch", 40]
    path = commands.run_train(data, folder / "sb", *words, "--no-epoch-checkpoints")
    state = torch.load(path, weights_only=False)
    state["last_optimizer_state"] = None
    for group in state["cfg"].values():  # whoever runs this, and where
        values = vars(group) if hasattr(group, "__dict__") else group
        for name in ("user_dir", "save_dir", "data", "sb_save_dir"):
            if isinstance(values, dict) and name in values:
                values[name] = "."
    torch.save(state, folder / "model.pt")
    for language in ("en", "de"):
        name = f"dict.{language}.txt"
        (folder / name).write_text((data / name).read_text())
    text = "".join(line + "\n" for line in LINES)
    (folder / "input.en").write_text(text)
    options = ["--beam", "4", "--nbest", "2", "--lenpen", "0.6"]
    output = commands.run_interactive(data, folder / "model.pt", text, *options)
    found = commands.lines(output, "H")
    expected = {str(i): hypotheses for i, hypotheses in sorted(found.items())}
    made = {"options": options, "hypotheses": expected}
    (folder / "expected.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
