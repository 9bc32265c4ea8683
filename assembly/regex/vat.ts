// VAT numbers with the prefix of their country, and their check digits.
import { isBsn, isLuhn, isMod1110, isNif, isNifLetter, isOneOf } from './check-digits'
import { at } from './detect-text'
import { characterOf, digitOf, numberOf, weighted } from './number-format'

export const VAT_FORMS: string =
  'ATU~99999999|BE~9999999999|BE~9999~999~999|BE 9999.999.999|BE9999.999.999|DE~999999999|DE~999~999~999|DK~99999999|DK~99~99~99~99|ES~#9999999#|FI~99999999|FR~##999999999|FR~##~999~999~999|FR~##~999999999|GB~999999999|GB~999~9999~99|GB~999999999999|IT~99999999999|LU~99999999|NL~999999999B99|NL 9999.99.999.B.99|PL~9999999999|PL~999~999~99~99|PL 999-999-99-99|PT~999999999|PT~999~999~999|SE~999999999901|SE 999999-999901|XI~999999999|XI~999~9999~99|XI~999999999999'

const COUNTRIES: string = 'ATBEDEDKESFIFRGBITLUNLPLPTSEXI'
/** A bit for each second letter of a country, by its first letter. */
const seconds = memory.data(104)

/** Returns whether the two letters at `offset` are a country in the list of forms. */
export function isVatCountry(offset: i32): bool {
  // The first country, Austria, shows whether the table is filled.
  if (load<u32>(seconds) == 0) {
    for (let i = 0; i < COUNTRIES.length; i += 2) {
      const row = seconds + (<usize>(COUNTRIES.charCodeAt(i) - 65) << 2)
      store<u32>(row, load<u32>(row) | (<u32>1 << (COUNTRIES.charCodeAt(i + 1) - 65)))
    }
  }
  const first = (at(offset) & ~32) - 65
  const second = (at(offset + 1) & ~32) - 65
  return first < 26 && second < 26 && ((load<u32>(seconds + (<usize>first << 2)) >> second) & 1) != 0
}

/** Returns whether the check digits of the number that begins at `offset` fit its country. */
export function isVat(offset: i32): bool {
  const country = ((at(offset) & ~32) << 8) | (at(offset + 1) & ~32)
  if (country == 0x4154) return isAustrian()
  if (country == 0x4245) return digitOf(0) < 2 && 97 - numberOf(0, 8) % 97 == numberOf(8, 2)
  if (country == 0x4445) return digitOf(0) > 0 && isMod1110(8)
  if (country == 0x444b) return digitOf(0) > 0 && weighted(0, '27654321') % 11 == 0
  if (country == 0x4553) return isSpanish()
  if (country == 0x4649) return (weighted(0, '79:5842') + digitOf(7)) % 11 == 0
  if (country == 0x4652) return isFrench()
  if (country == 0x4742 || country == 0x5849) return isBritish()
  if (country == 0x4954) return isItalian()
  if (country == 0x4c55) return numberOf(0, 6) % 89 == numberOf(6, 2)
  if (country == 0x4e4c) return isDutch()
  if (country == 0x504c) return weighted(0, '657234567') % 11 == digitOf(9)
  if (country == 0x5054) return digitOf(0) > 0 && ((11 - weighted(0, '98765432') % 11) % 11) % 10 == digitOf(8)
  return isLuhn(0, 10)
}

function isAustrian(): bool {
  let sum = 4
  for (let i = 0; i < 7; i++) {
    const value = digitOf(i)
    sum += i & 1 ? (value > 4 ? value * 2 - 9 : value * 2) : value
  }
  return (10 - sum % 10) % 10 == digitOf(7)
}

/** The letters of companies and other organizations. */
const ORGANIZATIONS: string = 'ABCDEFGHJNPQRSUVW'

/**
 * A person, or an organization: its letter, seven digits and a check digit or its letter. K, L and M are people without DNI or NIE,
 * with the letter of a DNI.
 */
function isSpanish(): bool {
  const first = characterOf(0)
  if (first < 65 || first > 87) return isNif()
  if (first >= 75 && first <= 77) return isNifLetter(numberOf(1, 7), characterOf(8))
  if (!isOneOf(first, ORGANIZATIONS)) return false
  let sum = 0
  for (let i = 1; i < 8; i++) {
    const value = digitOf(i)
    sum += i & 1 ? (value > 4 ? value * 2 - 9 : value * 2) : value
  }
  const check = (10 - sum % 10) % 10
  const last = characterOf(8)
  return last < 58 ? last == <u32>check + 48 : last == <u32>'JABCDEFGHI'.charCodeAt(check)
}

/** The value of a character of a key: digits, then letters without I and O; or -1. */
function keyValue(byte: u32): i32 {
  if (byte == 73 || byte == 79) return -1
  return byte < 58 ? byte - 48 : <i32>byte - 55 - (byte > 79 ? 2 : byte > 73 ? 1 : 0)
}

/** A key and a SIREN; those of Monaco begin with 000 and have no Luhn check digit. */
function isFrench(): bool {
  const siren = numberOf(2, 9)
  if (siren == 0 || (siren > 999999 && !isLuhn(2, 9))) return false
  const first = keyValue(characterOf(0))
  const second = keyValue(characterOf(1))
  if (first < 0 || second < 0) return false
  if (first < 10 && second < 10) return (12 + 3 * (siren % 97)) % 97 == numberOf(0, 2)
  const key = first < 10 ? first * 24 + second - 10 : first * 34 + second - 100
  return (siren + 1 + <u64>(key / 11)) % 11 == key % 11
}

/** Newer numbers have a sum that is 55 higher. */
function isBritish(): bool {
  const sum = weighted(0, '8765432') + <i32>numberOf(7, 2)
  return numberOf(0, 7) > 0 && (sum % 97 == 0 || (sum + 55) % 97 == 0)
}

/** Seven digits, the issuing office, and a Luhn check digit. */
function isItalian(): bool {
  const office = numberOf(7, 3)
  const isOffice = office > 0 && (office <= 201 || office == 888 || office == 999)
  return isOffice && numberOf(0, 7) > 0 && isLuhn(0, 11)
}

/** Since 2020 the numbers of sole traders have their check in the last two digits, modulo 97 over NL (2321) and B (11). */
function isDutch(): bool {
  if (numberOf(9, 2) == 0) return false
  if (isBsn()) return true
  let rest: u64 = 2321 % 97
  for (let i = 0; i < 9; i++) rest = (rest * 10 + <u64>digitOf(i)) % 97
  rest = (rest * 100 + 11) % 97
  return (rest * 100 + numberOf(9, 2)) % 97 == 1
}
