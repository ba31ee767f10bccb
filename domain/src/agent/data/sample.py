#!/usr/bin/env python3
"""Makes sample.tsv: agents that others collected, and what another program finds in them. Not a part of `just user-agents`: what
was right once should stay so.

The agents are those of crawlerdetect's tests (MIT; people's and crawlers') and of user-agents (BSD-2-Clause, by real visitors),
and Device Detector says what they are (the package `device_detector`; none of its data is copied). Needs both packages of PyPI, crawlerdetect
unpacked: `sample.py DIRECTORY`.
"""

import pathlib
import random
import re
import sys

from device_detector import DeviceDetector

HERE = pathlib.Path(__file__).parent
PEOPLE, BOTS = 1500, 400

DEVICES = {"smartphone": "mobile", "phablet": "mobile", "feature phone": "mobile", "tablet": "tablet", "desktop": "desktop"}
SYSTEMS = {
    "Mac": "macOS", "GNU/Linux": "Linux", "Chrome OS": "ChromeOS", "BlackBerry OS": "BlackBerry", "BlackBerry Tablet OS": "BlackBerry",
    "Symbian OS": "Symbian", "Symbian OS Series 60": "Symbian", "Symbian OS Series 40": "Series 40", "Windows RT": "Windows",
    "Windows Mobile": "Windows Phone", "Fire OS": "Android", "Android TV": "Android", "Ubuntu": "Linux", "Fedora": "Linux",
    "Debian": "Linux", "Mint": "Linux", "SUSE": "Linux", "Gentoo": "Linux", "Mandriva": "Linux", "elementary OS": "Linux", "CentOS": "Linux", "Red Hat": "Linux",
    "MocorDroid": "Android", "Nintendo Mobile": "Nintendo", "YunOS": "Android", "Apple TV": "tvOS",
}
BROWSERS = {
    "Chrome Mobile": "Chrome", "Chrome Mobile iOS": "Chrome", "Chrome Webview": "Chrome WebView", "Mobile Safari": "Safari", "Firefox Mobile": "Firefox",
    "Firefox Mobile iOS": "Firefox", "Microsoft Edge": "Edge", "IE Mobile": "Internet Explorer", "Opera Mobile": "Opera", "Opera Next": "Opera",
    "Opera Mini iOS": "Opera Mini", "Samsung Browser": "Samsung Internet", "Mobile Silk": "Amazon Silk", "Mi Browser": "MIUI Browser", "DuckDuckGo Privacy Browser": "DuckDuckGo", "Puffin Web Browser": "Puffin",
    "Avant Browser": "Avant",
    "UC Browser Mini": "UC Browser", "UC Browser HD": "UC Browser", "QQ Browser Mini": "QQ Browser", "Headless Chrome": "HeadlessChrome",
}


def spread(agents, count):
    """As many agents, no two of which differ by their numbers only."""
    shapes = {}
    for agent in agents:
        if 10 < len(agent) < 400 and "\t" not in agent and agent.isascii():
            shapes.setdefault(re.sub(r"[0-9]+", "0", agent), agent)
    return random.sample(sorted(shapes.values()), min(count, len(shapes)))


def classified(agent):
    found = DeviceDetector(agent).parse()
    if found.is_bot():
        return None
    device, system = found.device_type() or "-", found.os_name() or "-"
    browser = found.client_name() if found.client_type() == "browser" else None
    device = DEVICES.get(device, "-" if device in ("-", "") else "other")
    return "\t".join([device, SYSTEMS.get(system, system), BROWSERS.get(browser, browser or "-"), agent])


def main():
    random.seed(1)
    fixtures = pathlib.Path(sys.argv[1]) / "tests" / "fixtures" / "user_agent"
    people = spread((fixtures / "devices.txt").read_text(encoding="utf-8", errors="replace").splitlines(), PEOPLE)
    visitors = spread((HERE / "browsers.txt").read_text(encoding="utf-8").splitlines()[1:], PEOPLE // 5)
    crawlers = spread((fixtures / "crawlers.txt").read_text(encoding="utf-8", errors="replace").splitlines(), BOTS)
    lines = [line for agent in people + visitors if (line := classified(agent))]
    # Programs that speak HTTP are no bots here.
    lines += [f"bot\t-\t-\t{agent}" for agent in crawlers if DeviceDetector(agent).parse().is_bot()]
    header = "# Made by sample.py: device, system, browser, agent. crawlerdetect 0.4.2 (MIT), user-agents 2.1.198 (BSD-2-Clause), see LICENSES."
    (HERE / "sample.tsv").write_text("".join(f"{line}\n" for line in [header, *sorted(lines)]), encoding="utf-8")


main()
