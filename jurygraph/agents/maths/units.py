r"""The text after a number or an expression: a unit, a scale such as "million", or words that are neither.

Doubtful cases get no credit: a word is a unit only if it is a known one or looks like a plural noun ("18 duck eggs");
"18 nope", "18 of", "18 halved" and "18 in debt" are no numbers.
"""

import re

_GROUP_WORDS = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([^{}\\]*)\}")
_DEGREES = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_POWER = re.compile(
    r"(?:(?<=[A-Za-z])|(?<=[A-Za-z]\})) ?\^ ?(?:[23]|\{ ?[23] ?\})$"
)  # of a unit: never right behind a number
_TRAILING_WORDS = re.compile(r"(?<=[0-9})\] ])[A-Za-z][A-Za-z./-]*(?: [A-Za-z][A-Za-z./-]*){0,5}$")
_SCALES = {"dozen": 12, "hundred": 10**2, "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7}
_SCALES |= {"billion": 10**9, "trillion": 10**12, "quadrillion": 10**15}
_SCALES |= {f"{word}s": scale for word, scale in _SCALES.items()}
_GLUED_LETTERS = frozenset("mgh")  # "18m"; any other letter glued to a number is a variable ("5t") or a scale ("18K")
_LETTERS = frozenset("mghslL")  # "18 s"
_TYPESET_LETTERS = _LETTERS | frozenset("NJWVACF")  # "18\text{ N}"
_SHORT_UNITS = frozenset(
    "mm cm dm km Km KM ft in yd mi mg kg Kg KG lb oz ml mL dl dL cl cL kL pt qt ms hr Hz kW MW kJ kN kV mA Pa".split()
)
_UNITS = frozenset(
    "millimeter millimetre centimeter centimetre decimeter decimetre meter metre kilometer kilometre inch inches foot"
    " feet yard mile acre hectare milligram gram kilogram kgs tonne ton pound lbs ounce stone milliliter millilitre"
    " liter litre gallon gal quart pint cup tablespoon tbsp teaspoon tsp millisecond second sec minute min hour hrs"
    " day week month year yr yrs decade century centuries degree deg radian rad celsius fahrenheit kelvin mph kph kmh"
    " kmph rpm sqft newton joule watt volt ampere ohm pascal hertz kwh kcal cal calorie byte bit dollar usd cent euro"
    " eur gbp pence penny pennies rupee inr yen jpy yuan cny peso mxn franc chf cad aud buck ruble rub unit item piece"
    " point pts person people student child children man men woman women mice geese teeth sheep fish percentage".split()
)
_ADJECTIVES = frozenset("square sq cubic cu us metric fluid fl light nautical degrees degree".split())
_CLOSINGS = frozenset({("total",), ("in", "total"), ("in", "all"), ("altogether",), ("each",), ("apiece",)})
_CLOSINGS |= {("left",), ("remaining",), ("old",)}
_NOT_UNITS = frozenset(
    "and or nor not non none never but the then than from through until between below under above over beyond about"
    " without with except least most maybe perhaps unless are was were because since thus hence this that these those"
    " which what wrong false fake incorrect right true correct plus minus times versus equals negative positive"
    " opposite inverse reciprocal fewer less more lesser greater smaller larger higher lower shorter extra additional"
    " short debt debts deficit deficits loss losses owes owe lacks misses fails seems looks remains becomes exceeds"
    " needs negates contradicts lies does always sometimes besides oops yes has his hers ours yours theirs its"
    " half halves halfs third thirds fourth fourths quarter quarters ninth tenth double doubles triple triples"
    " quadruple quadruples twice thrice multiples powers roots factorial factorials squared cubed negatives opposites"
    " inverses"
    " reciprocals pair pairs couple couples score scores gross grand grands mils mille thousandfold tens ones zeros"
    " zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy"
    " eighty ninety several many few some any all both only just basis per each every nos twos threes fours fives sixes"
    " sevens eights nines zeroes elevens twelves twenties thirties forties fifties sixties seventies eighties nineties"
    " fifteens squillions zillions gazillions lots hundredfold myriad myriads grosses sin cos tan log"
    " exp max ln min pi sqrt infinity inf oo mod opposites positives debits deductions shortfalls shortages".split()
)
_NO_NOUN = re.compile(r".*(?:ly|.ed|th|ths|teen|teens|illion|illions|illionth|fold|less|ing|wards?|wise)|[ivxlcdm]+")
_PLURAL = re.compile(r"[A-Za-z]?[a-z]{2,}[^sui\W]s")
_WORD = re.compile(r"[A-Za-z]?[a-z]{2,}")


def unit_scale(rest: str, money: bool) -> int | None:
    """Return the factor of the words after a number: 1 for a unit or nothing, None if they are no unit."""
    words = _words(rest)
    if words is None:
        return None
    scale, count = 1, 0
    while count < min(2, len(words)) and (factor := _SCALES.get(words[count].lower(), 0)) > scale:
        scale, count = scale * factor, count + 1
    is_typeset = bool(_GROUP_WORDS.match(rest.lstrip()))
    is_glued = rest[:1].isalpha() and not count
    return scale if _is_unit(words[count:], money=money, glued=is_glued, typeset=is_typeset) else None


def _words(rest: str) -> list[str] | None:
    """Return the words after a number, including "/"; None if there is anything else."""
    rest = rest.rstrip(" .")
    normalised = _DEGREES.sub(" degrees ", _GROUP_WORDS.sub(r" \1", _POWER.sub("", rest))).rstrip(" .")
    normalised = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])|(?<=[A-Za-z])\.(?= )", " ", normalised)
    if not re.fullmatch(r"[A-Za-z/ ]{0,60}", normalised):
        return None
    words = normalised.replace("/", " / ").split()
    return None if _POWER.search(rest) and not _is_known(words[-1], _TYPESET_LETTERS) else words


