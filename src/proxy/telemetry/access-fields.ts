/**
 * The fields of a line one by one, for lines that a policy shapes. Lines that nobody shapes are put
 * together in `access-line.ts` in one go; a test holds both to the same text.
 */

import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { AttributeChanges, AttributeValue } from '../../exchange/observe.ts'
import { addressText, quote, statusOf, word } from './access-text.ts'
import { modelFields } from './model-fields.ts'
import type { McpFacts, RequestFacts } from './types.ts'

interface Field {
  readonly name: string
  readonly read: (facts: RequestFacts, exchange: ServerExchange) => string | number | undefined
  /** Free text, which stands in quotes whatever it is. */
  readonly isFree?: true
}

const field = (name: string, read: Field['read']): Field => ({ name, read })

/** What is spoken, as far as the gateway understands it. */
export function protocolOf({ protocol, model, mcp }: RequestFacts): string {
  return model !== undefined ? 'llm' : mcp !== undefined ? 'mcp' : protocol
}

type McpRead = (facts: McpFacts) => string | number | undefined

/** A field of messages of MCP clients. For a batch it lists every value once. */
const mcpField = (name: string, read: McpRead): Field =>
  field(name, ({ mcp: [first, ...more] = [] }) => {
    if (first === undefined || more.length === 0) return first && read(first)
    const values = new Set([first, ...more].map(read).filter((value) => value !== undefined))
    return [...values].join(',')
  })

const itemOf = (type: McpFacts['type']) => (facts: McpFacts) =>
  facts.type === type ? facts.item : undefined

/** Of requests of MCP clients, in this order. */
const mcpFields: readonly Field[] = [
  mcpField('mcp.method.name', ({ method }) => method),
  mcpField('mcp.session.id', ({ session }) => session),
  mcpField('mcp.target', ({ target }) => target),
  mcpField('mcp.resource.type', ({ type }) => type),
  mcpField('mcp.resource.uri', itemOf('resource')),
  mcpField('gen_ai.tool.name', itemOf('tool')),
  mcpField('gen_ai.prompt.name', itemOf('prompt')),
  mcpField('mcp.error.code', ({ errorCode }) => errorCode),
]

/** Of requests to InferencePools, in this order. */
const poolFields: readonly Field[] = [
  field('inference.pool', ({ pool }) => pool?.name),
  field('inference.pick', ({ pool }) => pool?.outcome),
  field('inference.pick.duration', ({ pool }) =>
    pool?.outcome === undefined ? undefined : `${Math.trunc(pool.pickSeconds * 1_000)}ms`,
  ),
  { name: 'inference.pick.error', read: ({ pool }) => pool?.problem, isFree: true },
]

/** Fields of kinds of requests that are few enough to afford a loop. */
export const rareFields: readonly Field[] = [...mcpFields, ...poolFields]

export const accessFields: readonly Field[] = [
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
  ...modelFields.map(({ name, read }) =>
    field(name, ({ model }) => (model === undefined ? undefined : read(model))),
  ),
  ...rareFields,
  field('retry.attempt', ({ retries }) => retries || undefined),
  { name: 'error', read: ({ error }) => error, isFree: true },
  field('reason', ({ reason }) => (reason === 'Upstream' ? undefined : reason)),
  field('duration', ({ durationMs }) => `${Math.trunc(durationMs)}ms`),
]

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
  for (const { name, read, isFree = false } of accessFields) {
    if (changes.removed.has(name) || added.some(([replaced]) => replaced === name)) continue
    const value = read(facts, exchange)
    if (value !== undefined && value !== '') line += write(name, value, isFree)
  }
  for (const [name, value] of added) line += writeAdded(name, value)
  return line
}

/** The JSON text of a value; integers keep all their digits. */
export function jsonText(value: AttributeValue): string {
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
