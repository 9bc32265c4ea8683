/**
 * Changes the body of a request before translation: applies the provider's model, overrides, defaults and
 * aliases, in this order, on which users rely.
 */
import { isUtf8 } from 'node:buffer'
import { needDecidedNames } from '../decided-fields.ts'
import {
  hasLongNumbers,
  isObject,
  isTooDeep,
  type JsonObject,
  maxJsonDepth,
  objectAt,
  parseJson,
  stringAt,
  utf8Text,
} from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../route-type.ts'

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
  /** True if the body differs from the client's body. */
  readonly isChanged: boolean
}

const fieldOf = ({ field }: FieldValue): string => field

/** @throws LlmError 400 if the body has no model, one with a long name, or a field of the gateway in another case. */
export function settleBody(original: JsonObject, settings: BodySettings): SettledBody {
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
  if (model === undefined) throw new LlmError(400, 'missing field: model not specified')
  put('model', model)
  return { body, model, isChanged }
}

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

/** Matches models that reject `max_tokens`; other models know only this older name. */
const refusesMaxTokens = /^(?:gpt-(?:[5-9]|\d\d)|o\d)/

/** Asks for the usage of streams, and renames `max_tokens` for models that require the new name. */
export function completeNative(settled: SettledBody, route: ReadRouteType): SettledBody {
  const { body, model } = settled
  if (isComplete(body, model, route)) return settled
  const needsUsage = lacksUsage(body)
  const renames = renamesLimit(body, model)
  const { max_tokens: limit, ...rest } = body
  const changed = {
    ...(renames ? { ...rest, max_completion_tokens: body.max_completion_tokens ?? limit } : body),
    ...(needsUsage && {
      stream_options: { ...objectAt(body, 'stream_options'), include_usage: true },
    }),
  }
  return { body: changed, model, isChanged: true }
}

/** Returns true if `completeNative` changes nothing, for a body with these fields and maybe others. */
export function isComplete(fields: JsonObject, model: string, route: ReadRouteType): boolean {
  return route !== 'Completions' || !(lacksUsage(fields) || renamesLimit(fields, model))
}

const lacksUsage = (body: JsonObject): boolean => body.stream === true && !asksForUsage(body)

const renamesLimit = (body: JsonObject, model: string): boolean =>
  body.max_tokens !== undefined && refusesMaxTokens.test(model)

/** Returns true if the client asked for the usage of a stream; otherwise the gateway removes the usage. */
export const asksForUsage = (body: JsonObject): boolean =>
  objectAt(body, 'stream_options')?.include_usage === true

/** Returns true if the whole name matches a pattern in which `*` stands for any text. Takes linear time. */
function matches(pattern: string, name: string): boolean {
  const [prefix = '', ...others] = pattern.split('*')
  const suffix = others.pop() ?? ''
  const end = name.length - suffix.length
  if (!name.startsWith(prefix) || !name.endsWith(suffix) || end < prefix.length) return false
  let from = prefix.length
  for (const piece of others) {
    const at = name.indexOf(piece, from)
    if (at < 0 || at + piece.length > end) return false
    from = at + piece.length
  }
  return true
}

/** Returns the model of the exact alias, otherwise of the longest matching pattern; resolves only once. */
function resolveAlias(model: string, aliases: Aliases | undefined): string {
  if (aliases === undefined) return model
  if (Object.hasOwn(aliases, model)) return aliases[model] ?? model
  const [best] = Object.keys(aliases)
    .filter((name) => name.includes('*') && matches(name, model))
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
  return best === undefined ? model : (aliases[best] ?? model)
}
