/** Builds the request to one provider, with the data that is needed to read its response. Does no I/O. */

import type { HeaderFields } from '../../../ground/exchange/exchange.ts'
import type { ProviderConfig } from '../../../ground/model/model-providers.ts'
import { countTextsForModel } from '../../core/token-slices.ts'
import type { AddedMessage } from '../common/added-messages.ts'
import { checkShape } from '../common/shape.ts'
import { needDecidedNames, promptFields } from '../decided-fields.ts'
import { asksForStream, type ChatFormat, chatFormatOf } from '../format.ts'
import type { CachingPolicy } from '../formats/converse/caching.ts'
import { readEmbeddingsRequest } from '../formats/embeddings/embeddings.ts'
import { embeddingsFormats, type KnownFormat, providerFormats } from '../formats/index.ts'
import { invokeCount } from '../formats/invoke-count/index.ts'
import type { JsonObject } from '../json/json.ts'
import { needOwnTexts } from '../mask/message-forms.ts'
import { requestTexts } from '../mask/slots.ts'
import type { Plan, Planner } from '../plan.ts'
import {
  type BodySettings,
  completeNative,
  type SettledBody,
  settleBody,
  settledModel,
} from './body.ts'
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
  const settled = settleBody(original, { ...settings, model: pinnedModel(provider) })
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

const pinnedModel = ({ model, deploymentName }: ProviderConfig): string | undefined =>
  model ?? deploymentName

export interface OutgoingRequest {
  /** The format of the client. */
  readonly format: KnownFormat
  readonly plan: Exclude<Plan, { kind: 'local-count' }>
  readonly model: string
  /** The body to send; undefined to send the client's bytes unchanged. */
  readonly body: JsonObject | undefined
  readonly translation: Translation | undefined
  readonly isStream: boolean
  /** True if the client asks for the vectors of embeddings in base64. */
  readonly encodesVectors?: boolean
  /** True if the gateway asked for the usage of the stream and the client did not. */
  readonly hidesUsage: boolean
}

/** A token count by the gateway, which runs in time slices. */
interface LocalCount {
  readonly kind: 'local-count'
  count(): Promise<number>
}

interface RequestContext {
  readonly vendor: Planner
  readonly provider: ProviderConfig
  readonly settings: RequestSettings | undefined
  /** Headers of the client. */
  readonly headers: HeaderFields
  /** The client's path, for errors. */
  readonly path: string
  newId(): string
}

function needChat(format: KnownFormat): ChatFormat {
  if (format.operation === 'chat') return format
  throw new Error(`${format.name} requests are no conversations`)
}

/** @throws LlmError 400 if the provider cannot serve the request. */
export function outgoingRequest(
  settled: SettledBody,
  format: KnownFormat,
  context: RequestContext,
): OutgoingRequest | LocalCount {
  const { model } = settled
  const body = settleMediaTypes(settled.body)
  const isStream = asksForStream(body, format)
  const { vendor, provider, settings, headers, path, newId } = context
  const plan = vendor.plan(format.name, model, provider, isStream)
  const base = { format, model, isStream, hidesUsage: false, translation: undefined }
  switch (plan.kind) {
    case 'local-count':
      checkShape(format.shape, body, '')
      return { kind: 'local-count', count: () => countLocally(body, model) }
    case 'native': {
      const history = withBody(settled, format.history.settle(body))
      const completed = completeNative(history, format)
      const changed = plan.change?.(completed.body) ?? completed.body
      const isChanged = completed.isChanged || changed !== completed.body
      const hidesUsage = isStream && format.completion?.hidesUsage(body) === true
      return { ...base, plan, body: isChanged ? changed : undefined, hidesUsage }
    }
    case 'translated': {
      needOwnTexts(body, format, path)
      checkShape(format.shape, body, '')
      const chat = needChat(format).readRequest(body)
      const options = vendor.requestOptions?.(provider, settings?.caching, headers)
      const translation = translate(chat, providerFormats[plan.format], { ...options, newId })
      const written = plan.change?.(translation.body) ?? translation.body
      return { ...base, plan, translation, body: written }
    }
    case 'embeddings': {
      needOwnTexts(body, format, path)
      checkShape(format.shape, body, '')
      const request = readEmbeddingsRequest(body)
      return {
        ...base,
        plan,
        encodesVectors: request.isEncoded,
        body: embeddingsFormats[plan.format].writeRequest(request),
      }
    }
    case 'invoke-count':
      return { ...base, plan, body: invokeCount.writeRequest(format.history.settle(body)) }
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
  { vendor, provider, settings }: Pick<RequestContext, 'vendor' | 'provider' | 'settings'>,
): OutgoingRequest | undefined {
  if (settings?.prompt !== undefined) return undefined
  const model = settledModel(fields, settings ?? noSettings, pinnedModel(provider))
  if (model === undefined) return undefined
  if (format.completion?.isComplete(fields, model) === false) return undefined
  const isStream = asksForStream(fields, format)
  const plan = vendor.plan(format.name, model, provider, isStream)
  if (plan.kind !== 'native' || plan.change !== undefined) return undefined
  return {
    format,
    plan,
    model,
    body: undefined,
    translation: undefined,
    isStream,
    hidesUsage: false,
  }
}

function withBody(settled: SettledBody, body: JsonObject): SettledBody {
  return body === settled.body ? settled : { ...settled, body, isChanged: true }
}

/** Tokens of a request in addition to its messages. */
const tokensPerRequest = 3
/** Tokens of a message in addition to its text. */
const tokensPerMessage = 4

async function countLocally(body: JsonObject, model: string): Promise<number> {
  const texts = requestTexts(body).map(({ content }) => content)
  const counts = await countTextsForModel(texts, model)
  return counts.reduce((sum, tokens) => sum + tokensPerMessage + tokens, tokensPerRequest)
}
