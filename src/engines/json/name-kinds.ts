/** Names of members of JSON objects, by the bytes that they have. */
import { backslash } from './syntax.ts'

/** Kinds of names; each includes those before it. */
export const plain = 0
export const ascii = 1
export const unescaped = 2
export const escaped = 3

/** Returns the kind of the name in bytes [start, end). */
export function kindOf(bytes: Buffer, start: number, end: number): number {
  let kind = plain
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (byte === backslash) return escaped
    if (byte >= 0x80) kind = unescaped
    else if (byte >= 0x41 && byte <= 0x5a && kind === plain) kind = ascii
  }
  return kind
}

/** Compares a name in ASCII with one in small letters, without its case. */
export function isSameName(bytes: Buffer, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false
  for (let at = 0; at < name.length; at++) {
    const byte = bytes[start + at] ?? 0
    const isCapital = byte >= 0x41 && byte <= 0x5a
    if ((isCapital ? byte | 0x20 : byte) !== name.charCodeAt(at)) return false
  }
  return true
}
