#!/usr/bin/env python3
"""Checks that the files for compose and Kubernetes can be read, name what is there, and configure brokers alike."""
from pathlib import Path

import yaml

HERE = Path(__file__).parent


def documents(path):
    return [document for document in yaml.safe_load_all((HERE / path).read_text()) if document]


def settings(text):
    """The lines of a broker's configuration that say something."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def check_compose():
    compose = documents("compose.yaml")[0]
    services, volumes = compose["services"], set(compose["volumes"])
    assert {f"{kind}-{number}" for kind in ("broker", "node") for number in (1, 2, 3)} <= services.keys()
    for name, service in services.items():
        assert set(service.get("depends_on", [])) <= services.keys(), name
        mounted = {volume.split(":")[0] for volume in service["volumes"]}
        assert all(source in volumes or (HERE / source).is_file() for source in mounted), name


def check_kubernetes():
    found = [document for path in ("brokers.yaml", "init.yaml", "nodes.yaml") for document in documents(f"kubernetes/{path}")]
    names = {(document["kind"], document["metadata"]["name"]) for document in found}
    assert len(names) == len(found), "two objects have the same name"
    [config] = [document for document in found if document["kind"] == "ConfigMap"]
    ours, theirs = settings((HERE / "nats-server.conf").read_text()), settings(config["data"]["nats-server.conf"])
    assert ours == theirs, f"brokers.yaml has other settings than nats-server.conf: {set(ours) ^ set(theirs)}"
    for document in found:
        if document["kind"] != "StatefulSet":
            continue
        spec, name = document["spec"], document["metadata"]["name"]
        labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
        assert ("Service", spec["serviceName"]) in names and spec["selector"]["matchLabels"] == labels, name
        volumes = {volume["name"] for volume in pod["volumes"]} | {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
        for container in pod["containers"] + pod.get("initContainers", []):
            ports = {port["name"] for port in container.get("ports", [])}
            probes = [container[kind]["httpGet"] for kind in ("readinessProbe", "livenessProbe") if kind in container]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, name
            assert all(probe["port"] in ports for probe in probes), name
            assert container["securityContext"]["readOnlyRootFilesystem"], name


check_compose()
check_kubernetes()
print("the files of compose and Kubernetes agree")
