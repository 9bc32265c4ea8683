// VAT numbers with the prefix of their country, and their check digits.
import { isBsn, isLuhn, isMod1110, isNif } from './check-digits'
import { at } from './detect-text'
import { characterOf, digitOf, numberOf, weighted } from './number-format'

export const VAT_FORMS: string =
  'ATU~99999999|BE~9999999999|BE~9999~999~999|BE 9999.999.999|BE9999.999.999|DE~999999999|DE~999~999~999|DK~99999999|DK~99~99~99~99|ES~#9999999#|FI~99999999|FR~##999999999|FR~##~999~999~999|FR~##~999999999|GB~999999999|GB~999~9999~99|IT~99999999999|LU~99999999|NL~999999999B99|NL 9999.99.999.B.99|PL~9999999999|PL~999~999~99~99|PL 999-999-99-99|PT~999999999|PT~999~999~999|SE~999999999901|SE 999999-999901'

/** Returns whether the check digits of the number that begins at `offset` fit its country. */
export function isVat(offset: i32): bool {
  const country = ((at(offset) & ~32) << 8) | (at(offset + 1) & ~32)
  if (country == 0x4154) return isAustrian()
  if (country == 0x4245) return digitOf(0) < 2 && 97 - numberOf(0, 8) % 97 == numberOf(8, 2)
  if (country == 0x4445) return isMod1110(8)
  if (country == 0x444b) return digitOf(0) > 0 && weighted(0, '27654321') % 11 == 0
  if (country == 0x4553) return isSpanish()
  if (country == 0x4649) return (weighted(0, '79:5842') + digitOf(7)) % 11 == 0
  if (country == 0x4652) return isFrench()
  if (country == 0x4742) return isBritish()
  if (country == 0x4954) return isLuhn(0, 11) && numberOf(0, 7) > 0
  if (country == 0x4c55) return numberOf(0, 6) % 89 == numberOf(6, 2)
  if (country == 0x4e4c) return isDutch()
  if (country == 0x504c) return weighted(0, '657234567') % 11 == digitOf(9)
  if (country == 0x5054) return ((11 - weighted(0, '98765432') % 11) % 11) % 10 == digitOf(8)
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

/** A person, or a company: a letter, seven digits and a check digit or its letter. */
function isSpanish(): bool {
  const first = characterOf(0)
  if (first < 65 || first > 87) return isNif()
  let sum = 0
  for (let i = 1; i < 8; i++) {
    const value = digitOf(i)
    sum += i & 1 ? (value > 4 ? value * 2 - 9 : value * 2) : value
  }
  const check = (10 - sum % 10) % 10
  const last = characterOf(8)
  return last < 58 ? last == <u32>check + 48 : last == <u32>'JABCDEFGHI'.charCodeAt(check)
}

/** Keys with letters have no published check. */
function isFrench(): bool {
  if (!isLuhn(2, 9) || numberOf(2, 9) == 0) return false
  if (characterOf(0) > 57 || characterOf(1) > 57) return characterOf(0) != 73 && characterOf(0) != 79 && characterOf(1) != 73 && characterOf(1) != 79
  return (12 + 3 * (numberOf(2, 9) % 97)) % 97 == numberOf(0, 2)
}

/** Newer numbers have a sum that is 55 higher. */
function isBritish(): bool {
  const sum = weighted(0, '8765432') + <i32>numberOf(7, 2)
  return numberOf(0, 7) > 0 && (sum % 97 == 0 || (sum + 55) % 97 == 0)
}

/** Since 2020 the numbers of sole traders have their check in the last two digits, modulo 97 over NL (2321) and B (11). */
function isDutch(): bool {
  if (isBsn()) return true
  let rest: u64 = 2321 % 97
  for (let i = 0; i < 9; i++) rest = (rest * 10 + <u64>digitOf(i)) % 97
  rest = (rest * 100 + 11) % 97
  return (rest * 100 + numberOf(9, 2)) % 97 == 1
}
