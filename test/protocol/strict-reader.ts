/**
 * Reads messages of HTTP/1.1 as strictly as RFC 9112 allows, without any code of the gateway. What a
 * reader could take in two ways is an error here.
 */

export interface ReadMessage {
  readonly startLine: string
  readonly status: number
  /** Names in lower case. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly content: string
  /** Lines of the trailer section. */
  readonly trailers: readonly string[]
  /** Lines of the interim responses before a response. */
  readonly interim: readonly (readonly string[])[]
  /** Where the message ends in the text; undefined if the end of the connection ends it. */
  readonly end: number | undefined
  readonly closes: boolean
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
const fieldLine = new RegExp(`^(${token}):[ \\t]*([\\t\\x20-\\x7e\\x80-\\xff]*?)[ \\t]*$`)
const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\t\x20-\x7e\x80-\xff]*$/
const requestLine = new RegExp(`^(${token}) ([!-~]+) HTTP/1\\.1$`)

function fail(reason: string, text: string): never {
  throw new Error(`${reason} in ${JSON.stringify(text.slice(0, 600))}`)
}

interface Head {
  readonly lines: readonly string[]
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly end: number
}

/** Undefined while the head is incomplete. */
function readHead(text: string, from: number): Head | undefined {
  const stop = text.indexOf('\r\n\r\n', from)
  if (stop < 0) return undefined
  const lines = text.slice(from, stop).split('\r\n')
  const fields = new Map<string, string[]>()
  for (const line of lines.slice(1)) {
    const found = fieldLine.exec(line) ?? fail('a bad field line', line)
    const name = (found[1] ?? '').toLowerCase()
    fields.set(name, [...(fields.get(name) ?? []), found[2] ?? ''])
  }
  return { lines, fields, end: stop + 4 }
}

/** What the fields say of the body. */
function framingOf({ fields, lines }: Head): number | 'chunked' | undefined {
  const lengths = fields.get('content-length') ?? []
  const codings = fields.get('transfer-encoding') ?? []
  const all = lines.join('\n')
  if (lengths.length + codings.length > 1) fail('two fields that frame a message', all)
  const [length] = lengths
  if (length !== undefined) {
    if (!/^\d+$/.test(length)) fail('a bad content-length', all)
    return Number(length)
  }
  if (codings.length === 0) return undefined
  if (codings[0] !== 'chunked') fail('a bad transfer-encoding', all)
  return 'chunked'
}

interface Body {
  readonly content: string
  readonly trailers: readonly string[]
  readonly end: number
}

/** A chunked body; undefined while it is incomplete. */
function readChunks(text: string, from: number): Body | undefined {
  let content = ''
  const trailers: string[] = []
  for (let at = from; ; ) {
    const stop = text.indexOf('\r\n', at)
    if (stop < 0) return undefined
    const line = text.slice(at, stop)
    if (!/^[0-9a-f]+$/.test(line)) fail('a bad chunk size', text.slice(at))
    const size = Number.parseInt(line, 16)
    at = stop + 2
    if (size === 0) {
      for (;;) {
        const end = text.indexOf('\r\n', at)
        if (end < 0) return undefined
        const trailer = text.slice(at, end)
        at = end + 2
        if (trailer === '') return { content, trailers, end: at }
        if (!fieldLine.test(trailer)) fail('a bad trailer', trailer)
        trailers.push(trailer)
      }
    }
    if (text.length < at + size + 2) return undefined
    content += text.slice(at, at + size)
    if (text.slice(at + size, at + size + 2) !== '\r\n') fail('a bad chunk', text.slice(at))
    at += size + 2
  }
}

function readBody(
  text: string,
  { end }: Head,
  framing: number | 'chunked' | undefined,
): Body | undefined {
  if (framing === undefined) return { content: '', trailers: [], end }
  if (framing === 'chunked') return readChunks(text, end)
  if (text.length < end + framing) return undefined
  return { content: text.slice(end, end + framing), trailers: [], end: end + framing }
}

const closesIn = (head: Head): boolean => head.fields.get('connection')?.includes('close') === true

/** The request that begins at `from`; undefined while it is incomplete. */
export function readRequest(text: string, from: number): ReadMessage | undefined {
  const head = readHead(text, from)
  if (head === undefined) return undefined
  const startLine = head.lines[0] ?? ''
  if (!requestLine.test(startLine)) fail('a bad request line', startLine)
  if (head.fields.get('host')?.length !== 1) fail('not one host', head.lines.join('\n'))
  const framing = framingOf(head)
  if (startLine.startsWith('TRACE ') && framing !== undefined && framing !== 0) {
    fail('content of TRACE', head.lines.join('\n'))
  }
  if (startLine.startsWith('CONNECT ')) fail('a CONNECT', startLine)
  const body = readBody(text, head, framing)
  const { fields } = head
  return body && { startLine, status: 0, fields, interim: [], closes: closesIn(head), ...body }
}

export interface Asked {
  readonly method: string
  readonly minor: 0 | 1
}

/**
 * The final response that begins at `from`, behind any interim ones; undefined while it is
 * incomplete. `isOver`: the server has closed the connection.
 */
export function readResponse(
  text: string,
  from: number,
  asked: Asked,
  isOver: boolean,
): ReadMessage | undefined {
  let head = readHead(text, from)
  const interim: (readonly string[])[] = []
  for (; head !== undefined; head = readHead(text, head.end)) {
    const status = Number(statusLine.exec(head.lines[0] ?? '')?.[1] ?? 0)
    if (status === 0) fail('a bad status line', text.slice(from))
    if (status >= 200) {
      const response = readFinal(text, head, status, asked, isOver)
      return response && { ...response, interim }
    }
    if (asked.minor === 0) fail('an interim response to HTTP/1.0', text.slice(from))
    if (framingOf(head) !== undefined) fail('an interim response with framing', text.slice(from))
    interim.push(head.lines)
  }
  return undefined
}

function readFinal(
  text: string,
  head: Head,
  status: number,
  { method, minor }: Asked,
  isOver: boolean,
): Omit<ReadMessage, 'interim'> | undefined {
  const startLine = head.lines[0] ?? ''
  const framing = framingOf(head)
  const closes =
    minor === 0 ? !head.fields.get('connection')?.includes('keep-alive') : closesIn(head)
  const message = { startLine, status, fields: head.fields, closes }
  if (framing === 'chunked' && (minor === 0 || status === 204)) {
    fail('transfer-encoding where it must not be', text)
  }
  if (framing !== undefined && status === 204) fail('content-length of 204', text)
  if (method === 'HEAD' || status === 204 || status === 304) {
    if (framing === 'chunked') fail('transfer-encoding without a body', text)
    return { ...message, content: '', trailers: [], end: head.end }
  }
  if (framing === undefined) {
    if (!closes) fail('no framing on a connection that goes on', text)
    if (!isOver) return undefined
    return { ...message, content: text.slice(head.end), trailers: [], end: undefined }
  }
  const body = readBody(text, head, framing)
  if (body !== undefined && status === 205 && body.content !== '') fail('content of 205', text)
  return body && { ...message, ...body }
}
