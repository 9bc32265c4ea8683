// Reads fields of the configuration from the tape, and keeps the first problem.
import { append, appendAscii, appendByte, appendNumber, Bytes, clear, isAscii, newBytes } from '../../texts/bytes'
import { countOf, isKind, KIND_ARRAY, KIND_NUMBER, KIND_OBJECT, KIND_STRING, node, readName, readText, textLength, textStart } from '../../texts/tape'

/** The first problem; empty if there is none. */
export const problem: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

export function clearProblem(): void {
  clear(problem)
}

export function isGood(): bool {
  return problem.used == 0
}

/** Says that the value of a member (or an item; 0: the whole) is wrong. */
export function refuse(index: i32, text: string): void {
  if (problem.used > 0) return
  appendAscii(problem, 'plugin configuration')
  if (index != 0) {
    appendAscii(problem, ', byte ')
    appendNumber(problem, node(index).key)
    if (node(index).keyEnd > node(index).key) {
      appendAscii(problem, ' (')
      readName(index)
      append(problem, textStart, textLength)
      appendByte(problem, 41)
    }
  }
  appendAscii(problem, ': ')
  appendAscii(problem, text)
}

/** The member with that name, or 0. */
export function field(object: i32, name: string): i32 {
  if (!isKind(object, KIND_OBJECT)) return 0
  for (let i = node(object).child; i != 0; i = node(i).next) {
    readName(i)
    if (isAscii(textStart, textLength, name)) return i
  }
  return 0
}

/** Refuses a value that is no object, and members whose name is not in the list; each name ends with a space. */
export function checkFields(object: i32, names: string): void {
  if (object == 0) return
  if (!isKind(object, KIND_OBJECT)) return refuse(object, 'expected an object')
  for (let i = node(object).child; i != 0; i = node(i).next) {
    readName(i)
    if (!isListed(names)) refuse(i, 'unknown field')
  }
}

function isListed(names: string): bool {
  const text = changetype<usize>(names)
  let start = 0
  for (let i = 0; i < names.length; i++) {
    if (load<u16>(text + (<usize>i << 1)) != 32) continue
    if (isName(text + (<usize>start << 1), i - start)) return true
    start = i + 1
  }
  return false
}

function isName(name: usize, length: i32): bool {
  if (length != textLength) return false
  for (let i = 0; i < length; i++) if (load<u8>(textStart + i) != load<u8>(name + (<usize>i << 1))) return false
  return true
}

/** The first item of a list; 0 if it is absent or empty. */
export function firstItem(list: i32): i32 {
  if (list == 0) return 0
  if (isKind(list, KIND_ARRAY)) return node(list).child
  refuse(list, 'expected a list')
  return 0
}

/** The text of a field, which may be absent. */
export function copyText(index: i32, out: Bytes): void {
  clear(out)
  if (index == 0) return
  if (!isKind(index, KIND_STRING)) return refuse(index, 'expected a string')
  readText(index)
  append(out, textStart, textLength)
}

export function newText(index: i32): Bytes {
  const text = newBytes()
  copyText(index, text)
  return text
}

export function isText(index: i32, text: string): bool {
  if (!isKind(index, KIND_STRING)) return false
  readText(index)
  return isAscii(textStart, textLength, text)
}

/** A count within bounds, or `absent`. */
export function countIn(index: i32, low: i64, high: i64, absent: i64): i64 {
  if (index == 0) return absent
  const value = isKind(index, KIND_NUMBER) ? countOf(index) : -1
  if (value >= low && value <= high) return value
  refuse(index, 'the number is out of range')
  return absent
}
