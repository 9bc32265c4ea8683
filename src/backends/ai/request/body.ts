/**
 * The body of a request before anything is translated: the provider's model, then overrides, then
 * defaults, then aliases, then what a format needs on the way. The order is part of the interface.
 */
import { isUtf8 } from 'node:buffer'
import {
  compact,
  field,
  hasLongNumbers,
  isObject,
  type JsonObject,
  parseJson,
  stringAt,
} from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { type Aliases, resolveAlias } from './aliases.ts'

export interface FieldValue {
  readonly field: string
  readonly value: unknown
}

export interface BodySettings {
  /** Of the provider. */
  readonly model?: string
  readonly overrides?: readonly FieldValue[]
  readonly defaults?: readonly FieldValue[]
  readonly modelAliases?: Aliases
}

/** Keys that an object literal would take for something else are kept as plain fields. */
function assign(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

const byteOrderMark = 0xfeff

function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  const text = Buffer.from(buffer, byteOffset, length).toString('utf8')
  return text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text
}

interface ParsedBody {
  readonly body: JsonObject
  /** The same with doubles for all numbers, as expressions see it. */
  readonly inDoubles: JsonObject
}

/** JSON text of a request. @throws LlmError 400 where it is no JSON object. */
export function parseBody(bytes: Uint8Array): ParsedBody {
  const text = isUtf8(bytes) ? textOf(bytes) : ''
  const body = parseJson(text)
  if (body === undefined) throw new LlmError(400, 'the body is not JSON')
  if (!isObject(body)) throw new LlmError(400, 'the body is not a JSON object')
  return { body, inDoubles: hasLongNumbers(text) ? JSON.parse(text) : body }
}

export interface SettledBody {
  readonly body: JsonObject
  /** The model that will be asked. */
  readonly model: string
  /** False where the body is what the client sent. */
  readonly isChanged: boolean
}

/** @throws LlmError 400 where no model is named. */
export function settleBody(original: JsonObject, settings: BodySettings): SettledBody {
  const { model: pinned, overrides = [], defaults = [], modelAliases } = settings
  let body: Readonly<Record<string, unknown>> = original
  let isChanged = false
  const put = (name: string, value: unknown) => {
    if (Object.hasOwn(body, name) && body[name] === value) return
    // Copied when something changes: most bodies stay as they are.
    if (!isChanged) body = { ...original }
    assign(body as Record<string, unknown>, name, value)
    isChanged = true
  }
  if (pinned !== undefined) put('model', pinned)
  for (const { field: name, value } of overrides) put(name, value)
  for (const { field: name, value } of defaults) if (!Object.hasOwn(body, name)) put(name, value)
  const named = stringAt(body, 'model')
  if (named === undefined || named === '') {
    throw new LlmError(400, 'missing field: model not specified')
  }
  const model = resolveAlias(named, modelAliases)
  put('model', model)
  return { body, model, isChanged }
}

/** Families that reason; older ones, and others behind the same interface, know the older name. */
const refusesMaxTokens = /^(?:gpt-(?:[5-9]|\d\d)|o\d)/

/**
 * What a native body needs besides: usage in streams, without which nothing could be counted, and
 * the newer name of a limit for models that refuse the older one.
 */
export function completeNative(settled: SettledBody, route: ReadRouteType): SettledBody {
  if (route !== 'Completions') return settled
  const { body, model } = settled
  const needsUsage = body.stream === true && !asksForUsage(body)
  const renames = body.max_tokens !== undefined && refusesMaxTokens.test(model)
  if (!needsUsage && !renames) return settled
  const { max_tokens: limit, ...rest } = body
  const options = field(body, 'stream_options')
  const changed = compact({
    ...(renames ? rest : body),
    max_completion_tokens: renames
      ? (body.max_completion_tokens ?? limit)
      : body.max_completion_tokens,
    stream_options: needsUsage
      ? { ...(isObject(options) ? options : {}), include_usage: true }
      : options,
  })
  return { body: changed, model, isChanged: true }
}

/** Did the client ask for the usage of a stream? Where not, it is asked for and kept from it. */
export function asksForUsage(body: JsonObject): boolean {
  return field(field(body, 'stream_options'), 'include_usage') === true
}
