"""What English calls languages, by their codes in `{{lang-xx}}`, and countries, by their codes in `{{FRA}}`."""

from collections.abc import Mapping
from types import MappingProxyType

ENGLISH: Mapping[str, str] = MappingProxyType({
    "af": "Afrikaans", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "ber": "Berber", "bg": "Bulgarian",
    "bn": "Bengali", "bo": "Tibetan", "br": "Breton", "brh": "Brahui", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fil": "Filipino", "fo": "Faroese",
    "fr": "French", "fy": "West Frisian", "ga": "Irish", "gd": "Scottish Gaelic", "gl": "Galician", "got": "Gothic",
    "grc": "Ancient Greek", "grc-gre": "Ancient Greek", "gu": "Gujarati", "haw": "Hawaiian", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean",
    "ku": "Kurdish", "ky": "Kyrgyz", "la": "Latin", "lb": "Luxembourgish", "lo": "Lao", "lt": "Lithuanian",
    "lv": "Latvian", "mi": "Māori", "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi",
    "ms": "Malay", "mt": "Maltese", "my": "Burmese", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian",
    "ota": "Ottoman Turkish", "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sa": "Sanskrit", "sco": "Scots", "sh": "Serbo-Croatian", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovene", "so": "Somali", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
    "te": "Telugu", "tg": "Tajik", "th": "Thai", "tk": "Turkmen", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "yi": "Yiddish", "zh": "Chinese", "zu": "Zulu",
})  # fmt: skip
"""By the code in the template's name."""

COUNTRIES: Mapping[str, str] = MappingProxyType({
    "AFG": "Afghanistan", "ALB": "Albania", "ALG": "Algeria", "AND": "Andorra", "ANG": "Angola", "ARG": "Argentina",
    "ARM": "Armenia", "AUS": "Australia", "AUT": "Austria", "AZE": "Azerbaijan", "BAN": "Bangladesh", "BEL": "Belgium",
    "BIH": "Bosnia and Herzegovina", "BLR": "Belarus", "BOL": "Bolivia", "BRA": "Brazil", "BUL": "Bulgaria",
    "CAN": "Canada", "CHE": "Switzerland", "CHI": "Chile", "CHL": "Chile", "CHN": "China", "CMR": "Cameroon",
    "COL": "Colombia", "CRC": "Costa Rica", "CRO": "Croatia", "CUB": "Cuba", "CYP": "Cyprus", "CZE": "Czech Republic",
    "DEN": "Denmark", "DEU": "Germany", "DNK": "Denmark", "DZA": "Algeria", "ECU": "Ecuador", "EGY": "Egypt",
    "ENG": "England", "ESP": "Spain", "EST": "Estonia", "ETH": "Ethiopia", "FIN": "Finland", "FRA": "France",
    "GBR": "United Kingdom", "GEO": "Georgia", "GER": "Germany", "GHA": "Ghana", "GRC": "Greece", "GRE": "Greece",
    "HKG": "Hong Kong", "HRV": "Croatia", "HUN": "Hungary", "IDN": "Indonesia", "INA": "Indonesia", "IND": "India",
    "IRI": "Iran", "IRL": "Ireland", "IRN": "Iran", "IRQ": "Iraq", "ISL": "Iceland", "ISR": "Israel", "ITA": "Italy",
    "JAM": "Jamaica", "JOR": "Jordan", "JPN": "Japan", "KAZ": "Kazakhstan", "KEN": "Kenya", "KOR": "South Korea",
    "KSA": "Saudi Arabia", "LAT": "Latvia", "LTU": "Lithuania", "LUX": "Luxembourg", "LVA": "Latvia", "MAR": "Morocco",
    "MAS": "Malaysia", "MEX": "Mexico", "MLT": "Malta", "NED": "Netherlands", "NGA": "Nigeria",
    "NIR": "Northern Ireland", "NLD": "Netherlands", "NOR": "Norway", "NZL": "New Zealand",
    "PAK": "Pakistan", "PAR": "Paraguay", "PER": "Peru",
    "PHI": "Philippines", "POL": "Poland", "POR": "Portugal", "PRC": "China", "PRK": "North Korea", "PRT": "Portugal",
    "ROM": "Romania", "ROU": "Romania", "RSA": "South Africa", "RUS": "Russia", "SCO": "Scotland", "SCG":
    "Serbia and Montenegro", "SEN": "Senegal", "SIN": "Singapore", "SLO": "Slovenia", "SRB": "Serbia", "SUI":
    "Switzerland", "SVK": "Slovakia", "SVN": "Slovenia", "SWE": "Sweden", "SYR": "Syria", "TCH": "Czechoslovakia",
    "THA": "Thailand", "TPE": "Chinese Taipei", "TUN": "Tunisia", "TUR": "Turkey", "TWN": "Taiwan", "UAE":
    "United Arab Emirates", "UKR": "Ukraine", "URS": "Soviet Union", "URU": "Uruguay", "USA": "United States",
    "UZB": "Uzbekistan", "VEN": "Venezuela", "VIE": "Vietnam", "VNM": "Vietnam", "WAL": "Wales", "YUG": "Yugoslavia",
    "ZAF": "South Africa", "ZIM": "Zimbabwe",
})  # fmt: skip
"""By the code that is the template's name, of ISO 3166, the Olympics or football."""
