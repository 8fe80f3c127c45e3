"""The report's page in a real browser without a network."""

import json
import shutil

import pytest

pytest.importorskip("jinja2", reason="the extra [report] is not installed")
pytest.importorskip("selenium", reason="selenium is not installed")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip(
        "chromium and chromedriver are not installed (Debian: apt-get install chromium "
        "chromium-driver)",
        allow_module_level=True,
    )

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from sbnmt_plugin.tools.report import content, page, traces

EVIL = "<script>document.title = 'broken'</script><i class=evil>x</i> &amp;"


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium that logs what the page's scripts report."""
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def test_text_that_looks_like_html_stays_text(traced):
    assert traced.title == "T"
    assert text(traced, "source") == EVIL
    assert not traced.find_elements(By.CSS_SELECTOR, ".evil")
    traced.execute_script("document.querySelector('h1').innerHTML = arguments[0]", EVIL)
    assert traced.find_elements(By.CSS_SELECTOR, ".evil")  # the check can fail


def test_the_page_needs_nothing_from_outside(traced):
    loaded = traced.execute_script(
        "return performance.getEntriesByType('resource').map(x => x.name)"
    )
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert [log for log in traced.get_log("browser") if log["level"] == "SEVERE"] == []
    width = traced.execute_script("return document.documentElement.scrollWidth")
    assert width <= 1280


def hypothesis(token, parent, score, look, partner=None):
    partner = parent if partner is None else partner
    made = {"token": token, "parent": parent, "score": score, "partner": partner}
    return {**made, "future": 0.25, "look": look}


def finished(direction, tokens, score, length):
    made = {"direction": direction, "tokens": tokens, "score": score}
    return {**made, "total": score * 2, "length": length}


def trace(words=("a", "b", "<b>&", "d"), **more):
    """Two steps with 2 hypotheses a direction: rank 2 of L2R overtakes rank 1."""
    a, b, c, d = words
    first = {
        "l2r": [hypothesis(a, 0, -0.5, [1.0]), hypothesis(b, 0, -0.75, [1.0])],
        "r2l": [hypothesis(d, 0, -0.25, [1.0]), hypothesis(c, 0, None, [1.0])],
        "finished": [finished("r2l", [d], -0.9, 1)],
        **{"bound": -0.5, "worst": None},
    }
    second = {
        "l2r": [
            hypothesis(c, 1, -1.0, [0.25, 0.75]),
            hypothesis(d, 0, -1.5, [0.5, 0.5]),
        ],
        "r2l": [hypothesis(c, 0, -0.5, [0.1, 0.9]), hypothesis(b, 0, -2, [0.1, 0.9])],
        "finished": [finished("l2r", [a, d], -0.4, 2)],
        **{"bound": -1.5, "worst": -0.9},
    }
    pool = [finished("l2r", [a, d], -0.4, 2), finished("r2l", [d], -0.9, 1)]
    search = {"beam": 2, "pairing": "rank", "penalty": "gnmt", "alpha": 0.6}
    made = {"id": 0, "source": EVIL, **search, "stop": "bound", "answer": "best"}
    return {**made, "steps": [first, second], "pool": pool, **more}


@pytest.fixture
def traced(browser, tmp_path):
    """The view of two sentences, read from a file as the command does."""
    arabic = trace(("سلام", "على", "من", "هنا"), id=1, source="x", stop="horizon")
    arabic["steps"][-1]["bound"] = -0.7  # better than the worst: the length ended it
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in (arabic, trace())))
    return opened(browser, path)


def opened(browser, path):
    """The page of a trace, beside its file."""
    html = page.render("T", [], [traces.section(traces.read_traces(path))])
    path.with_suffix(".html").write_text(html, encoding="utf-8")
    browser.get(path.with_suffix(".html").as_uri())
    return browser


def press(browser, *keys):
    view = browser.find_element(By.ID, "trace-view")
    for key in keys:
        view.send_keys(key)


def text(browser, name):
    return browser.find_element(By.ID, f"trace-{name}").text


def lanes(browser, name):
    found = browser.find_elements(By.CSS_SELECTOR, f".lane.{name}")
    texts = [lane.find_elements(By.CSS_SELECTOR, ".text") for lane in found]
    return [x[0].text if x else None for x in texts]


