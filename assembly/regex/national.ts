// Numbers of people and companies that ten countries give out: the forms in which they are written (number-format.ts)
// and their check digits. docs/regex.md describes them for users.
import { DETECT_AADHAAR, DETECT_BSN, DETECT_CNPJ, DETECT_CPF, DETECT_FISCAL_CODE, DETECT_NHS, DETECT_NIF, DETECT_NINO, DETECT_NIR, DETECT_PERSONNUMMER, DETECT_PESEL, DETECT_TAX_ID, DETECT_VAT } from '../abi'
import { isDigit, isWord } from './ascii'
import { isBsn, isLuhn, isMod1110, isNif, isOneOf, isVaried, placeOf } from './check-digits'
import { at } from './detect-text'
import { characterCount, characterOf, digitOf, formEnd, nextForm, numberOf, weighted } from './number-format'
import { isVat, isVatCountry, VAT_FORMS } from './vat'

const TAX_ID: u32 = 1 << DETECT_TAX_ID
const NIR: u32 = 1 << DETECT_NIR
const NIF: u32 = 1 << DETECT_NIF
const FISCAL_CODE: u32 = 1 << DETECT_FISCAL_CODE
const BSN: u32 = 1 << DETECT_BSN
const PESEL: u32 = 1 << DETECT_PESEL
const PERSONNUMMER: u32 = 1 << DETECT_PERSONNUMMER
const NINO: u32 = 1 << DETECT_NINO
const NHS: u32 = 1 << DETECT_NHS
const AADHAAR: u32 = 1 << DETECT_AADHAAR
const CPF: u32 = 1 << DETECT_CPF
const CNPJ: u32 = 1 << DETECT_CNPJ
export const VAT: u32 = 1 << DETECT_VAT

/** The detectors whose matches begin with letters and then a digit, perhaps after a separator. */
export const LETTERED: u32 = NIF | FISCAL_CODE | NINO | VAT
/** Maximum number of letters before the first digit. */
export const LETTERS: i32 = 6

/** The detectors whose matches can begin with 1, 2, … 15 digits, after which another byte follows. */
const BY_DIGITS = memory.data<u32>([
  NIR, TAX_ID | NIF | CNPJ, BSN | NHS | CPF, BSN | AADHAAR, 0, PERSONNUMMER | NIR, 0, NIF | PERSONNUMMER | CNPJ, BSN | CPF,
  NHS | PERSONNUMMER, TAX_ID | PESEL | CPF, PERSONNUMMER | AADHAAR, NIR, CNPJ, NIR
])
/** The detectors whose matches can begin with 1 to 6 letters. */
const BY_LETTERS = memory.data<u32>([NIF, NINO | VAT, VAT, VAT, 0, FISCAL_CODE])

/** Returns the detectors, as bits, that may match at a number of `digits` digits, which `next` follows. */
export function nationalAfter(digits: i32, next: u32): u32 {
  if (digits > 15) return 0
  const kinds = load<u32>(BY_DIGITS + (<usize>(digits - 1) << 2))
  if (!isWord(next)) return kinds
  // A letter follows directly: the check letter of Spain, or a department of Corsica.
  return kinds & (digits == 8 ? NIF : digits == 6 ? NIR : 0)
}

/** Returns the detectors, as bits, that may match at `letters` letters before a digit. */
export function nationalAfterLetters(letters: i32): u32 {
  return load<u32>(BY_LETTERS + (<usize>(letters - 1) << 2))
}

function formsOf(detect: i32): string {
  if (detect == DETECT_TAX_ID) return '99~999~999~999'
  if (detect == DETECT_NIR) return '9~99~99~9#~999~999~99|999999#999999 99'
  if (detect == DETECT_NIF) return '99999999~@|99.999.999-@|@~9999999~@'
  if (detect == DETECT_FISCAL_CODE) return '@@@@@@##@##@###@'
  if (detect == DETECT_BSN) return '999~999~999|9999.99.999'
  if (detect == DETECT_PESEL) return '99999999999'
  if (detect == DETECT_PERSONNUMMER) return '999999~9999|999999+9999|99999999~9999|99999999+9999'
  if (detect == DETECT_NINO) return '@@~99~99~99~@|@@~999999~@'
  if (detect == DETECT_NHS) return '999~999~9999'
  if (detect == DETECT_AADHAAR) return '9999~9999~9999'
  if (detect == DETECT_CPF) return '999.999.999-99|999999999-99|99999999999'
  if (detect == DETECT_CNPJ) return '99.999.999/9999-99|99999999/9999-99|99999999999999'
  return VAT_FORMS
}

