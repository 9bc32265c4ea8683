/** Server-sent events as MCP uses them: one message, an id to resume from, a time to reconnect. */

export interface McpEvent {
  /** `message` where none is given. */
  readonly type: string
  readonly data: string
  /** Of this event; undefined where it has none. */
  readonly id: string | undefined
  /** Milliseconds. */
  readonly retry: number | undefined
}

/** An event grew beyond what is read. */
export class EventTooLarge extends Error {
  override readonly name = 'EventTooLarge'
}

/** Reads a stream bit by bit (HTML, server-sent events). Lines end in LF, CR or CRLF. */
export class EventReader {
  readonly #decoder = new TextDecoder()
  readonly #limit: number
  #rest = ''
  #type = ''
  #data: string[] = []
  #size = 0
  #id: string | undefined
  #retry: number | undefined

  /** `limit`: most characters of one event. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Events that are complete now. Comments are skipped. @throws EventTooLarge */
  push(bytes: Uint8Array): McpEvent[] {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true })
    const events: McpEvent[] = []
    let at = 0
    for (;;) {
      const end = lineEnd(text, at)
      if (end < 0) break
      const isPair = text.charCodeAt(end) === 0x0d
      // A CR at the very end may be the first half of a CRLF.
      if (isPair && end + 1 === text.length) break
      this.#line(text.slice(at, end), events)
      at = end + (isPair && text.charCodeAt(end + 1) === 0x0a ? 2 : 1)
    }
    this.#rest = at === 0 ? text : text.slice(at)
    if (this.#rest.length + this.#size > this.#limit) throw new EventTooLarge()
    return events
  }

  #line(line: string, events: McpEvent[]): void {
    if (line === '') {
      this.#dispatch(events)
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const skipped = line.charCodeAt(colon + 1) === 0x20 ? 2 : 1
    const value = colon < 0 ? '' : line.slice(colon + skipped)
    if (name === 'data') {
      this.#data.push(value)
      this.#size += value.length
      if (this.#size > this.#limit) throw new EventTooLarge()
    } else if (name === 'event') this.#type = value
    else if (name === 'id' && !value.includes('\0')) this.#id = value
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) this.#retry = Number(value)
  }

  #dispatch(events: McpEvent[]): void {
    const hasSomething = this.#data.length > 0 || this.#id !== undefined
    if (hasSomething || this.#retry !== undefined) {
      events.push({
        type: this.#type === '' ? 'message' : this.#type,
        data: this.#data.join('\n'),
        id: this.#id,
        retry: this.#retry,
      })
    }
    this.#type = ''
    this.#data = []
    this.#size = 0
    this.#id = undefined
    this.#retry = undefined
  }
}

function lineEnd(text: string, from: number): number {
  const lf = text.indexOf('\n', from)
  const cr = text.indexOf('\r', from)
  return cr < 0 || (lf >= 0 && lf < cr) ? lf : cr
}

/** The text of an event; messages are on one line already, or are split as the format wants. */
export function eventText({ type, data, id, retry }: Partial<McpEvent>): string {
  let text = `event: ${type ?? 'message'}\n`
  if (id !== undefined) text += `id: ${id}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  for (const line of (data ?? '').split(/\r\n|\r|\n/)) text += `data: ${line}\n`
  return `${text}\n`
}
