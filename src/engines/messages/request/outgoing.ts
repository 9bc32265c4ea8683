/** Builds the request to one provider, with the data that is needed to read its response. Does no I/O. */

import type { HeaderFields } from '../../../ground/exchange/exchange.ts'
import type { ProviderConfig } from '../../../ground/model/model-providers.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import type { ModelFacts } from '../catalog/facts.ts'
import type { Chat } from '../chat.ts'
import type { AddedMessage } from '../common/added-messages.ts'
import { effortOf } from '../common/effort.ts'
import { checkShape } from '../common/shape.ts'
import { needDecidedNames, promptFields } from '../decided-fields.ts'
import {
  asksForStream,
  type ChatFormat,
  type ClientFormat,
  chatFormatOf,
  type Framing,
  needCount,
  needEmbeddings,
} from '../format.ts'
import type { CachingPolicy } from '../formats/converse/caching.ts'
import { embeddingsFormats, type KnownFormat, providerFormats } from '../formats/index.ts'
import { type JsonObject, stringAt } from '../json/json.ts'
import { needOwnTexts } from '../mask/message-forms.ts'
import type { Plan, Planner } from '../plan.ts'
import type { SealId } from '../stored/stored-ids.ts'
import {
  type BodySettings,
  completeNative,
  otherName,
  type SettledBody,
  settleBody,
  settledModel,
} from './body.ts'
import { countFormats } from './counts/index.ts'
import { countLocally } from './counts/local.ts'
import { settleMediaTypes } from './media-types.ts'
import { type Translation, translate } from './translation.ts'

export interface Enrichment {
  readonly prepend?: readonly AddedMessage[]
  readonly append?: readonly AddedMessage[]
}

/** What users set for requests to a provider. */
interface RequestSettings extends BodySettings {
  readonly prompt?: Enrichment
  readonly caching?: CachingPolicy
}

const noSettings: RequestSettings = {}

/** Returns the client's body with all settings applied, as guards read it. */
export function settleRequest(
  original: JsonObject,
  format: KnownFormat,
  provider: ProviderConfig,
  settings: RequestSettings | undefined,
): SettledBody {
  const settled = settleBody(
    original,
    { ...settings, model: pinnedModel(provider) },
    (format as ClientFormat).hasDefaultModel,
  )
  const chat = chatFormatOf(format)
  if (chat === undefined || settings?.prompt === undefined) return settled
  needDecidedNames(original, promptFields)
  return withBody(settled, enrich(settled.body, chat, settings.prompt))
}

const lowered = ({ role, content }: AddedMessage) => ({ role: role.toLowerCase(), content })

/** Returns the body with the policy's messages; the same object if there are none. */
function enrich(
  body: JsonObject,
  format: ChatFormat,
  { prepend = [], append = [] }: Enrichment,
): JsonObject {
  if (prepend.length === 0 && append.length === 0) return body
  return format.enrich(body, prepend.map(lowered), append.map(lowered))
}

/** The model of a provider that has only one. */
export const pinnedModel = ({ model, deploymentName }: ProviderConfig): string | undefined =>
  model ?? deploymentName

export interface OutgoingRequest {
  /** The format of the client. */
  readonly format: KnownFormat
  readonly plan: Exclude<Plan, { kind: 'local-count' }>
  readonly model: string
  /** The name of the model that the response has for the client; undefined for the name that the provider gives. */
  readonly asked?: string | undefined
  /** The body to send; undefined to send the client's bytes unchanged. */
  readonly body: JsonObject | undefined
  readonly translation: Translation | undefined
  readonly isStream: boolean
  /** How the events of a streamed response are framed for the client; as server-sent events if omitted. */
  readonly framing?: Framing
  /** What is known of the model. */
  readonly facts?: ModelFacts
  /** The body of the client's request for embeddings, if they are translated. */
  readonly asksVectors?: JsonObject
  /** Counts the tokens of the request if the provider cannot; omitted for other requests. */
  countLocally?(): Promise<number>
  /** True if the gateway asked for the usage of the stream and the client did not. */
  readonly hidesUsage: boolean
  /** Seals the ids of the response for the client; omitted if the provider stores nothing. */
  readonly seal?: SealId
}

/** A token count by the gateway, which runs in time slices. */
interface LocalCount {
  readonly kind: 'local-count'
  count(): Promise<number>
}

interface RequestContext {
  readonly vendor: Planner
  readonly provider: ProviderConfig
  /** The facts about models, and the name by which it knows the provider. */
  readonly catalog: ModelCatalog
  readonly catalogId: string
  /** Whether the user has set the path of all requests. */
  readonly isPathFixed: boolean
  readonly settings: RequestSettings | undefined
  /** Headers of the client. */
  readonly headers: HeaderFields
  /** The client's path, for errors. */
  readonly path: string
  /** How the path asks for events to be framed; omitted if it does not. */
  readonly framing?: Framing | undefined
  newId(): string
}

const framingOf = ({ framing }: KnownFormat, context: Pick<RequestContext, 'framing'>): Framing =>
  context.framing ?? framing ?? 'sse'

