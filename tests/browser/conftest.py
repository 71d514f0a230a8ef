"""One headless Chromium for all tests, or a reason why there is none."""

import os
import shutil
from pathlib import Path

import pytest
from chromium import Chromium

from hostile import write_hostile
from page_examples import write_examples
from steppe.report.page import write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver_program = shutil.which("chromedriver")
    if program is None or driver_program is None:
        pytest.skip("needs Chromium and chromedriver: `tests/browser/install` gets them where apt-get can")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"):
        options.add_argument(argument)
    if os.geteuid() == 0:  # the sandbox of Chromium does not work for root
        options.add_argument("--no-sandbox")
    driver = webdriver.Chrome(options=options, service=Service(driver_program))
    driver.set_page_load_timeout(60)
    yield Chromium(driver)
    driver.quit()


@pytest.fixture(scope="session")
def example_page(tmp_path_factory) -> Path:
    return write_page(write_examples(tmp_path_factory.mktemp("examples")))


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory) -> Path:
    return write_page(write_hostile(tmp_path_factory.mktemp("hostile")))


@pytest.fixture
def page(chromium, example_page):
    chromium.open(example_page)
    return chromium
