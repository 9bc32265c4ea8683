// Reads numbers in the forms that people write. A form is a text in which
//
//   9  is a digit                 @  a letter              #  a letter or digit
//   ~  is a space, dash or dot, the same at each place, or nothing at any
//
// and any other byte is itself. `|` is between forms. The characters of 9, @ and # are collected, letters in upper case.
import { isDigit, isLetter } from './ascii'
import { at } from './detect-text'

const LIMIT: i32 = 20
/** The collected characters. */
const characters = memory.data(20)
export let characterCount: i32 = 0

/** Returns a collected character. */
// @ts-ignore: decorator
@inline
export function characterOf(index: i32): u32 {
  return <u32>load<u8>(characters + index)
}

/** Returns the value of a collected digit. */
// @ts-ignore: decorator
@inline
export function digitOf(index: i32): i32 {
  return <i32>load<u8>(characters + index) - 48
}

/** Returns the sum of digits from `from` on, each times its weight; a weight of `:` is 10. */
export function weighted(from: i32, weights: string): i32 {
  let sum = 0
  for (let i = 0; i < weights.length; i++) sum += digitOf(from + i) * (weights.charCodeAt(i) - 48)
  return sum
}

/** Returns `count` collected digits from `from` on as a number. */
export function numberOf(from: i32, count: i32): u64 {
  let number: u64 = 0
  for (let i = from; i < from + count; i++) number = number * 10 + <u64>digitOf(i)
  return number
}

/** Returns whether a byte is one of those for which `~` stands. */
export function isNumberSeparator(byte: u32): bool {
  return byte == 32 || byte == 45 || byte == 46
}

function isOfKind(form: u32, byte: u32): bool {
  if (form == 57) return isDigit(byte)
  return isLetter(byte) || (form == 35 && isDigit(byte))
}

/** Returns the end of the text from `offset` on that has the form at `form` in `forms`, or 0. Collects its characters. */
export function formEnd(forms: string, form: i32, offset: i32): i32 {
  characterCount = 0
  let separator: i32 = -1
  let i = offset
  for (let f = form; f < forms.length; f++) {
    const sign = forms.charCodeAt(f)
    if (sign == 124) break
    const byte = at(i)
    if (sign == 126) {
      if (separator < 0) separator = isNumberSeparator(byte) ? byte : 0
      if (separator == 0) continue
      if (byte != <u32>separator) return 0
    } else if (sign == 57 || sign == 64 || sign == 35) {
      if (!isOfKind(sign, byte) || characterCount == LIMIT) return 0
      store<u8>(characters + characterCount++, isLetter(byte) ? byte & ~32 : byte)
    } else if (byte != <u32>sign && (!isLetter(byte) || (byte & ~32) != <u32>sign)) return 0
    i++
  }
  return i
}

/** Returns the offset in `forms` of the form after the one at `form`, or -1. */
export function nextForm(forms: string, form: i32): i32 {
  for (let f = form; f < forms.length; f++) if (forms.charCodeAt(f) == 124) return f + 1
  return -1
}
