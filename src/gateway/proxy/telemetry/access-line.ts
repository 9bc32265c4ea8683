/**
 * Writes lines of the access log, as text or as JSON. Fields and their order are fixed. Fields without a
 * value are omitted. A line that no policy changes leaves no garbage.
 */
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import type { ServerStream } from '../../../engines/http/contracts/streams.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type {
  Attribute,
  AttributeChanges,
  AttributeValue,
} from '../../../ground/exchange/observe.ts'
import {
  type Address,
  addressText,
  eachField,
  eachStreamField,
  quote,
  unsafe,
} from './access-fields.ts'
import type { AccessLog } from './access-log.ts'
import type { LineBytes } from './line-bytes.ts'
import type { Timestamps } from './timestamp.ts'
import type { AccessRecord, StreamRecord, VisitField } from './types.ts'

export type AccessLogFormat = 'text' | 'json'

interface Format {
  readonly beforeTime: string
  readonly afterTime: string
  readonly end: string
  field(line: LineBytes, name: string, value: string | number, isFree: boolean): void
  /** Writes a field that a policy adds. */
  added(name: string, value: AttributeValue): string
}

/** Writes a name or value from a policy. It is quoted if it contains white space, `"` or `=`. */
const addedWord = (text: string): string =>
  /[\s"=]/.test(text) || unsafe.test(text) ? quote(text) : text

/** Returns the JSON text of a value. Integers keep all their digits. */
function jsonText(value: AttributeValue): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') return Number.isFinite(value) ? `${value}` : `"${value}"`
  if (typeof value === 'boolean') return `${value}`
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  const members = Object.entries(value).map(([name, item]) => `${quote(name)}:${jsonText(item)}`)
  return `{${members.join(',')}}`
}

const formats: Readonly<Record<AccessLogFormat, Format>> = {
  text: {
    beforeTime: '',
    afterTime: '\tinfo\trequest',
    end: '\n',
    field(line, name, value, isFree) {
      line.ascii(' ')
      line.ascii(name)
      line.ascii('=')
      if (typeof value === 'number') line.number(value)
      else if (isFree) line.text(quote(value))
      else if (!line.visible(value, false)) line.text(unsafe.test(value) ? quote(value) : value)
    },
    added(name, value) {
      const text = typeof value === 'string' ? value : jsonText(value)
      const isData = typeof value === 'object'
      return ` ${addedWord(name)}=${isData ? quote(text) : text === '' ? '""' : addedWord(text)}`
    },
  },
  json: {
    beforeTime: '{"level":"info","time":"',
    afterTime: '","scope":"request"',
    end: '}\n',
    field(line, name, value) {
      line.ascii(',"')
      line.ascii(name)
      line.ascii('":')
      if (Number.isInteger(value)) line.number(value as number)
      else if (typeof value === 'number') line.ascii(jsonText(value))
      else {
        line.ascii('"')
        if (line.visible(value, true)) line.ascii('"')
        else line.text(quote(value).slice(1))
      }
    },
    added: (name, value) => `,${quote(name)}:${jsonText(value)}`,
  },
}

/** This runs for each field of a line, so it makes no function or iterator. */
function isReplaced(added: readonly Attribute[], name: string): boolean {
  for (let at = 0; at < added.length; at++) if (added[at]?.[0] === name) return true
  return false
}

/** Writes whole lines in one format. */
export class AccessLines {
  readonly #log: AccessLog
  readonly #format: Format
  readonly #timestamps: Timestamps
  readonly #visit: VisitField
  /** Visits the fields that `#changes` and `#added` leave as they are. */
  readonly #visitKept: VisitField
  #line: LineBytes
  #changes: AttributeChanges | undefined
  #added: readonly Attribute[] = []

  constructor(log: AccessLog, format: AccessLogFormat, timestamps: Timestamps) {
    this.#log = log
    this.#format = formats[format]
    this.#timestamps = timestamps
    this.#line = log.begin()
    this.#visit = (name, value, isFree) => {
      if (value !== undefined && value !== '') this.#format.field(this.#line, name, value, isFree)
    }
    this.#visitKept = (name, value, isFree) => {
      if (this.#changes?.removed.has(name) || isReplaced(this.#added, name)) return
      this.#visit(name, value, isFree)
    }
  }

  /** Writes the line of an exchange with the changes of the policy, unless the policy skips the exchange. */
  request(exchange: ServerExchange, access: AccessRecord): void {
    const { accessLog } = access
    if (accessLog?.accepts(exchange) === false) return
    this.#begin(exchange.endedAt)
    if (accessLog?.changes === undefined) eachField(access, exchange, this.#visit)
    else this.#shaped(exchange, access, accessLog.changes)
    this.#end()
  }

  /** Writes the fields that the policy keeps, and those that it adds. */
  #shaped(exchange: ServerExchange, access: AccessRecord, changes: AttributeChanges): void {
    this.#changes = changes
    this.#added = changes.added(exchange)
    eachField(access, exchange, this.#visitKept)
    for (const [name, value] of this.#added) this.#line.text(this.#format.added(name, value))
  }

  /** Writes the line of a connection whose request head could not be read. */
  badHead(source: Address, error: GatewayError, protocol: 'http' | 'https'): void {
    this.#begin()
    this.#visit('src.addr', addressText(source), false)
    this.#visit('http.status', error.row.status, false)
    this.#visit('protocol', protocol, false)
    this.#visit('error', error.message, true)
    this.#visit('reason', error.row.reason, false)
    this.#visit('duration', '0ms', false)
    this.#end()
  }

  stream(stream: ServerStream, access: StreamRecord): void {
    this.#begin()
    eachStreamField(access, stream, this.#visit)
    this.#end()
  }

  #begin(monotonicMs?: number): void {
    const { beforeTime, afterTime } = this.#format
    const line = this.#log.begin()
    this.#line = line
    line.ascii(beforeTime)
    this.#timestamps.write(line, monotonicMs)
    line.ascii(afterTime)
  }

  #end(): void {
    this.#line.ascii(this.#format.end)
    this.#log.end()
  }
}