def _is_unit(words: list[str], *, money: bool, glued: bool, typeset: bool) -> bool:
    """Return true for `[adjective] unit`, `per unit` and "each", "in total" or similar, in order, each optional."""
    for length in (1, 2):
        if tuple(words[-length:]) in _CLOSINGS:
            words = words[:-length]
            break
    rate = next((i for i, word in enumerate(words) if word in ("/", "per", "a", "an", "each", "every")), len(words))
    head, below = words[:rate], words[rate:]
    if below and not _is_rate(below, bool(head)):
        return False
    if not head:
        return True
    if glued and not (_is_known(head[0], _GLUED_LETTERS) or head[0].lower() in _ADJECTIVES):
        return False
    if money and len(head[0]) <= 2 and head[0] not in ("us", "US"):  # "$18 mm", "$18 g"
        return False
    return _is_noun_phrase(head, _TYPESET_LETTERS if typeset else _LETTERS)


def _is_noun_phrase(words: list[str], letters: frozenset[str]) -> bool:
    *adjectives, noun = words
    if adjectives and adjectives[0].lower() in ("degree", "degrees") and noun in ("C", "F"):
        return len(adjectives) == 1
    is_known = _is_known(noun, letters)
    if not is_known and not (_PLURAL.fullmatch(noun) and _is_plain(noun)):
        return False
    return len(adjectives) < 2 and all(
        word.lower() in _ADJECTIVES or (_is_plain(word) and not _is_known(word, letters)) for word in adjectives
    )


def _is_rate(words: list[str], has_unit: bool) -> bool:
    """Return true if the words are "per day" or "/ day"; a bare "18/x" divides."""
    if len(words) != 2:
        return False
    sign, noun = words
    if sign in ("/", "a", "an"):
        return _is_known(noun, _LETTERS) and (has_unit or len(noun) > 2)
    return _is_known(noun, _LETTERS) or _is_plain(noun)


def _is_known(word: str, letters: frozenset[str]) -> bool:
    if len(word) <= 2:
        return word in letters or word in _SHORT_UNITS
    lower = word.lower()
    return lower in _UNITS or (lower[-1] == "s" and len(lower) > 3 and lower[:-1] in _UNITS)


def _is_plain(word: str) -> bool:
    lower = word.lower()
    return bool(_WORD.fullmatch(word)) and not (lower in _NOT_UNITS or lower in _SCALES or _NO_NOUN.fullmatch(lower))


def remove_unit(text: str, money: bool) -> str:
    r"""Remove a unit from the end of an expression: `6\pi \text{ cm}^2`, "x+1 apples"."""
    shorter = _POWER.sub("", text)
    group = re.search(r"\\(?:text|mathrm|mbox) ?\{([^{}\\]*)\}$", shorter)
    tail = group or _TRAILING_WORDS.search(text)
    if tail is None or tail.start() == 0:
        return text
    words = _words(tail.group(1) if group else tail.group())
    if not words or not (group or all(len(word) > 1 for word in words if word != "/")):
        return text
    is_glued = not group and text[tail.start() - 1] != " "
    fits = _is_unit(words, money=money, glued=is_glued, typeset=bool(group))
    return text[: tail.start()].rstrip() if fits else text
