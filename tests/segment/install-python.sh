#!/bin/sh
# Installs Segment's SDK for Python, in both versions, beside the other packages.
set -eu
cd "$(dirname "$0")"
for version in 2.3.4 2.4.0; do
  into=node_modules/.python/$version
  if [ ! -d "$into/segment" ]; then
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$into" "segment-analytics-python==$version"
  fi
done
