// Verifies the matches of builtins that are patterns: check digits, ranges, and the bytes around a match. A match with
// a check has a bounded length, so that it is never written before it is verified.
import { DETECT_IBAN, DETECT_IP } from '../abi'
import { isWord } from './ascii'

/** Returns the end of the verified match in start..end, or 0. The byte at `end` has arrived unless the text ends there. */
export function checkedEnd(detect: i32, text: usize, length: i32, start: i32, end: i32): i32 {
  if (detect == DETECT_IBAN) return ibanEnd(text, length, start, end)
  if (detect == DETECT_IP) return isAddress(text, length, start, end) ? end : 0
  return end
}

// @ts-ignore: decorator
@inline
function byteAt(text: usize, length: i32, at: i32): u32 {
  return at >= 0 && at < length ? <u32>load<u8>(text + at) : 0
}

// --- bank accounts ---------------------------------------------------------------------------------

/** The length of an IBAN in each country of the registry (ISO 13616). */
const IBAN_LENGTHS: string = 'AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30'

/** Returns the number of characters of the country's account numbers, or 0 if it has none. */
function ibanLength(first: u32, second: u32): i32 {
  for (let i = 0; i < IBAN_LENGTHS.length; i += 4) {
    if (IBAN_LENGTHS.charCodeAt(i) != first || IBAN_LENGTHS.charCodeAt(i + 1) != second) continue
    return (IBAN_LENGTHS.charCodeAt(i + 2) - 48) * 10 + IBAN_LENGTHS.charCodeAt(i + 3) - 48
  }
  return 0
}

/** Appends a digit, or a letter as two digits (A is 10), to a number modulo 97. */
function appended(number: u32, byte: u32): u32 {
  return byte < 58 ? (number * 10 + byte - 48) % 97 : (number * 100 + (byte & ~32) - 55) % 97
}

/** The number that begins with the account and ends with country and check digits is 1 modulo 97. */
function ibanEnd(text: usize, length: i32, start: i32, end: i32): i32 {
  let rest = ibanLength(<u32>load<u8>(text + start) & ~32, <u32>load<u8>(text + start + 1) & ~32) - 4
  if (rest < 0) return 0
  const separator = byteAt(text, length, start + 4)
  let number: u32 = 0
  let at = start + 4
  for (; at < end && rest > 0; at++) {
    const byte = <u32>load<u8>(text + at)
    if (isWord(byte)) {
      number = appended(number, byte)
      rest--
    } else if (byte != separator) return 0
  }
  if (rest > 0 || isWord(byteAt(text, length, at))) return 0
  for (let i = 0; i < 4; i++) number = appended(number, <u32>load<u8>(text + start + i))
  return number == 1 ? at : 0
}

// --- network addresses -------------------------------------------------------------------------------

function isAddress(text: usize, length: i32, start: i32, end: i32): bool {
  const before = byteAt(text, length, start - 1)
  if (isWord(before) || before == 46 || isWord(byteAt(text, length, end))) return false
  for (let i = start; i < end; i++) {
    if (load<u8>(text + i) == 58) return before != 58 && isVersion6(text, start, end)
  }
  return isVersion4(text, start, end)
}

/** Exactly four numbers up to 255, not all 0. */
function isVersion4(text: usize, start: i32, end: i32): bool {
  let dots = 0
  let value: u32 = 0
  let any: u32 = 0
  for (let i = start; i < end; i++) {
    const byte = <u32>load<u8>(text + i)
    if (byte == 46) {
      dots++
      value = 0
    } else value = byte - 48 < 10 ? value * 10 + byte - 48 : 256
    if (value > 255) return false
    any |= value
  }
  return dots == 3 && any != 0
}

/**
 * Eight groups, or fewer with one `::` (RFC 4291, 2.2); the last two groups may be an address of version 4. Fewer than three
 * groups need one of three or more digits with a decimal digit: `1::2` and `ab::cd` occur in programs.
 */
function isVersion6(text: usize, start: i32, end: i32): bool {
  let groups = 0
  let isShort = false
  let isNumber = false
  let isLong = false
  let at = start
  while (at < end) {
    if (load<u8>(text + at) == 58) {
// A single colon stands between groups; the pattern has no third one.
      if (at + 1 < end && load<u8>(text + at + 1) == 58) {
        if (isShort) return false
        isShort = true
        at++
      }
      at++
      continue
    }
    const from = at
    for (; at < end && load<u8>(text + at) != 46 && load<u8>(text + at) != 58; at++) {
      isNumber = isNumber || <u32>load<u8>(text + at) - 48 < 10
    }
    isLong = isLong || at - from > 2
    groups++
    if (at == end || load<u8>(text + at) == 58) continue
    if (!isVersion4(text, from, end)) return false
    groups++
    isLong = true
    break
  }
  if (!isShort) return groups == 8
  return groups < 8 && (groups > 2 || (isNumber && isLong))
}