/** Returns the end of the match of a national detector that begins at `offset`, or 0: the first form that fits. */
export function nationalEnd(detect: i32, offset: i32): i32 {
  if (detect == DETECT_VAT && !isVatCountry(offset)) return 0
  const forms = formsOf(detect)
  for (let form = 0; form >= 0; form = nextForm(forms, form)) {
    const end = formEnd(forms, form, offset)
    if (end == 0 || isWord(at(end)) || !isValid(detect, offset)) continue
    if ((LETTERED >> detect) & 1 && hasWords(offset, end)) continue
    return end
  }
  return 0
}

/** Spaces and lower-case letters: `at 123456 a` and `de 123 456 788` are parts of sentences. */
function hasWords(offset: i32, end: i32): bool {
  let hasSpace = false
  let hasLower = false
  for (let i = offset; i < end; i++) {
    hasSpace = hasSpace || at(i) == 32
    hasLower = hasLower || at(i) - 97 < 26
  }
  return hasSpace && hasLower
}

function isValid(detect: i32, offset: i32): bool {
  if (detect == DETECT_TAX_ID) return isTaxId()
  if (detect == DETECT_NIR) return isNir()
  if (detect == DETECT_NIF) return isNif()
  if (detect == DETECT_FISCAL_CODE) return isFiscalCode()
  if (detect == DETECT_BSN) return isBsn()
  if (detect == DETECT_PESEL) return isPesel()
  if (detect == DETECT_PERSONNUMMER) return isPersonnummer()
  if (detect == DETECT_NINO) return isNino()
  if (detect == DETECT_NHS) return isVaried(10) && (weighted(0, ':98765432') + digitOf(9)) % 11 == 0
  if (detect == DETECT_AADHAAR) return isAadhaar()
  if (detect == DETECT_CPF) return isVaried(11) && isCpf()
  if (detect == DETECT_CNPJ) return isVaried(14) && isCnpj()
  return isVat(offset)
}

/** Germany: of the first ten digits, exactly one occurs twice or three times. */
function isTaxId(): bool {
  if (digitOf(0) == 0) return false
  let counts: u64 = 0
  for (let i = 0; i < 10; i++) counts += <u64>1 << <u64>(digitOf(i) * 4)
  let repeated = 0
  for (let i = 0; i < 10; i++) {
    const count = (counts >> <u64>(i * 4)) & 15
    if (count > 3) return false
    if (count > 1) repeated++
  }
  return repeated == 1 && isMod1110(10)
}

/** France: sex, year, month, department, commune, order and 97 minus the rest of 97. */
function isNir(): bool {
  const first = digitOf(0)
  const month = <i32>numberOf(3, 2)
  if (first == 0 || first == 9 || first == 5 || first == 6) return false
  if (month == 0 || (month > 12 && month < 20) || (month > 42 && month < 50)) return false
  const department = characterOf(6)
  // Corsica: 2A counts as 19, 2B as 18.
  const isCorsica = !isDigit(department)
  if (isCorsica && (digitOf(5) != 2 || department > 66)) return false
  const area: u64 = isCorsica ? (department == 65 ? 19 : 18) : numberOf(5, 2)
  const number = (numberOf(0, 5) * 100 + area) * 1000000 + numberOf(7, 6)
  return 97 - number % 97 == numberOf(13, 2)
}

/** Values of 0 to 9, which are those of A to J, and of A to Z, at odd places. */
const ODD_VALUES = memory.data<u8>([1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23])
/** The letters of months. */
const MONTHS: string = 'ABCDEHLMPRST'
/** The letters that can replace the digits 0 to 9. */
const REPLACEMENTS: string = 'LMNPQRSTUV'

