"""Decimals that went through a binary float on their way to us, and what they were before it.

A source that keeps prices as floats sends 129.0399932861328 for 129.04. The way back is exact integer arithmetic on
the literal: nothing here is a float. What a value may be, and at which scale it is stored, is decided elsewhere.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

_PLAIN_DIGITS = 9
"""Digits that tell all binary32 numbers apart: a literal with no more of them is not spelled-out noise."""
_SURE_DIGITS = 15
"""Digits that a binary64 number surely holds; those behind are its noise."""
_MANTISSA = 24
_ROUNDED = Context(prec=_SURE_DIGITS, rounding=ROUND_HALF_EVEN)
# Prices of all kinds lie between; beyond, the floats are whole numbers or lose digits by themselves.
_LEAST, _BELOW = Decimal("1e-30"), Decimal(1 << _MANTISSA)


def without_noise(literal: Decimal) -> Decimal:
    """The shortest decimal that the float behind `literal` is made of; half-even where two are as near.

    A literal of up to nine digits is returned as it is. A longer one that spells a binary32 number out gives the
    shortest decimal which that number stands for; of any other, the digits behind the fifteenth are rounded away.
    """
    if not literal.is_finite() or len(literal.as_tuple().digits) <= _PLAIN_DIGITS:
        return literal
    if _LEAST < abs(literal) < _BELOW:
        single = _shortest_of_single(abs(literal))
        if single is not None:
            return single.copy_sign(literal)
    if len(literal.as_tuple().digits) <= _SURE_DIGITS:
        return literal
    return _trimmed(_ROUNDED.plus(literal))


def _shortest_of_single(value: Decimal) -> Decimal | None:
    """The shortest decimal of the binary32 number that `value` spells out; None if it spells out none."""
    over, under = value.as_integer_ratio()
    # mantissa / 2**shift is the binary32 number next to the value.
    exponent = over.bit_length() - under.bit_length()
    exponent -= over << max(-exponent, 0) < under << max(exponent, 0)
    shift = _MANTISSA - 1 - exponent
    mantissa = _half_even(over << shift, under)
    places = -int(value.as_tuple().exponent)
    spelled = int(value.scaleb(places))
    if abs(_half_even(mantissa * 10**places, 1 << shift) - spelled) > 1:
        return None
    for scale in range(places + 1):
        power = 10**scale
        nearest = _half_even(mantissa * power, 1 << shift)
        if 2 * abs((nearest << shift) - mantissa * power) <= power:
            return Decimal(nearest).scaleb(-scale)
    return None


def _half_even(over: int, under: int) -> int:
    whole, rest = divmod(over, under)
    return whole + (2 * rest > under or (2 * rest == under and whole % 2 == 1))


def _trimmed(value: Decimal) -> Decimal:
    """Without zeros behind the point that nobody wrote."""
    short = value.normalize(_ROUNDED)
    return short if int(short.as_tuple().exponent) <= 0 else short.quantize(Decimal(1))