export function needChat(format: ClientFormat): ChatFormat {
  if (format.operation === 'chat') return format
  throw new Error(`${format.name} requests are no conversations`)
}

/** Vendor A serves some models, and efforts beside tools for others, in its responses format only. */
function suitedPlan(
  plan: Extract<Plan, { kind: 'translated' }>,
  chat: Chat,
  { chatCompletions, effortWithTools }: ModelFacts,
  isPathFixed: boolean,
): Extract<Plan, { kind: 'translated' }> {
  const { responsesPath: path } = plan
  if (path === undefined || plan.format !== 'completions' || isPathFixed || (chat.choices ?? 1) > 1)
    return plan
  const { reasoning, tools } = chat
  const thinks = reasoning !== undefined && effortOf(reasoning) !== 'none'
  const isRefused =
    chatCompletions === false || (effortWithTools === false && tools.length > 0 && thinks)
  return isRefused ? { ...plan, path, format: 'responses' } : plan
}

/** @throws LlmError 400 if the provider cannot serve the request. */
export function outgoingRequest(
  settled: SettledBody,
  format: KnownFormat,
  context: RequestContext,
): OutgoingRequest | LocalCount {
  const { model, asked } = settled
  const body = settleMediaTypes(settled.body)
  const isStream = asksForStream(body, format)
  const { vendor, provider, settings, headers, path, newId } = context
  const facts = context.catalog.find(model, context.catalogId)
  const plan = vendor.plan(format.name, model, provider, isStream)
  const framing = framingOf(format, context)
  const base = {
    ...{ format, model, facts, asked, isStream, framing },
    hidesUsage: false,
    translation: undefined,
  }
  switch (plan.kind) {
    case 'local-count':
      checkShape(format.shape, body, '')
      return { kind: 'local-count', count: () => countLocally(body, model, format) }
    case 'native': {
      const history = withBody(settled, format.history.settle(body))
      const completed = completeNative(history, format, facts)
      const changed = plan.change?.(completed.body) ?? completed.body
      const isChanged = completed.isChanged || changed !== completed.body
      const hidesUsage = isStream && format.completion?.hidesUsage(body) === true
      const isWhole = format.withoutPath === undefined || plan.needsModel === true
      const written = isWhole ? changed : format.withoutPath?.(changed, model)
      return { ...base, plan, body: isChanged ? written : undefined, hidesUsage }
    }
    case 'translated': {
      needOwnTexts(body, format, path)
      checkShape(format.shape, body, '')
      const chat = needChat(format).readRequest(body)
      const suited = suitedPlan(plan, chat, facts, context.isPathFixed)
      const options = vendor.requestOptions?.(provider, settings?.caching, headers)
      const translation = translate(chat, providerFormats[suited.format], {
        ...options,
        facts,
        newId,
      })
      const written = plan.change?.(translation.body) ?? translation.body
      return { ...base, plan: suited, translation, body: written }
    }
    case 'embeddings': {
      needOwnTexts(body, format, path)
      checkShape(format.shape, body, '')
      const request = needEmbeddings(format).readRequest(body)
      const written = embeddingsFormats[plan.format].writeRequest(request)
      return { ...base, plan, asksVectors: body, body: written }
    }
    case 'count': {
      checkShape(format.shape, body, '')
      const asked = format.history.settle(body)
      const { readRequest } = needCount(format)
      const known = { model, facts, readRequest, newId }
      const written = countFormats[plan.format].writeRequest(asked, known)
      return { ...base, plan, body: written, countLocally: () => countLocally(body, model, format) }
    }
  }
}

/**
 * Returns the request to a provider that can get the client's body as it came, with at most another model;
 * undefined if the whole body must be read. `fields` are those of a body that needs no correction.
 * @throws LlmError 400 if the provider cannot serve the request.
 */
export function passedOnRequest(
  fields: JsonObject,
  format: KnownFormat,
  context: Pick<
    RequestContext,
    'vendor' | 'provider' | 'settings' | 'catalog' | 'catalogId' | 'framing'
  >,
): OutgoingRequest | undefined {
  const { vendor, provider, settings, catalog, catalogId } = context
  if (settings?.prompt !== undefined) return undefined
  const model = settledModel(fields, settings ?? noSettings, pinnedModel(provider))
  if (model === undefined) return undefined
  const facts = catalog.find(model, catalogId)
  if (format.completion?.isComplete(fields, facts) === false) return undefined
  const isStream = asksForStream(fields, format)
  const plan = vendor.plan(format.name, model, provider, isStream)
  if (plan.kind !== 'native' || plan.change !== undefined) return undefined
  return {
    format,
    plan,
    model,
    facts,
    asked: otherName(stringAt(fields, 'model'), model),
    body: undefined,
    translation: undefined,
    isStream,
    framing: framingOf(format, context),
    hidesUsage: false,
  }
}

function withBody(settled: SettledBody, body: JsonObject): SettledBody {
  return body === settled.body ? settled : { ...settled, body, isChanged: true }
}
