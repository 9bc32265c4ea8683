import {
  type CelMapValue,
  type CelResult,
  CelUint,
  type CelValue,
  FlattenedMap,
  isCelError,
  isList,
  isMap,
  mapGet,
  mapKeys,
  toText,
} from '../../engines/cel/index.ts'
import type { Exchange } from '../../ground/exchange/exchange.ts'
import type {
  Attribute,
  AttributeChanges,
  AttributeValue,
  ObservedParts,
} from '../../ground/exchange/observe.ts'
import { Expression } from './expression.ts'

/** Attributes as users write them. If a name occurs twice in `add`, the last entry counts. */
interface AttributeConfig {
  readonly remove?: readonly string[]
  readonly add?: readonly { readonly name: string; readonly expression: string }[]
}

/** Attributes of log lines and spans, computed by expressions. */
export class BoundAttributes implements AttributeChanges {
  readonly removed: ReadonlySet<string>
  readonly expressions: readonly Expression[]
  readonly #names: readonly string[]

  constructor({ remove = [], add = [] }: AttributeConfig) {
    this.removed = new Set(remove)
    const last = new Map(add.map(({ name, expression }) => [name, expression]))
    this.#names = [...last.keys()]
    this.expressions = [...last.values()].map((source) => new Expression(source))
  }

  /** If there is no exchange, attributes that depend on one are left out. */
  added(exchange?: Exchange): readonly Attribute[] {
    const found: Attribute[] = []
    let mayRepeat = false
    for (let at = 0; at < this.expressions.length; at++) {
      const name = this.#names[at] ?? ''
      const result = this.expressions[at]?.evaluate(exchange)
      if (result instanceof FlattenedMap) {
        mayRepeat = true
        for (const [path, value] of result.attributes(name)) put(found, path, value)
      } else if (result !== undefined) put(found, name, result)
    }
    return mayRepeat ? [...new Map(found)] : found
  }
}

function put(found: Attribute[], name: string, result: CelResult): void {
  const value = toAttribute(result, 0)
  if (value !== undefined) found.push([name, value])
}

/** Maximum nesting depth of lists and maps; deeper ones are left out. */
const maxDepth = 32

/** Copies a result as plain data. Errors and null give undefined; lists and maps are copied without them. */
function toAttribute(result: CelResult, depth = 0): AttributeValue | undefined {
  if (result === null || isCelError(result) || depth > maxDepth) return undefined
  if (typeof result !== 'object') return result
  if (isList(result)) {
    return result.map((item) => toAttribute(item, depth + 1)).filter((item) => item !== undefined)
  }
  if (isMap(result)) return mapAttribute(result, depth)
  if (result instanceof CelUint) return result.value
  if (result instanceof Uint8Array) return Buffer.from(result).toString('base64')
  const text = toText(result as CelValue)
  return typeof text === 'string' ? text : undefined
}

function mapAttribute(map: CelMapValue, depth: number): AttributeValue {
  const copy: Record<string, AttributeValue> = Object.create(null) as Record<string, AttributeValue>
  for (const key of mapKeys(map)) {
    const value = mapGet(map, key)
    const attribute = value === undefined ? undefined : toAttribute(value, depth + 1)
    if (attribute !== undefined) copy[String(key)] = attribute
  }
  return copy
}

/** Returns the parts that expressions read, which must be kept until the exchange is over. */
export function observedParts(expressions: readonly Expression[]): ObservedParts {
  const some = (path: string) => expressions.some((expression) => expression.mentions(path))
  return {
    requestBody: expressions.some(({ request }) => request),
    responseBody: expressions.some(({ response }) => response),
    modelTexts: some('llm.completion') || some('llm.toolCalls'),
  }
}
