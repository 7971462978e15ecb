"""Decimals that went through a binary float on their way to us, and what they were before it.

A source that keeps prices as floats sends 129.0399932861328 for 129.04. The way back is exact integer arithmetic on the
literal: nothing here is a float. Other modules decide whether a value can be true, and at which scale it is stored.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

_PLAIN_DIGITS = 9
"""Digits that tell all binary32 numbers apart: a literal with no more of them is not spelled-out noise."""
_SURE_DIGITS = 15
"""Digits that a binary64 number surely holds; those behind are its noise."""
_PLACES = 18
"""Decimal places that an amount may have. A small price in full precision has more."""
_KEPT = 10**6
"""Parts of a unit that adjusted prices are kept in."""
_MANTISSA = 24
_ROUNDED = Context(prec=_SURE_DIGITS, rounding=ROUND_HALF_EVEN)
# Prices of all kinds lie between; beyond, the floats are whole numbers or lose digits by themselves.
_LEAST, _BELOW = Decimal("1e-30"), Decimal(1 << _MANTISSA)
_UNBELIEVABLE = Decimal("1e18")


def without_noise(literal: Decimal) -> Decimal:
    """The shortest decimal that the float behind `literal` is made of; half-even where two are as near.

    A literal of up to nine digits is returned as it is. A longer one that spells a binary32 number out gives the
    shortest decimal which that number stands for. Any other is rounded to fifteen digits and eighteen decimal places.
    """
    digits = len(literal.as_tuple().digits)
    if not literal.is_finite() or digits <= _PLAIN_DIGITS or abs(literal) >= _UNBELIEVABLE:
        return literal
    if _LEAST < abs(literal) < _BELOW:
        mantissa, shift = _single(abs(literal))
        places = -int(literal.as_tuple().exponent)
        spelled = _half_even(mantissa * 10**places, 1 << shift)
        if abs(spelled - int(abs(literal).scaleb(places))) <= 1:
            return _shortest(2 * mantissa, 1, 2 << shift).copy_sign(literal)
    rounded = literal if digits <= _SURE_DIGITS else _trimmed(_ROUNDED.plus(literal))
    if int(rounded.as_tuple().exponent) >= -_PLACES or rounded.adjusted() < -_PLACES:
        return rounded
    return _trimmed(rounded.quantize(Decimal(1).scaleb(-_PLACES), ROUND_HALF_EVEN))


def before_division(literal: Decimal, new: Decimal, old: Decimal) -> Decimal:
    """The shortest decimal that gives `literal` when divided by `new` / `old`, cut to six places, and made a binary32.

    All three must be above zero. That finds 28.75 behind 0.1283479928970337, the 224th part of it: six places are
    what adjusted prices are kept with. Raises ArithmeticError for a literal that no price can be.
    """
    if not _LEAST < literal < _BELOW:
        raise ArithmeticError(f"{literal} is out of range")
    mantissa, shift = _single(literal)
    (new_over, new_under), (old_over, old_under) = new.as_integer_ratio(), old.as_integer_ratio()
    over, under = new_over * old_under, new_under * old_over
    # The reach is half a step of the binary32 number and half a millionth.
    return _shortest(2 * mantissa * over * _KEPT, over * (_KEPT + (1 << shift)), (2 << shift) * under * _KEPT)


def _single(value: Decimal) -> tuple[int, int]:
    """The binary32 number next to a value between the bounds: a mantissa, to be divided by 2 to a power."""
    over, under = value.as_integer_ratio()
    exponent = over.bit_length() - under.bit_length()
    exponent -= over << max(-exponent, 0) < under << max(exponent, 0)
    shift = _MANTISSA - 1 - exponent
    return _half_even(over << shift, under), shift


def _shortest(middle: int, reach: int, under: int) -> Decimal:
    """The decimal of the fewest places between (middle - reach) / under and (middle + reach) / under."""
    places = 0
    while True:
        power = 10**places
        nearest = _half_even(middle * power, under)
        if abs(nearest * under - middle * power) <= reach * power:
            return Decimal(nearest).scaleb(-places)
        places += 1


def _half_even(over: int, under: int) -> int:
    whole, rest = divmod(over, under)
    return whole + (2 * rest > under or (2 * rest == under and whole % 2 == 1))


def _trimmed(value: Decimal) -> Decimal:
    """The value without trailing zeros after the point."""
    short = value.normalize(_ROUNDED)
    return short if int(short.as_tuple().exponent) <= 0 else short.quantize(Decimal(1))