/** The value of a digit, or of the letter that replaces it. */
function replacedDigit(index: i32): i32 {
  const byte = characterOf(index)
  return isDigit(byte) ? byte - 48 : placeOf(byte, REPLACEMENTS)
}

/** Italy: digits may be replaced by letters (L to V) if two people would have the same code. */
function isFiscalCode(): bool {
  let sum: u32 = 0
  for (let i = 0; i < 15; i++) {
    const byte = characterOf(i)
    const value = isDigit(byte) ? byte - 48 : byte - 65
    sum += i & 1 ? value : <u32>load<u8>(ODD_VALUES + value)
    const isNumber = i > 5 && i != 8 && i != 11
    if (isNumber && !isDigit(byte) && (byte < 76 || byte > 86 || byte == 79)) return false
  }
  // For women, 40 is added to the day.
  const day = replacedDigit(9) * 10 + replacedDigit(10)
  return isDate(placeOf(characterOf(8), MONTHS) + 1, day > 40 ? day - 40 : day) && characterOf(15) == 65 + sum % 26
}

/** A month from 1 to 12 and a day that it has in some year. */
function isDate(month: i32, day: i32): bool {
  if (month <= 0 || month > 12) return false
  const last = month == 2 ? 29 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
  return day > 0 && day <= last
}

/** Poland: the century is added to the month. */
function isPesel(): bool {
  const month = <i32>numberOf(2, 2)
  return isDate(month % 20, <i32>numberOf(4, 2)) && (weighted(0, '1379137913') + digitOf(10)) % 10 == 0
}

/** Sweden: the day of a coordination number is 60 higher. */
function isPersonnummer(): bool {
  const from = characterCount - 10
  if (from == 2 && (numberOf(0, 2) < 18 || numberOf(0, 2) > 20)) return false
  const day = <i32>numberOf(from + 4, 2)
  return isDate(<i32>numberOf(from + 2, 2), day > 60 ? day - 60 : day) && isLuhn(from, 10)
}

/** The United Kingdom: letters that are not given out; there is no check digit. */
function isNino(): bool {
  const first = characterOf(0)
  const second = characterOf(1)
  if (isOneOf(first, 'DFIQUV') || isOneOf(second, 'DFIOQUV') || characterOf(8) > 68) return false
  const pair = (first << 8) | second
  // BG, GB, KN, NK, NT, TN, ZZ
  return pair != 0x4247 && pair != 0x4742 && pair != 0x4b4e && pair != 0x4e4b && pair != 0x4e54 && pair != 0x544e && pair != 0x5a5a
}

/** The permutation of Verhoeff's algorithm, whose powers are applied by place. */
const PERMUTATION = memory.data<u8>([1, 5, 7, 6, 2, 8, 3, 0, 9, 4])

/** Returns the product of the dihedral group of ten elements. */
function dihedral(a: i32, b: i32): i32 {
  if (a < 5) return b < 5 ? (a + b) % 5 : 5 + (a + b) % 5
  return b < 5 ? 5 + (a - b) % 5 : (5 + a - b) % 5
}

/** India: the first digit is 2 to 9; Verhoeff's check digit. */
function isAadhaar(): bool {
  if (digitOf(0) < 2 || !isVaried(12)) return false
  let check = 0
  for (let i = 0; i < 12; i++) {
    let value = digitOf(11 - i)
    for (let power = i % 8; power > 0; power--) value = load<u8>(PERMUTATION + value)
    check = dihedral(check, value)
  }
  return check == 0
}

/** Brazil: a rest of 10 is written as 0. */
function isRest(sum: i32, digit: i32): bool {
  return (sum * 10 % 11) % 10 == digit
}

function isCpf(): bool {
  return isRest(weighted(0, ':98765432'), digitOf(9)) && isRest(weighted(0, ';:98765432'), digitOf(10))
}

function isCnpj(): bool {
  return isRest(weighted(0, '543298765432'), digitOf(12)) && isRest(weighted(0, '6543298765432'), digitOf(13))
}
