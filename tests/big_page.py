"""How long a large list of sentences takes to open in a browser, and to be used.

    python tests/big_page.py 100000 20 work/big-page

Writes a page of so many made-up sentences of so many systems into the folder, opens it
in headless Chromium and prints how many seconds each act takes.  No test: it measures.
"""

import json
import logging
import random
import sys
import time
from pathlib import Path

from browsers import chromium, settled
from selenium.webdriver.common.by import By

from sbnmt_plugin.tools.report import content, page

WORDS = 20_000
LENGTHS = (5, 20)  # words of a sentence
CHANGED = 0.2  # of an output's words


def written(sentences, systems, path):
    """Write the page."""
    rng = random.Random(1)
    words = [
        "".join(rng.choices("aeiounrstlmdk", k=rng.randint(2, 9))) for _ in range(WORDS)
    ]
    rows = []
    for _ in range(sentences):
        gold = rng.choices(words, k=rng.randint(*LENGTHS))
        outputs = [
            " ".join(
                rng.choice(words) if rng.random() < CHANGED else word for word in gold
            )
            for _ in range(systems)
        ]
        scores = [round(rng.uniform(0, 100), 1) for _ in outputs]
        source = " ".join(rng.choices(words, k=len(gold)))
        rows.append(
            [source, [" ".join(gold)], outputs, scores, len(gold), rng.choice("lr")]
        )
    names = [f"system {i}" for i in range(systems)]
    data = {"systems": names, "raced": names[:1], "rows": rows}
    section = content.Section("sentences", "Sentence by sentence", data=data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page.render("A large page", [], [section]), encoding="utf-8")
    return sum(len(json.dumps(row[:3])) for row in rows), rows


def main():
    logging.disable(logging.WARNING)
    sentences, systems = map(int, sys.argv[1:3])
    path = (Path(sys.argv[3]) / "report.html").resolve()
    size, rows = written(sentences, systems, path)
    print(f"texts {size / 1e6:.0f} MB, page {path.stat().st_size / 1e6:.0f} MB")
    browser = chromium()

    def timed(name, act):
        start = time.monotonic()
        act()
        settled(browser)
        said = browser.find_element(By.ID, "found").text
        print(f"{name}: {time.monotonic() - start:.1f} s, {said}", flush=True)

    def put(name, value):
        browser.execute_script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input'));",
            name,
            value,
        )

    try:
        timed("open", lambda: browser.get(path.as_uri()))
        timed("next page", lambda: browser.find_element(By.ID, "next").click())
        timed("sort by gain", lambda: put("order", "gain"))
        timed("lengths from 10", lambda: put("shortest", "10"))
        timed("search a word", lambda: put("words", rows[-1][0].split()[0]))
        heap = browser.execute_script("return performance.memory.usedJSHeapSize")
        print(f"memory of its script: {heap / 1e6:.0f} MB")
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
