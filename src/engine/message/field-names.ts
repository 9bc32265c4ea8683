import { latin1Text } from '../bytes/latin1.ts'

/** Number of names that are kept. A name has one place, in which another name may replace it. */
const places = 256
const known: (string | undefined)[] = Array.from({ length: places })

/**
 * Returns bytes [start, end), the name of a field, in lower case. Names that occur often are not made again,
 * because every message has mostly the same ones.
 */
export function lowerCaseName(bytes: Buffer, start: number, end: number): string {
  let hash = end - start
  for (let at = start; at < end; at++) hash = (hash * 31 + ((bytes[at] ?? 0) | 0x20)) | 0
  const place = hash & (places - 1)
  const name = known[place]
  if (name !== undefined && isSame(name, bytes, start, end)) return name
  const made = latin1Text(bytes, start, end).toLowerCase()
  known[place] = made
  return made
}

function isSame(name: string, bytes: Buffer, start: number, end: number): boolean {
  if (name.length !== end - start) return false
  for (let at = 0; at < name.length; at++) {
    const byte = bytes[start + at] ?? 0
    const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
    if (name.charCodeAt(at) !== lower) return false
  }
  return true
}
