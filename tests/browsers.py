"""Headless Chromium, and the report's list of sentences in it."""

import shutil

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


def chromium():
    """Start a browser that logs what the page's scripts report."""
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def settled(browser):
    """Return the browser as soon as the list shows what was asked for last."""
    WebDriverWait(browser, 60).until(
        lambda _: (
            browser.find_element(By.ID, "list").get_attribute("aria-busy") == "false"
        )
    )
    return browser
