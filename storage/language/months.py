"""Month names, January first, in lower case without accents: English, German, the Romance languages, Dutch."""

from types import MappingProxyType

_NAMES = (
    "january januar enero janvier gennaio janeiro januari janner",
    "february februar febrero fevrier febbraio fevereiro februari",
    "march marz maerz marzo mars marco maart",
    "april abril avril aprile",
    "may mai mayo maggio maio mei",
    "june juni junio juin giugno junho",
    "july juli julio juillet luglio julho",
    "august agosto aout augustus",
    "september septiembre setiembre septembre settembre setembro",
    "october oktober octubre octobre ottobre outubro",
    "november noviembre novembre novembro",
    "december dezember diciembre decembre dicembre dezembro",
)
_SHORT_NAMES = (
    *("jan ene janv", "feb fev fevr febr", "mar mrz mrt", "apr abr avr", "mai", "jun", "jul juil"),
    *("aug", "sep sept", "oct okt ott", "nov", "dec dez dic"),
)


MONTHS, SHORT_MONTHS = (
    MappingProxyType({name: number for number, line in enumerate(lines, start=1) for name in line.split()})
    for lines in (_NAMES, _SHORT_NAMES)
)
