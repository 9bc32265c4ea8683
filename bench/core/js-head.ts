/**
 * The peer of the core's head reader: a JavaScript reader of raw bytes, as careful about framing as
 * it can be without classifying every byte, written for speed (no RegExp, strings only for names and
 * for the values that decide).
 */
export interface ParsedHead {
  readonly path: string
  readonly host: string
}

const cr = 13
const lf = 10
const space = 32
const colon = 58
const question = 63

const isToken = new Uint8Array(256)
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  isToken[char.charCodeAt(0)] = 1
  isToken[char.toUpperCase().charCodeAt(0)] = 1
}

/** Undefined for a head that is malformed or not whole. */
export function parseHead(bytes: Buffer, start: number, end: number): ParsedHead | undefined {
  let at = start
  while (at < end && isToken[bytes[at] ?? 0] === 1) at++
  if (bytes[at] !== space) return undefined
  const target = ++at
  let query = -1
  for (; at < end && (bytes[at] ?? 0) > space; at++) {
    if (query < 0 && bytes[at] === question) query = at
  }
  if (bytes[at] !== space) return undefined
  const path = bytes.toString('latin1', target, query < 0 ? at : query)
  if (bytes.toString('latin1', at + 1, at + 11) !== 'HTTP/1.1\r\n') return undefined
  return readFields(bytes, at + 11, end, path)
}

/** What the fields say that decides framing and routing. */
interface Facts {
  host: string | undefined
  lengths: number
}

function readFields(
  bytes: Buffer,
  from: number,
  end: number,
  path: string,
): ParsedHead | undefined {
  const facts: Facts = { host: undefined, lengths: 0 }
  let at = from
  while (at < end && bytes[at] !== cr) {
    at = readField(bytes, at, end, facts)
    if (at < 0) return undefined
  }
  const { host, lengths } = facts
  if (bytes[at + 1] !== lf || host === undefined || lengths > 1) return undefined
  const port = host.indexOf(':')
  return { path, host: port < 0 ? host : host.slice(0, port) }
}

/** Offset after the field's line; -1 when it is malformed. */
function readField(bytes: Buffer, name: number, end: number, facts: Facts): number {
  let at = name
  while (at < end && isToken[bytes[at] ?? 0] === 1) at++
  if (bytes[at] !== colon) return -1
  const length = at++ - name
  while (bytes[at] === space) at++
  const value = at
  while (at < end && ((bytes[at] ?? 0) >= space || bytes[at] === 9)) at++
  if (bytes[at] !== cr || bytes[at + 1] !== lf) return -1
  const isTelling = length === 4 || length === 14 || length === 17 || length === 10
  if (isTelling && !note(bytes, name, length, value, at, facts)) return -1
  return at + 2
}

function note(
  bytes: Buffer,
  name: number,
  length: number,
  value: number,
  end: number,
  facts: Facts,
): boolean {
  const lower = bytes.toString('latin1', name, name + length).toLowerCase()
  if (lower === 'content-length' || lower === 'transfer-encoding') facts.lengths++
  if (lower !== 'host') return true
  if (facts.host !== undefined) return false
  facts.host = bytes.toString('latin1', value, end).toLowerCase()
  return true
}
