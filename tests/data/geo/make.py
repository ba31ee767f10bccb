#!/usr/bin/env python3
"""Creates the databases of this folder: small files in the layouts that headcount reads, and in one that it refuses.

    pip install mmdb_writer==0.2.7 && python3 tests/data/geo/make.py

The addresses are reserved for documentation by RFC 5737 and RFC 3849; the countries are made up.
"""

import pathlib

import mmdb_writer
import netaddr

HERE = pathlib.Path(__file__).parent
BUILT = 1_700_000_000


def country(code, name):
    return {"geoname_id": 1, "is_in_european_union": False, "iso_code": code, "names": {"en": name}}


def write(file, kind, networks, ip_version=6):
    # The writer embeds the current time; replace it, so that every run writes the same bytes.
    mmdb_writer.time.time = lambda: BUILT
    writer = mmdb_writer.MMDBWriter(
        ip_version=ip_version,
        ipv4_compatible=ip_version == 6,
        database_type=kind,
        languages=["en"],
        description={"en": f"{kind}, made up for tests"},
    )
    for network, record in networks.items():
        writer.insert_network(netaddr.IPSet([network]), record)
    writer.to_db_file(str(HERE / file))


SWISS, GERMAN, INDIAN = country("CH", "Switzerland"), country("DE", "Germany"), country("IN", "India")

# The layout of GeoLite2-Country: country and registered country, or only one of them.
write(
    "country.mmdb",
    "GeoLite2-Country",
    {
        "192.0.2.0/25": {"continent": {"code": "EU"}, "country": SWISS, "registered_country": GERMAN},
        "192.0.2.128/25": {"continent": {"code": "EU"}, "registered_country": GERMAN},
        "198.51.100.0/24": {"continent": {"code": "AS"}, "country": INDIAN, "registered_country": INDIAN},
        "198.51.100.7/32": {"continent": {"code": "AS"}, "traits": {"is_anycast": True}},
        "127.0.0.0/8": {"country": country("NL", "Netherlands")},
        "2001:db8:1::/48": {"continent": {"code": "EU"}, "country": SWISS, "registered_country": SWISS},
        "2001:db8:2::/48": {"continent": {"code": "AS"}, "country": INDIAN, "registered_country": INDIAN},
    },
)

# The layout of DB-IP's "IP to City Lite": no registered country, and no ids.
write(
    "city.mmdb",
    "DBIP-City-Lite",
    {
        "192.0.2.0/24": {
            "city": {"names": {"en": "Zurich"}},
            "continent": {"code": "EU", "names": {"en": "Europe"}},
            "country": {"iso_code": "CH", "names": {"en": "Switzerland"}},
            "location": {"latitude": 47.37, "longitude": 8.54},
            "subdivisions": [{"names": {"en": "Zurich"}}],
        },
        "203.0.113.0/24": {"country": {"iso_code": "ZZ"}},
    },
    ip_version=4,
)

# The layout of GeoLite2-ASN, which has no countries.
write(
    "asn.mmdb",
    "GeoLite2-ASN",
    {"192.0.2.0/24": {"autonomous_system_number": 64_496, "autonomous_system_organization": "an organization"}},
)

# The layout of another vendor, whose country is a string.
write("text.mmdb", "ipinfo country.mmdb", {"192.0.2.0/24": {"country": "CH", "country_name": "Switzerland"}})
