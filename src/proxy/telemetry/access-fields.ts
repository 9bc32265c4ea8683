/**
 * The fields of a line one by one, for lines that a policy shapes. Lines that nobody shapes are put
 * together in `access-line.ts` in one go; a test holds both to the same text.
 */
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { AttributeChanges, AttributeValue } from '../../exchange/observe.ts'
import { addressText, quote, statusOf, word } from './access-text.ts'
import type { RequestFacts } from './types.ts'

interface Field {
  readonly name: string
  readonly read: (facts: RequestFacts, exchange: ServerExchange) => string | number | undefined
  /** Free text, which stands in quotes whatever it is. */
  readonly isFree?: true
}

const field = (name: string, read: Field['read']): Field => ({ name, read })

/** What is spoken, as far as the gateway understands it. */
export function protocolOf({ protocol, record }: RequestFacts): string {
  return record?.protocol ?? protocol
}

const fieldsBefore: readonly Field[] = [
  field('gateway', ({ gateway }) => gateway),
  field('listener', ({ listener }) => listener),
  field('route_rule', ({ rule }) => rule),
  field('route', ({ route }) => route),
  field('endpoint', ({ endpoint }) => endpoint),
  field('src.addr', (_, { source }) => addressText(source)),
  field('src.identity', ({ identity }) => identity),
  field('http.method', ({ method }) => method),
  field('http.host', ({ host }) => host),
  field('http.path', ({ path }) => path),
  field('http.version', (_, { request }) => `HTTP/${request.version}`),
  field('http.status', (facts, exchange) => statusOf(exchange, facts) || undefined),
  field('grpc.status', ({ grpcStatus }) => grpcStatus),
  field('trace.id', ({ traceId }) => traceId),
  field('span.id', ({ spanId }) => spanId),
  field('jwt.sub', ({ subject }) => subject),
  field('protocol', (facts) => protocolOf(facts)),
]

const fieldsAfter: readonly Field[] = [
  field('retry.attempt', ({ retries }) => retries || undefined),
  { name: 'error', read: ({ error }) => error, isFree: true },
  field('reason', ({ reason }) => (reason === 'Upstream' ? undefined : reason)),
  field('duration', ({ durationMs }) => `${Math.trunc(durationMs)}ms`),
]

/** Visits every field in order, the backend's own among them; values may be absent or empty. */
export function eachField(
  facts: RequestFacts,
  exchange: ServerExchange,
  visit: (name: string, value: string | number | undefined, isFree: boolean) => void,
): void {
  for (const { name, read, isFree = false } of fieldsBefore) {
    visit(name, read(facts, exchange), isFree)
  }
  facts.record?.eachField(visit)
  for (const { name, read, isFree = false } of fieldsAfter) {
    visit(name, read(facts, exchange), isFree)
  }
}

export type Write = (name: string, value: string | number, isFree: boolean) => string

/** Defaults that are neither removed nor replaced, then what is added. */
function shape(
  exchange: ServerExchange,
  facts: RequestFacts,
  changes: AttributeChanges,
  write: Write,
  writeAdded: (name: string, value: AttributeValue) => string,
): string {
  const added = changes.added(exchange)
  let line = ''
  eachField(facts, exchange, (name, value, isFree) => {
    if (changes.removed.has(name) || added.some(([replaced]) => replaced === name)) return
    if (value !== undefined && value !== '') line += write(name, value, isFree)
  })
  for (const [name, value] of added) line += writeAdded(name, value)
  return line
}

/** The JSON text of a value; integers keep all their digits. */
function jsonText(value: AttributeValue): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') return Number.isFinite(value) ? `${value}` : `"${value}"`
  if (typeof value === 'boolean') return `${value}`
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  const members = Object.entries(value).map(([name, item]) => `${quote(name)}:${jsonText(item)}`)
  return `{${members.join(',')}}`
}

export const writeWord: Write = (name, value, isFree) => {
  if (typeof value === 'number') return ` ${name}=${value}`
  return isFree ? ` ${name}=${quote(value)}` : word(name, value)
}

/** A name or a value of a user: what would end it early, or looks quoted, stands in quotes. */
const addedWord = (text: string): string =>
  /[\s"=]/.test(text) ? quote(text) : word('', text).slice(2)

const writeAddedWord = (name: string, value: AttributeValue): string => {
  const text = typeof value === 'string' ? value : jsonText(value)
  const isData = typeof value === 'object'
  return ` ${addedWord(name)}=${isData ? quote(text) : text === '' ? '""' : addedWord(text)}`
}

export function shapedText(
  exchange: ServerExchange,
  facts: RequestFacts,
  changes: AttributeChanges,
): string {
  return shape(exchange, facts, changes, writeWord, writeAddedWord)
}

export const writeMember = (name: string, value: AttributeValue): string =>
  `,${quote(name)}:${jsonText(value)}`

export function shapedJson(
  exchange: ServerExchange,
  facts: RequestFacts,
  changes: AttributeChanges,
): string {
  return shape(exchange, facts, changes, writeMember, writeMember)
}
