"""Sends events with Segment's SDK: python3 send.py HOST KEY EVENTS GZIP. Prints the errors that the SDK reports, as JSON."""

import json
import logging
import sys

from segment.analytics.client import Client

host, key, events, gzip = sys.argv[1:]
logging.disable(logging.CRITICAL)
errors = []
client = Client(key, host=host, gzip=gzip == "gzip", on_error=lambda error, batch: errors.append([str(error), len(batch)]))
client.identify("ada", {"email": "ada@acme.com"})
for number in range(int(events) - 1):
    client.track("user %d" % (number % 10), "Signed Up", {"number": number})
client.flush()
client.join()
print(json.dumps(errors))
