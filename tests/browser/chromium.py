"""A browser with the few words the tests need."""

from pathlib import Path

PHONE, DESKTOP = (360, 740), (1280, 900)


class Chromium:
    """A driver with the few words the tests need."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, page: Path) -> None:
        self.resize(DESKTOP)
        self.color("light")
        self.driver.get_log("browser")
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [one.text for one in self.all(selector)]

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def color(self, scheme: str) -> None:
        # A page that scrolls smoothly moves under the mouse.
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def clipboard(self) -> str:
        self.driver.execute_cdp_cmd(
            "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        )
        return self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
