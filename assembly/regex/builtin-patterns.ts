// Builtins that are patterns: texts with a fixed form, such as the keys of an issuer. All have a bound of undecided
// bytes (hold.ts): no unbounded repetition is followed by more. check.ts verifies what a pattern cannot express.
import { DETECT_API_KEY, DETECT_IBAN, DETECT_IP, DETECT_PRIVATE_KEY, ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import { addApiKey } from './builtin-keys'
import { regexCompile, regexOf } from './index'
import { add, beginPattern, endPattern, pattern, patternLength } from './pattern-text'
import { useBuiltinFilter } from './prefilter'
import { R_FILTER, R_HAS_FILTER } from './run'

/** Country, two check digits, and the account number: without separators or in groups of four. */
function addIban(): void {
  add('\\b[A-Za-z]{2}[0-9]{2}(?:[A-Za-z0-9]{11,30}|(?:[ -][A-Za-z0-9]{4}){2,7}(?:[ -][A-Za-z0-9]{1,3})?)')
}

/** Four or five numbers with dots; groups of hexadecimal digits with colons. */
function addIp(): void {
  add('\\b[0-9]{1,3}(?:\\.[0-9]{1,3}){3,4}')
  add('|\\b[0-9A-Fa-f]{1,4}(?:(?::{1,2}[0-9A-Fa-f]{1,4}){1,8}(?:::)?(?:\\.[0-9]{1,3}){0,4}|::)')
  add('|::[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,7}(?:\\.[0-9]{1,3}){0,4}')
}

/** PEM, with its headers; the body ends at the next two dashes. A body without an end is masked too. */
function addPrivateKey(): void {
  add('-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\s|\\\\[nr]){0,8}')
  add('(?:[A-Z][A-Za-z-]{2,15}: ?[^\\r\\n\\\\]{0,80}(?:\\s|\\\\[nr]){1,8}){0,3}[A-Za-z0-9+/=]{16}(?:[^-]|-[^-])*')
  add('(?:-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?')
  add('|\\bAGE-SECRET-KEY-1[A-Z0-9]{58}')
}

/** Returns whether the builtin is a pattern. */
export function isPattern(detect: i32): bool {
  return detect >= DETECT_IBAN && detect <= DETECT_PRIVATE_KEY
}

/** Compiles the pattern of a builtin. Returns a handle, or a code. */
export function compileBuiltin(detect: i32): i32 {
  if (!beginPattern()) return ERROR_MEMORY
  if (detect == DETECT_IBAN) addIban()
  else if (detect == DETECT_IP) addIp()
  else if (detect == DETECT_API_KEY) addApiKey()
  else if (detect == DETECT_PRIVATE_KEY) addPrivateKey()
  const handle = patternLength == 0 ? ERROR_ARGUMENT : regexCompile(pattern, patternLength, 0)
  endPattern()
  if (handle < 0) return handle
  const regex = regexOf(handle)
  useBuiltinFilter(regex + R_FILTER, detect)
  store<u32>(regex, 1, R_HAS_FILTER)
  return handle
}
