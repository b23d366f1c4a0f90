// Any character for texts of property tests.
import fc from 'fast-check';

/** A code point, of a surrogate too: as the unit `binary` of fast-check, which takes a second to set up its table. */
export const anyCharacter = fc.nat(0x10ffff).map(code => String.fromCodePoint(code));
