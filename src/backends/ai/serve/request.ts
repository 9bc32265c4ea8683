/**
 * One request to one provider: what is sent, and what is needed to make sense of the answer. Pure;
 * the data plane reads and sends.
 */
import { countTextsForModel } from '../../../core/token-slices.ts'
import type { HeaderFields } from '../../../exchange/exchange.ts'
import type { Chat } from '../chat.ts'
import { type ChatFormat, clientFormats } from '../client-formats.ts'
import {
  invokeFamily,
  readEmbeddingsRequest,
  writePredict,
} from '../formats/embeddings/embeddings.ts'
import { defaultMaxTokens } from '../formats/messages/write-request.ts'
import { requestTexts } from '../guards/slots.ts'
import { isObject, type JsonObject, parseJson } from '../json.ts'
import type { BackendAiConfig } from '../policy/config.ts'
import { type Translation, type TranslationOptions, translate } from '../provider-formats.ts'
import type { Plan, Provider, ProviderConfig, ReadRouteType } from '../providers/provider.ts'
import {
  asksForUsage,
  type BodySettings,
  completeNative,
  type SettledBody,
  settleBody,
} from '../request/body.ts'
import { checkClientShape } from '../request/client-shapes.ts'
import { enrich } from '../request/enrichment.ts'
import { settleHistory } from '../request/history.ts'
import { settleMediaTypes } from '../request/media-types.ts'

export function chatFormatOf(route: ReadRouteType): ChatFormat | undefined {
  return route === 'Embeddings' || route === 'VendorCTokenCount' ? undefined : route
}

/** The client's body with everything that settings put into it; guards look at this. */
export function settleRequest(
  original: JsonObject,
  route: ReadRouteType,
  provider: ProviderConfig,
  settings: BackendAiConfig | undefined,
): SettledBody {
  const settled = settleBody(original, bodySettings(provider, settings))
  const format = chatFormatOf(route)
  if (format === undefined || settings?.prompt === undefined) return settled
  const body = enrich(settled.body, format, settings.prompt)
  return body === settled.body ? settled : { ...settled, body, isChanged: true }
}

function bodySettings(
  { model, deploymentName }: ProviderConfig,
  settings: BackendAiConfig | undefined,
): BodySettings {
  const pinned = model ?? deploymentName
  return { ...settings, ...(pinned !== undefined && { model: pinned }) }
}

export interface OutgoingRequest {
  readonly route: ReadRouteType
  readonly plan: Exclude<Plan, { kind: 'local-count' }>
  readonly model: string
  /** Undefined: the bytes of the client, untouched. */
  readonly body: JsonObject | undefined
  readonly translation: Translation | undefined
  readonly isStream: boolean
  /** Embeddings: the client wants vectors as text. */
  readonly encodesVectors?: boolean
  /** The client did not ask for the usage of the stream; the gateway did. */
  readonly hidesUsage: boolean
}

/** Tokens that are counted here, a slice at a time. */
export interface LocalCount {
  readonly kind: 'local-count'
  count(): Promise<number>
}

export interface RequestContext {
  readonly vendor: Provider
  readonly provider: ProviderConfig
  readonly settings: BackendAiConfig | undefined
  /** Of the client. */
  readonly headers: HeaderFields
  newId(): string
}

/** @throws LlmError 400 where the provider cannot serve the request. */
export function outgoingRequest(
  settled: SettledBody,
  route: ReadRouteType,
  context: RequestContext,
): OutgoingRequest | LocalCount {
  const { model } = settled
  const body = settleMediaTypes(settled.body)
  const isStream = body.stream === true && route !== 'Embeddings'
  const plan = context.vendor.plan(route, model, context.provider, isStream)
  const base = { route, model, isStream, hidesUsage: false, translation: undefined }
  switch (plan.kind) {
    case 'local-count':
      checkClientShape(body, route)
      return { kind: 'local-count', count: () => countLocally(body, model) }
    case 'native': {
      const completed = completeNative(withBody(settled, settleHistory(body, route)), route)
      const changed = plan.change?.(completed.body) ?? completed.body
      const isChanged = completed.isChanged || changed !== completed.body
      const hidesUsage = route === 'Completions' && isStream && !asksForUsage(body)
      return { ...base, plan, body: isChanged ? changed : undefined, hidesUsage }
    }
    case 'translated': {
      checkClientShape(body, route)
      const chat = clientFormats[route as ChatFormat].readRequest(body)
      const translation = translate(chat, plan.format, optionsOf(context, chat))
      const written = plan.change?.(translation.body) ?? translation.body
      return { ...base, plan, translation, body: written }
    }
    case 'embeddings': {
      checkClientShape(body, route)
      const request = readEmbeddingsRequest(body)
      const isPredict = plan.format === 'predict'
      return {
        ...base,
        plan,
        encodesVectors: request.isEncoded,
        body: isPredict ? writePredict(request) : invokeFamily(model).write(request),
      }
    }
    case 'invoke-count':
      return { ...base, plan, body: invokeCount(settleHistory(body, route)) }
  }
}

function withBody(settled: SettledBody, body: JsonObject): SettledBody {
  return body === settled.body ? settled : { ...settled, body, isChanged: true }
}

/** Beta names that the provider takes among its additional fields. */
const betas: ReadonlySet<string> = new Set([
  'computer-use-2025-01-24',
  'context-1m-2025-08-07',
  'effort-2025-11-24',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
])

function optionsOf(context: RequestContext, _chat: Chat): TranslationOptions {
  const { provider, settings, headers, newId } = context
  if (provider.vendor !== 'vendorF') return { newId }
  const metadata = parseJson(headers.get('x-bedrock-metadata') ?? '')
  const named = headers
    .getAll('anthropic-beta')
    .flatMap((line) => line.split(','))
    .map((name) => name.trim())
    .filter((name) => betas.has(name))
  return {
    newId,
    ...(provider.guardrail && { guardrail: provider.guardrail }),
    ...(settings?.caching && { caching: settings.caching }),
    ...(isObject(metadata) && { requestMetadata: metadata }),
    ...(named.length > 0 && { additional: { anthropic_beta: named } }),
  }
}

/** vendorF counts what it would be invoked with. */
function invokeCount({ model: _model, ...body }: JsonObject): JsonObject {
  const invoked = {
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: defaultMaxTokens,
    ...body,
  }
  const encoded = Buffer.from(JSON.stringify(invoked)).toString('base64')
  return { input: { invokeModel: { body: encoded } } }
}

/** Of the whole, and of each message beside its text. */
const tokensAround = 3
const tokensPerMessage = 4

async function countLocally(body: JsonObject, model: string): Promise<number> {
  const texts = requestTexts(body, 'VendorCTokenCount').map(({ content }) => content)
  const counts = await countTextsForModel(texts, model)
  return counts.reduce((sum, tokens) => sum + tokensPerMessage + tokens, tokensAround)
}
