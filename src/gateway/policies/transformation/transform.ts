import { type CelResult, errorText, isCelError } from '../../../engines/cel/index.ts'
import { type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { Body, Exchange, HeaderFields } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { isFieldValue } from '../../../ground/model/header-changes.ts'
import { namedExpression } from '../../../ground/model/shapes.ts'
import { type BodyNeeds, Expression, toBytes, toFieldValue } from '../../variables/index.ts'
import { setRequestPart, setStatus } from './pseudo-headers.ts'

/** Changes to one message, applied in this order. Each expression sees the result of earlier changes. */
export const transformShape = record({
  /** Names are header fields, or pseudo-headers that the message has. */
  add: list(namedExpression),
  set: list(namedExpression),
  remove: list(text),
  body: optional(text),
})

interface BoundHeader {
  readonly name: string
  readonly value: Expression
}

/** Header fields that describe the body's bytes and become wrong if the body is replaced. */
const ofBody = ['content-encoding', 'content-md5', 'digest', 'content-digest', 'repr-digest']

/** Applies the changes to one message of an exchange. */
export class Transform implements BodyNeeds {
  readonly request: boolean
  readonly response: boolean
  readonly #add: readonly BoundHeader[]
  readonly #set: readonly BoundHeader[]
  readonly #remove: readonly string[]
  readonly #body: Expression | undefined
  /** Fields of `ofBody` that the policy does not set itself; removed when the body is replaced. */
  readonly #stale: readonly string[]

  /** `reveal` puts literals that are secrets back into the expression of a header. */
  constructor(
    { add, set, remove, body }: Infer<typeof transformShape>,
    reveal: (expression: string) => string,
  ) {
    const bind = ({ name, expression }: Infer<typeof namedExpression>): BoundHeader => ({
      name,
      value: new Expression(reveal(expression)),
    })
    this.#add = add.map(bind)
    this.#set = set.map(bind)
    this.#remove = remove
    this.#body = body === undefined ? undefined : new Expression(body)
    const written = new Set([...add, ...set].map(({ name }) => name.toLowerCase()))
    this.#stale = ofBody.filter((name) => !written.has(name))
    const all = [...this.#add, ...this.#set].map(({ value }) => value)
    if (this.#body !== undefined) all.push(this.#body)
    this.request = all.some(({ request }) => request)
    this.response = all.some(({ response }) => response)
  }

  changeRequest(exchange: Exchange): void {
    this.#change(exchange, exchange.request.headers, exchange.requestBody)
  }

  changeResponse(exchange: Exchange): void {
    const { response, responseBody } = exchange
    if (response !== undefined) this.#change(exchange, response.headers, responseBody)
  }

  /** Bodies that the expressions read must already be buffered. */
  #change(exchange: Exchange, headers: HeaderFields, body: Body | undefined): void {
    for (const header of this.#add) changeHeader(exchange, headers, header, 'add')
    for (const header of this.#set) changeHeader(exchange, headers, header, 'set')
    for (const name of this.#remove) headers.remove(name)
    if (this.#body === undefined || body === undefined) return
    // If the expression fails, the body becomes empty, since it may contain what had to be removed. A body
    // that is too large to be read is an error instead, because valid data would be lost without a trace.
    const result = this.#body.evaluate(exchange)
    const bytes = toBytes(result)
    if (bytes === undefined && isOverLimit(this.#body, exchange, result)) {
      throw new GatewayError(body === exchange.requestBody ? 'body_too_large' : 'response_failed')
    }
    if (bytes === undefined) noteFailure(exchange, 'body', 'emptied', result)
    body.replace(bytes ?? empty)
    for (const name of this.#stale) headers.remove(name)
  }
}

const empty = new Uint8Array()

/** Returns whether an expression has no value because a body that it reads is larger than the limit of buffers. */
function isOverLimit(
  { request, response }: Expression,
  { requestBody, responseBody }: Exchange,
  result: CelResult,
): boolean {
  if (!isCelError(result) || result.kind !== 'limit') return false
  return (
    (request && requestBody.known?.complete === false) ||
    (response && responseBody?.known?.complete === false)
  )
}

/**
 * Adds or sets a field. If its expression fails or has a value that is not valid in a field, the field is
 * removed, so that clients cannot provide a value in its place. A failed `add` removes existing values,
 * too, since they may come from the client.
 */
function changeHeader(
  exchange: Exchange,
  headers: HeaderFields,
  { name, value }: BoundHeader,
  action: 'add' | 'set',
): void {
  const result = value.evaluate(exchange)
  if (name === ':status') {
    setStatus(exchange, result)
    return
  }
  const given = toFieldValue(result)
  const text = given && withoutOuterBlanks(given)
  const isSound = text !== undefined && isFieldValue(text)
  if (!isSound) noteFailure(exchange, name, name.startsWith(':') ? 'kept' : 'removed', result)
  if (name.startsWith(':')) {
    if (isSound) setRequestPart(exchange, name, text)
  } else if (!isSound) headers.remove(name)
  else if (isHost(exchange, headers, name)) setRequestPart(exchange, ':authority', text)
  else headers[action](name, text)
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

/** Removes spaces and tabs at both ends, in linear time. */
function withoutOuterBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function noteFailure(exchange: Exchange, part: string, outcome: string, result: CelResult): void {
  const why = isCelError(result) ? errorText(result) : 'the expression has no usable value'
  addNote(exchange, 'traffic.transformation', `${part} ${outcome}: ${why}`)
}

function isHost({ request }: Exchange, headers: HeaderFields, name: string): boolean {
  return name.length === 4 && headers === request.headers && name.toLowerCase() === 'host'
}
