/**
 * The peer of the core's head reader: the same job in JavaScript, written for speed. It reports the
 * same facts (spans of every field, framing, persistence, hop-by-hop fields, authority) and refuses
 * the same heads as far as that costs anything on good ones. No RegExp, no garbage but the strings
 * that routing needs.
 */
export const fieldWords = 5
const maxFields = 100

/** What one head says; reused from head to head. */
export class JsHead {
  host = ''
  path = ''
  queryStart = -1
  queryEnd = -1
  port = -1
  isPersistent = true
  isChunked = false
  contentLength = -1
  fieldCount = 0
  /** Name start and end, value start and end, 1 for hop-by-hop. */
  readonly fields = new Int32Array(maxFields * fieldWords)
}

const cr = 13
const lf = 10
const tab = 9
const space = 32
const colon = 58
const question = 63
const hash = 35

const tokens = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
const hostChars = `${tokens.replace(/[#^`|]/g, '')}(),;=`
const classOf = (chars: string) => {
  const table = new Uint8Array(256)
  for (const char of chars) table[char.charCodeAt(0)] = 1
  return table
}
const isToken = classOf(tokens)
const isHost = classOf(hostChars)
const isValue = new Uint8Array(256).map((_, byte) =>
  byte === tab || (byte >= 32 && byte !== 127) ? 1 : 0,
)
const isTarget = new Uint8Array(256).map((_, byte) =>
  byte > 32 && byte < 127 && byte !== hash ? 1 : 0,
)

/** Lengths of the names that mean something: others are not made into strings. */
const telling = new Uint8Array(256)
for (const length of [2, 4, 6, 7, 10, 14, 16, 17, 18]) telling[length] = 1

export function parseHead(bytes: Buffer, start: number, end: number, head: JsHead): boolean {
  let at = start
  while (at < end && isToken[bytes[at] ?? 0] === 1) at++
  if (at === start || bytes[at] !== space) return false
  const target = ++at
  let query = -1
  for (; at < end && isTarget[bytes[at] ?? 0] === 1; at++) {
    if (query < 0 && bytes[at] === question) query = at
  }
  if (bytes[target] !== 47 || bytes[at] !== space) return false
  head.path = bytes.toString('latin1', target, query < 0 ? at : query)
  head.queryStart = query < 0 ? -1 : query + 1
  head.queryEnd = at
  if (!isVersion(bytes, at + 1)) return false
  return readFields(bytes, at + 11, end, head)
}

/** HTTP/1.1 CRLF */
function isVersion(bytes: Buffer, at: number): boolean {
  return (
    bytes.readUInt32BE(at) === 0x48545450 &&
    bytes.readUInt32BE(at + 4) === 0x2f312e31 &&
    bytes.readUInt16BE(at + 8) === 0x0d0a
  )
}

function readFields(bytes: Buffer, from: number, end: number, head: JsHead): boolean {
  head.fieldCount = 0
  head.contentLength = -1
  head.isChunked = false
  head.isPersistent = true
  head.host = ''
  let at = from
  while (at < end && bytes[at] !== cr) {
    at = readField(bytes, at, end, head)
    if (at < 0) return false
  }
  if (bytes[at + 1] !== lf || head.host === '') return false
  return !(head.isChunked && head.contentLength >= 0)
}

/** Offset after the field's line; -1 when it is malformed. */
function readField(bytes: Buffer, name: number, end: number, head: JsHead): number {
  let at = name
  while (at < end && isToken[bytes[at] ?? 0] === 1) at++
  if (at === name || bytes[at] !== colon || head.fieldCount === maxFields) return -1
  const nameEnd = at++
  while (bytes[at] === space || bytes[at] === tab) at++
  const value = at
  while (at < end && isValue[bytes[at] ?? 0] === 1) at++
  if (bytes[at] !== cr || bytes[at + 1] !== lf) return -1
  let valueEnd = at
  while (valueEnd > value && (bytes[valueEnd - 1] === space || bytes[valueEnd - 1] === tab))
    valueEnd--
  const { fields } = head
  const field = head.fieldCount++ * fieldWords
  fields[field] = name
  fields[field + 1] = nameEnd
  fields[field + 2] = value
  fields[field + 3] = valueEnd
  fields[field + 4] = 0
  if (telling[nameEnd - name] === 1 && !note(bytes, field, head)) return -1
  return at + 2
}

/** What a field with a meaning says; false to refuse. */
function note(bytes: Buffer, field: number, head: JsHead): boolean {
  const { fields } = head
  const text = (at: number) => bytes.toString('latin1', fields[field + at], fields[field + at + 1])
  switch (text(0).toLowerCase()) {
    case 'host':
      return readHost(bytes, fields[field + 2] ?? 0, fields[field + 3] ?? 0, head)
    case 'content-length':
      if (head.contentLength >= 0) return false
      head.contentLength = Number(text(2))
      return head.contentLength >= 0
    case 'transfer-encoding':
      fields[field + 4] = 1
      if (head.isChunked || text(2).toLowerCase() !== 'chunked') return false
      head.isChunked = true
      return true
    case 'connection':
      fields[field + 4] = 1
      return readConnection(text(2), head)
    case 'keep-alive':
    case 'proxy-connection':
    case 'proxy-authenticate':
    case 'te':
    case 'trailer':
    case 'upgrade':
      fields[field + 4] = 1
      return true
    default:
      return true
  }
}

function readHost(bytes: Buffer, start: number, end: number, head: JsHead): boolean {
  if (head.host !== '') return false
  let at = start
  while (at < end && isHost[bytes[at] ?? 0] === 1) at++
  head.port = -1
  if (at < end) {
    if (bytes[at] !== colon) return false
    head.port = Number(bytes.toString('latin1', at + 1, end))
    if (!(head.port <= 65535)) return false
  }
  head.host = bytes.toString('latin1', start, at).toLowerCase()
  return true
}

function readConnection(value: string, head: JsHead): boolean {
  if (value === 'keep-alive') return true
  for (const option of value.toLowerCase().split(',')) {
    const name = option.trim()
    if (name === 'close') head.isPersistent = false
    if (name === 'host' || name === 'content-length' || name === 'transfer-encoding') return false
  }
  return true
}
