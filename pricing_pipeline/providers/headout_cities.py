"""The time zone of a city by Headout's code for it, such as NEW_YORK: its answers name a city and no zone.

Most codes are names in the IANA database. Other names are listed here for much-visited cities; a city that is in
neither has no zone.
"""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

_AREAS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
_OTHERS = {
    "Africa/Cairo": "GIZA LUXOR HURGHADA SHARM_EL_SHEIKH",
    "Africa/Casablanca": "MARRAKECH MARRAKESH FES AGADIR",
    "Africa/Johannesburg": "CAPE_TOWN",
    "America/Cancun": "PLAYA_DEL_CARMEN TULUM COZUMEL",
    "America/Chicago": "NASHVILLE NEW_ORLEANS HOUSTON DALLAS AUSTIN SAN_ANTONIO",
    "America/Los_Angeles": "SAN_FRANCISCO SAN_DIEGO LAS_VEGAS SEATTLE ANAHEIM",
    "America/New_York": "ORLANDO MIAMI BOSTON WASHINGTON_DC WASHINGTON PHILADELPHIA ATLANTA KEY_WEST",
    "America/Phoenix": "SEDONA GRAND_CANYON",
    "Asia/Bangkok": "PHUKET PATTAYA CHIANG_MAI KRABI KOH_SAMUI HANOI",
    "Asia/Dubai": "ABU_DHABI RAS_AL_KHAIMAH SHARJAH",
    "Asia/Ho_Chi_Minh": "DA_NANG HOI_AN",
    "Asia/Kolkata": "DELHI NEW_DELHI MUMBAI AGRA JAIPUR GOA BENGALURU",
    "Asia/Kuala_Lumpur": "LANGKAWI PENANG",
    "Asia/Kuwait": "KUWAIT_CITY",
    "Asia/Makassar": "BALI",
    "Asia/Qatar": "DOHA",
    "Asia/Tokyo": "KYOTO OSAKA HIROSHIMA NARA SAPPORO",
    "Australia/Brisbane": "GOLD_COAST CAIRNS",
    "Europe/Athens": "SANTORINI MYKONOS CRETE",
    "Europe/Berlin": "MUNICH HAMBURG FRANKFURT COLOGNE DRESDEN",
    "Europe/Istanbul": "CAPPADOCIA ANTALYA",
    "Europe/Lisbon": "PORTO SINTRA ALGARVE",
    "Europe/London": "EDINBURGH BATH OXFORD LIVERPOOL WINDSOR",
    "Europe/Madrid": "BARCELONA SEVILLE GRANADA VALENCIA MALAGA MALLORCA CORDOBA",
    "Europe/Paris": "NICE VERSAILLES LYON MARSEILLE STRASBOURG BORDEAUX",
    "Europe/Rome": "FLORENCE VENICE MILAN NAPLES PISA SORRENTO SICILY VERONA TURIN",
    "Europe/Vienna": "SALZBURG INNSBRUCK",
    "Europe/Warsaw": "KRAKOW",
    "Europe/Zurich": "GENEVA LUCERNE INTERLAKEN",
    "Pacific/Auckland": "QUEENSTOWN ROTORUA",
}


def zone_of(city: str) -> str | None:
    """The IANA name of the zone of a city's code; None for a city that is not known."""
    return _zones().get(city)


@cache
def _zones() -> dict[str, str]:
    # Where a name is in several areas, they are old and new names of one zone: Asia/Istanbul, Europe/Istanbul. Names of
    # three parts are left out: America/Argentina/San_Juan is not where most look for San Juan.
    named = {
        name.partition("/")[2].upper(): name
        for name in sorted(available_timezones())
        if name.startswith(_AREAS) and name.count("/") == 1
    }
    return named | {city: zone for zone, cities in _OTHERS.items() for city in cities.split()}