def test_keys_and_buttons_step_through_the_search(traced):
    assert text(traced, "step") == "step 0 of 2"
    press(traced, Keys.ARROW_RIGHT)
    assert lanes(traced, "l2r") == ["a", "b"] and lanes(traced, "r2l") == ["d", None]
    press(traced, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert text(traced, "step") == "step 2 of 2"
    assert lanes(traced, "l2r") == ["b <b>&", "a d"]
    assert lanes(traced, "r2l") == ["<b>& d", "b d"]  # grown to the left
    press(traced, Keys.ARROW_LEFT)
    assert text(traced, "step") == "step 1 of 2"
    press(traced, Keys.END)
    assert text(traced, "step") == "step 2 of 2"
    press(traced, Keys.HOME)
    assert text(traced, "step") == "step 0 of 2"
    for name, step in (("forward", 1), ("end", 2), ("back", 1), ("start", 0)):
        traced.find_element(By.ID, f"trace-{name}").click()
        assert text(traced, "step") == f"step {step} of 2"
    press(traced, Keys.ARROW_RIGHT)  # the keyboard is still there
    assert text(traced, "step") == "step 1 of 2"


def bars(browser, name):
    found = browser.find_elements(By.CSS_SELECTOR, f".look.{name} .bar")
    return [bar.text.split("\n") for bar in found]


def test_partners_and_what_was_looked_at_are_shown(traced):
    press(traced, Keys.END)
    looks = text(traced, "looks")
    assert "L2R 1 wrote <b>&" in looks and "looked at R2L 2" in looks
    assert bars(traced, "r2l") == [["10 %", "<l2r>"], ["90 %", "a"]]
    press(traced, Keys.ARROW_DOWN)
    assert "L2R 2 wrote d" in text(traced, "looks")
    # in natural order: R2L's d stands before its tag
    assert bars(traced, "l2r") == [["50 %", "d"], ["50 %", "<r2l>"]]
    assert "future from R2L 25 %" in text(traced, "looks")
    press(traced, Keys.ARROW_UP)
    assert "L2R 1 wrote" in text(traced, "looks")


def test_the_pool_and_the_reason_are_shown(traced):
    assert "0 of 2" in text(traced, "pool")
    press(traced, Keys.ARROW_RIGHT)
    assert "Finished: 1 of 2" in text(traced, "pool")
    assert "goes on" in text(traced, "why")
    press(traced, Keys.END)
    assert "Finished: 2 of 2" in text(traced, "pool")
    why = text(traced, "why")
    assert "L2R wrote it; score −0.400: log-probability −0.80 of 2 tokens" in why
    assert "R2L's best in the pool, “d”, has −0.900, 0.500 less" in why
    assert "no live hypothesis could reach more than −1.500" in why
    answer = traced.find_element(By.CSS_SELECTOR, "#trace-pool .answer")
    assert answer.text.startswith("L2R")


def test_a_rescored_answer_is_marked_and_explained(browser, tmp_path):
    """Whom rescoring has chosen, the second of the search."""
    other, best = trace()["pool"]
    more = {"pool_score": -0.9, "l2r": -1.25, "r2l": -1.5}
    pool = [{**best, "score": -3.65, **more}, {**other, "score": -4.0}]
    rescored = trace(pool=pool, rescore=1.0)
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(rescored) + "\n")
    opened(browser, path)
    press(browser, Keys.END)
    answer = browser.find_element(By.CSS_SELECTOR, "#trace-pool .answer")
    assert answer.text.startswith("R2L −0.900")
    why = text(browser, "why")
    assert "score −3.650: −0.900 in the search, plus 1 times" in why
    assert "−1.25 from L2R and −1.50 from R2L, divided by ((5 + 1) / 6)^0.6" in why


def test_right_to_left_text_grows_from_the_other_side(traced):
    select = traced.find_element(By.ID, "trace-sentence")
    assert select.find_elements(By.TAG_NAME, "option")[1].text == "2: x"
    select.send_keys("2")
    board = traced.find_element(By.ID, "trace-board")
    assert board.get_attribute("dir") == "rtl"
    left, right = (
        traced.find_element(By.CSS_SELECTOR, f".lane.{name}").rect["x"]
        for name in ("r2l", "l2r")
    )
    assert left < right  # the beginning of the text is at the right
    press(traced, Keys.END)
    assert "nothing longer than 2 tokens" in text(traced, "why")
    assert [x for x in traced.get_log("browser") if x["level"] == "SEVERE"] == []


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    for line, message in (
        ("", "must hold the steps"),
        ('{"id": 1}', "line 1, must be a JSON object with id, source"),
        (json.dumps(trace(steps=[])), "must hold the steps"),
        (json.dumps(trace(pairing="new")), "with a pairing of rank, best"),
        (json.dumps(trace(pairing=["rank"])), "with a pairing of rank, best"),
    ):
        path.write_text(line and line + "\n")
        with pytest.raises(ValueError, match=message):
            traces.read_traces(path)


def test_the_policy_runs_our_scripts_alone(browser, tmp_path):
    section = content.Section("beams", "t", missing="x")
    html = page.render("before", [], [section])
    html = html.replace("<main>", "<main><script>document.title = 'after'</script>")
    (tmp_path / "p.html").write_text(html, encoding="utf-8")
    browser.get((tmp_path / "p.html").as_uri())
    assert browser.title == "before"
    open_page = html.replace("Content-Security-Policy", "none")
    (tmp_path / "q.html").write_text(open_page, encoding="utf-8")
    browser.get((tmp_path / "q.html").as_uri())
    assert browser.title == "after"  # the check can fail
