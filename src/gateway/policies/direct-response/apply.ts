import { type CelResult, errorText, isCelError } from '../../../engines/cel/index.ts'
import { type Infer, integer, list, optional, record, text } from '../../../ground/base/shape.ts'
import type { Exchange, FieldPair, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { isFieldValue } from '../../../ground/model/header-changes.ts'
import { namedExpression } from '../../../ground/model/shapes.ts'
import { bufferBodies, Expression, toBytes, toFieldValue } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  status: integer(200, 599),
  headers: optional(list(namedExpression)),
  body: optional(text),
  bodyExpression: optional(text),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ status, headers = [], body, bodyExpression }) {
    const fixed: RespondVerdict = { kind: 'respond', status, body, reason: 'DirectResponse' }
    if (headers.length === 0 && bodyExpression === undefined) return { onRequest: () => fixed }
    const fields = headers.map(({ name, expression }) => ({
      name,
      value: new Expression(expression),
    }))
    const text = bodyExpression === undefined ? undefined : new Expression(bodyExpression)
    const all = [...fields.map(({ value }) => value), ...(text === undefined ? [] : [text])]
    const needs = { request: all.some(({ request }) => request), response: false }
    const respond = (exchange: Exchange): RespondVerdict => ({
      ...fixed,
      headers: fields.flatMap((field) => fieldOf(field, exchange)),
      ...(text !== undefined && { body: bodyOf(text, exchange) }),
    })
    return {
      onRequest(exchange) {
        const pending = bufferBodies(exchange, needs)
        return pending === undefined ? respond(exchange) : pending.then(() => respond(exchange))
      },
    }
  },
}

interface Field {
  readonly name: string
  readonly value: Expression
}

function fieldOf({ name, value }: Field, exchange: Exchange): FieldPair[] {
  const result = value.evaluate(exchange)
  const given = toFieldValue(result)?.trim()
  if (given !== undefined && isFieldValue(given)) return [[name, given]]
  noteFailure(exchange, `${name} left out`, result)
  return []
}

function bodyOf(expression: Expression, exchange: Exchange): Uint8Array | undefined {
  const result = expression.evaluate(exchange)
  const bytes = toBytes(result)
  if (bytes === undefined) noteFailure(exchange, 'body left out', result)
  return bytes
}

function noteFailure(exchange: Exchange, what: string, result: CelResult): void {
  const why = isCelError(result) ? errorText(result) : 'the expression has no usable value'
  addNote(exchange, 'traffic.directResponse', `${what}: ${why}`)
}

export default apply
