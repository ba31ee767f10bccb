"""Models that are no phones, by Google's list of Android's devices and by which-browser: for `update.py`."""

import json
import re
import subprocess

# What the names of Google's devices say, the first that does. Chromebooks run Android's apps.
NAMES_OF_KINDS = {
    "desktop": r"_cheets\b|Chromebook|Pixelbook",
    "mobile": r"Fonepad|Pad[Ff]one",
    "other": r"\b[Ww]atch\b|[Ss]martwatch|\bTV\b|Projector|\bSTB\b|[Ss]et.?[Tt]op|Chromecast|BRAVIA",
    "tablet": r"\bPad\b|[A-Za-z]Pad\b|[a-bd-z]pad\b|\bTab\b|\bTab(?=[_0-9A-Z])|[Tt]ablet",
}
# What which-browser calls them; boards and emulators are none.
KINDS = {"tablet": "tablet", "ereader": "tablet", "desktop": "desktop", "mobile": "mobile"}
NO_KINDS = {"devboard", "emulator", "mobile"}

# The models that which-browser lists by name, with their kinds.
PROGRAM = """
const {ANDROID_MODELS} = require(process.argv[1] + '/data/models-android.js');
const print = models => { for (const [model, found] of Object.entries(models)) {
    if (model.endsWith('!!')) print(found); else if (!model.endsWith('!') && found[2]) console.log(model + '\\t' + [found[2]].flat()[0]); } };
print(ANDROID_MODELS)
"""


def kinds_by_name(devices):
    """The kinds of Google's devices by their models in lower case, None where no name says it."""
    kinds = {}
    for device in devices:
        text = f"{device['name']} {device['device']}"
        kind = next((kind for kind, words in NAMES_OF_KINDS.items() if re.search(words, text)), None)
        model = device["model"].strip().lower()
        kinds[model] = kinds.get(model) or kind
    return kinds


def lines(devices, which_browser):
    """The lines of models.tsv, from the directories of both packages."""
    named = kinds_by_name(json.loads((devices / "devices.json").read_text(encoding="utf-8")))
    found = {model: kind for model, kind in named.items() if kind}
    command = ["node", "-e", PROGRAM, str(which_browser)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        model, kind = line.lower().split("\t")
        # What Google lists, too, is newer.
        if kind not in NO_KINDS and model not in named and model.replace(" ", "_") not in named:
            found[model] = KINDS.get(kind, "other")
    return (f"{model}\t{kind}" for model, kind in found.items() if "\t" not in model and len(model) > 1)
