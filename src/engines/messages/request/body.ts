/**
 * Changes the body of a request before translation: applies the provider's model, overrides, defaults and
 * aliases, in this order, on which users rely.
 */
import { isUtf8 } from 'node:buffer'
import type { ModelFacts } from '../catalog/facts.ts'
import { matchesName } from '../catalog/names.ts'
import { needDecidedNames } from '../decided-fields.ts'
import type { ClientFormat } from '../format.ts'
import {
  hasLongNumbers,
  isObject,
  isTooDeep,
  type JsonObject,
  maxJsonDepth,
  parseJson,
  stringAt,
  utf8Text,
} from '../json/json.ts'
import { LlmError } from '../llm-error.ts'

/** Models by the names that clients use for them; `*` stands for any text. */
export type Aliases = Readonly<Record<string, string>>

export interface FieldValue {
  readonly field: string
  readonly value: unknown
}

export interface BodySettings {
  /** The model that the provider's configuration sets. */
  readonly model?: string
  readonly overrides?: readonly FieldValue[]
  readonly defaults?: readonly FieldValue[]
  readonly modelAliases?: Aliases
}

/** Sets a plain field, even if its name is special in JavaScript, such as `__proto__`. */
function assign(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

const byteOrderMark = 0xfeff

function textOf(bytes: Uint8Array): string {
  const text = utf8Text(bytes)
  return text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text
}

export interface ParsedBody {
  readonly body: JsonObject
  /** The body for expressions, with doubles for all numbers. */
  readonly inDoubles: JsonObject
}

/** @throws LlmError 400 if the body is not a JSON object. */
export function parseBody(bytes: Uint8Array): ParsedBody {
  const text = isUtf8(bytes) ? textOf(bytes) : ''
  if (isTooDeep(text))
    throw new LlmError(400, `the body is nested deeper than ${maxJsonDepth} levels`)
  const body = parseJson(text)
  if (body === undefined) throw new LlmError(400, 'the body is not JSON')
  if (!isObject(body)) throw new LlmError(400, 'the body is not a JSON object')
  return { body, inDoubles: hasLongNumbers(text) ? JSON.parse(text) : body }
}

export interface SettledBody {
  readonly body: JsonObject
  /** The model that is sent to the provider. */
  readonly model: string
  /** The name that the client asked for, if another one is sent. */
  readonly asked: string | undefined
  /** True if the body differs from the client's body. */
  readonly isChanged: boolean
}

const fieldOf = ({ field }: FieldValue): string => field

/** @throws LlmError 400 if the body has no model, one with a long name, or a field of the gateway in another case. */
export function settleBody(
  original: JsonObject,
  settings: BodySettings,
  hasDefaultModel = false,
): SettledBody {
  const { model: pinned, overrides = [], defaults = [], modelAliases } = settings
  needDecidedNames(original, [...overrides, ...defaults].map(fieldOf))
  let body: Readonly<Record<string, unknown>> = original
  let isChanged = false
  const put = (name: string, value: unknown) => {
    if (Object.hasOwn(body, name) && body[name] === value) return
    // The body is copied at the first change, because most bodies do not change.
    if (!isChanged) body = { ...original }
    assign(body as Record<string, unknown>, name, value)
    isChanged = true
  }
  if (pinned !== undefined) put('model', pinned)
  for (const { field: name, value } of overrides) put(name, value)
  for (const { field: name, value } of defaults) if (!Object.hasOwn(body, name)) put(name, value)
  const model = modelOf(stringAt(body, 'model'), modelAliases)
  if (model === undefined) {
    if (hasDefaultModel) return { body, model: '', asked: undefined, isChanged }
    throw new LlmError(400, 'missing field: model not specified')
  }
  put('model', model)
  return { body, model, asked: otherName(stringAt(original, 'model'), model), isChanged }
}

/** Returns the name that the client asked for, unless it is the one that is sent. */
export const otherName = (asked: string | undefined, sent: string): string | undefined =>
  asked === sent ? undefined : asked

/**
 * Returns the model that `settleBody` chooses, from some of the fields of a body; undefined if there is none or
 * if other fields may change.
 */
export function settledModel(
  fields: JsonObject,
  { overrides, defaults, modelAliases }: BodySettings,
  pinned: string | undefined,
): string | undefined {
  if (overrides !== undefined || defaults !== undefined) return undefined
  return modelOf(pinned ?? stringAt(fields, 'model'), modelAliases)
}

/** Maximum length of a model name. Clients choose it, and logs and spans contain it. */
const maxModelLength = 512

/**
 * Returns the model that a provider gets for a name; undefined if there is none.
 * @throws LlmError 400 if the name is too long.
 */
export function modelOf(
  named: string | undefined,
  aliases: Aliases | undefined,
): string | undefined {
  if (named === undefined || named === '') return undefined
  if (named.length > maxModelLength) {
    throw new LlmError(400, `the model name has more than ${maxModelLength} characters`)
  }
  return resolveAlias(named, aliases)
}

/** Returns the body of a request that is not translated, with what the format needs. */
export function completeNative(
  settled: SettledBody,
  { completion }: ClientFormat,
  facts: ModelFacts,
): SettledBody {
  const { body } = settled
  if (completion === undefined || completion.isComplete(body, facts)) return settled
  return { ...settled, body: completion.complete(body, facts), isChanged: true }
}

/** Returns the model of the exact alias, otherwise of the longest matching pattern; resolves only once. */
function resolveAlias(model: string, aliases: Aliases | undefined): string {
  if (aliases === undefined) return model
  if (Object.hasOwn(aliases, model)) return aliases[model] ?? model
  const [best] = Object.keys(aliases)
    .filter((name) => name.includes('*') && matchesName(name, model))
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
  return best === undefined ? model : (aliases[best] ?? model)
}
