/** One half of a transformation, bound: edits one message of an exchange. */
import type { Body, Exchange, HeaderFields } from '../../exchange/exchange.ts'
import { isFieldValue } from '../../model/header-changes.ts'
import { type BodyNeeds, Expression, toBytes, toFieldValue } from '../../variables/index.ts'
import type { HeaderExpression, TransformConfig } from './config.ts'
import { setRequestPart, setStatus } from './pseudo-headers.ts'

interface BoundHeader {
  readonly name: string
  readonly value: Expression
}

const bind = ({ name, expression }: HeaderExpression): BoundHeader => ({
  name,
  value: new Expression(expression),
})

/** Fields that describe the bytes of a body, which another body does not have. */
const ofBody = ['content-encoding', 'content-md5', 'digest', 'content-digest', 'repr-digest']

export class Transform implements BodyNeeds {
  readonly request: boolean
  readonly response: boolean
  readonly #add: readonly BoundHeader[]
  readonly #set: readonly BoundHeader[]
  readonly #remove: readonly string[]
  readonly #body: Expression | undefined
  /** Fields of the old body that the policy does not write itself. */
  readonly #stale: readonly string[]

  constructor({ add, set, remove, body }: TransformConfig) {
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

  /** Bodies that the expressions read must be in memory. */
  #change(exchange: Exchange, headers: HeaderFields, body: Body | undefined): void {
    for (const header of this.#add) changeHeader(exchange, headers, header, 'add')
    for (const header of this.#set) changeHeader(exchange, headers, header, 'set')
    for (const name of this.#remove) headers.remove(name)
    if (this.#body === undefined || body === undefined) return
    // No body rather than the old one: what was to be taken out of it must not get through.
    body.replace(toBytes(this.#body.evaluate(exchange)) ?? empty)
    for (const name of this.#stale) headers.remove(name)
  }
}

const empty = new Uint8Array()

/**
 * A field whose expression fails, or gives something that no field can carry, is removed: a client
 * must not get through what the gateway was to set. An `add` that fails removes the values that are
 * there, too: nobody could tell them from the one that is missing.
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
  const text = toFieldValue(result)?.replace(/^[\t ]+|[\t ]+$/g, '')
  const isSound = text !== undefined && isFieldValue(text)
  if (name.startsWith(':')) {
    if (isSound) setRequestPart(exchange, name, text)
  } else if (!isSound) headers.remove(name)
  else if (isHost(exchange, headers, name)) setRequestPart(exchange, ':authority', text)
  else headers[action](name, text)
}

function isHost({ request }: Exchange, headers: HeaderFields, name: string): boolean {
  return name.length === 4 && headers === request.headers && name.toLowerCase() === 'host'
}
