/** Prepares a request to a model: reads it, runs the guards, and writes it for the provider. */
import { randomBytes } from 'node:crypto'
import { asksForStream } from '../../../../engines/messages/format.ts'
import {
  formatOf,
  type KnownFormat,
  type RouteType,
} from '../../../../engines/messages/formats/index.ts'
import { LlmError, UnsupportedByProviderError } from '../../../../engines/messages/llm-error.ts'
import { needConversation, needOwnTexts } from '../../../../engines/messages/mask/message-forms.ts'
import { ClientBody } from '../../../../engines/messages/request/client-body.ts'
import {
  type OutgoingRequest,
  outgoingRequest,
  passedOnRequest,
  settleRequest,
} from '../../../../engines/messages/request/outgoing.ts'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import type { BufferedBody, RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import { checkTokenLimits, tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { hasUntriedProvider } from './choose-provider.ts'
import { decodeBody } from './content-coding.ts'
import { apiVersion, type ModelCall } from './model-call.ts'
import { describeModelCall } from './model-details.ts'
import type { ProviderEndpoint } from './model-providers.ts'
import { modelsResponse } from './models.ts'
import {
  llmRefusal,
  ownResponse,
  refuseMethod,
  refuseUnmapped,
  unsupported,
} from './own-responses.ts'
import { prepareRealtime } from './realtime.ts'
import { guardRequest } from './request-guards.ts'

type Result = RespondVerdict | undefined
type Prepared = Result | 'askAnother'

export const newId = (): string => randomBytes(12).toString('hex')

const ambiguousPath = new LlmError(
  400,
  'the path has dot segments or control characters; send it without them',
)

/** Returns `askAnother` if the chosen provider does not support the request and another one may. */
export function prepareModelRequest(call: ModelCall): Prepared | Promise<Prepared> {
  const { context } = call
  settleSigning(call)
  const { path } = context.exchange.request
  const route = call.routeTypes.typeOf(path)
  if (route === undefined) {
    context.refusal = ambiguousPath.message
    return llmRefusal('Completions', ambiguousPath)
  }
  const refused = refuseHead(call, route, path)
  if (refused !== undefined) return refused
  call.route = route
  call.outgoing = undefined
  switch (route) {
    case 'Passthrough':
      call.overridePath()
      return undefined
    case 'Models':
      return modelsResponse(call)
    default:
      return prepareOrRefuse(call, route)
  }
}

/** Refuses a request whose head shows that its body has another format than that of the type. */
function refuseHead(call: ModelCall, route: RouteType, path: string): Result {
  const { method } = call.context.exchange.request
  const unmapped = call.routeTypes.unmappedPath(path)
  call.isProbe = method === 'GET' || method === 'HEAD'
  if (unmapped !== undefined) return refuseUnmapped(path, unmapped)
  const isRead = formatOf(route) !== undefined
  call.isProbe &&= isRead
  return method !== 'POST' && isRead ? refuseMethod(route, method, path) : undefined
}

/** Responses a request that cannot be prepared in the format of the client. */
function prepareOrRefuse(call: ModelCall, route: RouteType): Prepared | Promise<Prepared> {
  try {
    const format = formatOf(route)
    const pending = format === undefined ? prepareRealtime(call) : prepareRead(call, format)
    return pending instanceof Promise ? awaitOrRefuse(call, route, pending) : pending
  } catch (error) {
    return refuseUnlessOver(call, route, error)
  }
}

// Functions that wait are separate from those that need not: V8 makes memory for variables of a callback even
// if the callback is never made.
async function awaitOrRefuse(
  call: ModelCall,
  route: RouteType,
  pending: Promise<Result>,
): Promise<Prepared> {
  try {
    return await pending
  } catch (error) {
    return refuseUnlessOver(call, route, error)
  }
}

function refuseUnlessOver(call: ModelCall, route: RouteType, error: unknown): Prepared {
  if (call.context.over) return undefined
  if (error instanceof UnsupportedByProviderError && passOverProvider(call)) return 'askAnother'
  return refuseInFormat(call.context, route, error)
}

/** Records that the provider does not support the request. Returns whether another one may. */
function passOverProvider(call: ModelCall): boolean {
  if (!call.canRestore) return false
  call.unsuited++
  if (!hasUntriedProvider(call)) return false
  const text = `asks another provider: ${unsupported}`
  addNote(call.context.exchange, 'backend.ai', text, { step: call.policy })
  return true
}

/** Sets the signing scope, which cannot be derived from the host if the backend sets `host`. */
function settleSigning({ context, provider }: ModelCall): void {
  const { extensions } = context.exchange
  const scope = provider?.vendor.signingScope?.(provider.provider.config)
  if (scope === undefined) extensions.delete(forwardingExtensions.signingScope)
  else extensions.set(forwardingExtensions.signingScope, scope)
}

const tooDeep = new LlmError(400, 'the body is nested too deeply')

function refuseInFormat(
  context: RequestContext,
  route: RouteType,
  thrown: unknown,
): RespondVerdict {
  // Converters and JSON.stringify throw a RangeError if they run out of stack.
  const error = thrown instanceof RangeError ? tooDeep : thrown
  if (!(error instanceof LlmError)) throw error
  const { message } = error
  context.refusal = message
  // If a provider that supports the request failed before, 503 tells the client that it may try again.
  const isAfterFailure =
    error instanceof UnsupportedByProviderError && context.attempt !== undefined
  return llmRefusal(route, isAfterFailure ? new LlmError(503, message) : error)
}

function prepareRead(call: ModelCall, format: KnownFormat): Result | Promise<Result> {
  const { provider } = call
  if (provider === undefined) return undefined
  const client = readClientBody(call, format)
  return client instanceof Promise
    ? awaitAndPrepare(call, format, provider, client)
    : prepareBody(call, format, provider, client)
}

async function awaitAndPrepare(
  call: ModelCall,
  format: KnownFormat,
  provider: ProviderEndpoint,
  pending: Promise<ClientBody>,
): Promise<Result> {
  return prepareBody(call, format, provider, await pending)
}

function prepareBody(
  call: ModelCall,
  format: KnownFormat,
  provider: ProviderEndpoint,
  client: ClientBody,
): Result | Promise<Result> {
  const fields = isGuarded(call) ? undefined : client.fieldsToPassOn(format)
  const outgoing = fields && passedOnRequest(fields, format, outgoingContext(call, provider))
  const bytes = outgoing && client.withModel(outgoing.model)
  if (outgoing === undefined || bytes === undefined) {
    return prepareWhole(call, format, provider, client)
  }
  const { model, isStream } = outgoing
  call.request = { format, model, isStream, body: client }
  return finishPreparing(call, outgoing, bytes)
}

const isGuarded = ({ policy }: ModelCall): boolean => (policy?.requestGuards.length ?? 0) > 0

function outgoingContext({ context, policy }: ModelCall, { vendor, provider }: ProviderEndpoint) {
  const { headers, path } = context.exchange.request
  return { vendor, provider: provider.config, settings: policy?.config, headers, path, newId }
}

async function prepareWhole(
  call: ModelCall,
  format: KnownFormat,
  provider: ProviderEndpoint,
  client: ClientBody,
): Promise<Result> {
  const { context, policy } = call
  const settled = settleRequest(client.whole, format, provider.provider.config, policy?.config)
  const { path } = context.exchange.request
  needConversation(settled.body, format, path)
  if (isGuarded(call)) needOwnTexts(settled.body, format, path)
  const judged = isGuarded(call) ? await guardRequest(call, format, settled) : settled
  if (judged === undefined) return undefined
  if ('kind' in judged) return judged
  const guarded = mayRelay(call, client) ? judged : { ...judged, isChanged: true }
  const { body, model } = guarded
  const isStream = asksForStream(body, format)
  call.request = { format, model, isStream, body: { fields: body, whole: body } }
  const outgoing = outgoingRequest(guarded, format, outgoingContext(call, provider))
  if ('count' in outgoing) {
    const tokens = await outgoing.count()
    call.addDetails({ countTokens: tokens })
    return context.over ? undefined : ownResponse(200, { input_tokens: tokens })
  }
  const bytes = outgoing.body && Buffer.from(JSON.stringify(outgoing.body))
  return finishPreparing(call, outgoing, bytes ?? client.bytes)
}

/**
 * Returns whether the provider may get the client's bytes: with a repeated key, it might read another value than
 * the gateway has checked or set. Guards check all fields that are known, but not those of other settings.
 */
function mayRelay({ guarded, policy }: ModelCall, client: ClientBody): boolean {
  if (client.isUnambiguous) return true
  const { overrides, defaults } = policy?.config ?? {}
  return guarded?.isUnambiguous === true && overrides === undefined && defaults === undefined
}

function finishPreparing(
  call: ModelCall,
  outgoing: OutgoingRequest,
  bytes: Buffer,
): Result | Promise<Result> {
  const { exchange } = call.context
  describeModelCall(call)
  // Limits do not apply to token counts: clients use them to stay below the limits.
  const limits = outgoing.format.operation === 'count_tokens' ? undefined : tokenLimitsOf(exchange)
  if (limits !== undefined || (call.policy?.responseGuards.length ?? 0) > 0) {
    refuseBackground(call, outgoing)
  }
  const spent = limits && checkTokenLimits(exchange)
  return spent instanceof Promise
    ? awaitLimits(spent, call, outgoing, bytes)
    : sendUnless(spent, call, outgoing, bytes)
}

/**
 * Refuses a response in the background: its tokens and texts come with a later request, which is neither
 * charged nor guarded. @throws LlmError 400
 */
function refuseBackground({ request }: ModelCall, { format, plan }: OutgoingRequest): void {
  if (format.hasBackground !== true || plan.kind !== 'native') return
  if (request?.body.fields.background !== true) return
  throw new LlmError(
    400,
    'background responses are not supported where token limits or response guards apply; send the request without background',
  )
}

async function awaitLimits(
  pending: Promise<Result>,
  call: ModelCall,
  outgoing: OutgoingRequest,
  bytes: Buffer,
): Promise<Result> {
  return sendUnless(await pending, call, outgoing, bytes)
}

/** Sends the request unless limits have refused it. */
function sendUnless(
  spent: Result,
  call: ModelCall,
  outgoing: OutgoingRequest,
  bytes: Buffer,
): Result {
  if (call.context.over || spent !== undefined) return spent
  call.outgoing = outgoing
  writeRequest(call, outgoing, bytes)
  return undefined
}

/** Reads the body once for all attempts. */
function readClientBody(call: ModelCall, format: KnownFormat): ClientBody | Promise<ClientBody> {
  if (call.clientBody !== undefined) return call.clientBody
  const { bufferLimit, request, requestBody } = call.context.exchange
  const body = requestBody.read(bufferLimit)
  const isPlain = request.headers.get('content-encoding') === undefined
  return body instanceof Promise || !isPlain
    ? awaitClientBody(call, format, body)
    : keepClientBody(call, format, needWhole(body, bufferLimit))
}

async function awaitClientBody(
  call: ModelCall,
  format: KnownFormat,
  pending: BufferedBody | Promise<BufferedBody>,
): Promise<ClientBody> {
  const { bufferLimit, request } = call.context.exchange
  const bytes = needWhole(await pending, bufferLimit)
  const coding = request.headers.get('content-encoding')
  return keepClientBody(call, format, await decodeBody(bytes, coding, bufferLimit, 'client'))
}

/** @throws LlmError 413 if the body is larger than the limit. */
function needWhole(body: BufferedBody, limit: number): Uint8Array {
  if (!body.complete) throw new LlmError(413, `the body has more than ${limit} bytes`)
  return body.bytes
}

function keepClientBody(call: ModelCall, format: KnownFormat, bytes: Uint8Array): ClientBody {
  const mayPassOn = !isGuarded(call) && call.policy?.config.prompt === undefined
  const client = new ClientBody(bufferOf(bytes), mayPassOn ? format : undefined)
  call.clientBody = client
  call.context.exchange.learned.describeLlmRequest(client)
  return client
}

/** Headers to remove: those about the client's bytes, and the one that asks for a compressed response. */
const removedHeaders = [
  'content-encoding',
  'accept-encoding',
  'content-md5',
  'digest',
  'content-digest',
]

function writeRequest(call: ModelCall, outgoing: OutgoingRequest, bytes: Buffer): void {
  const { context } = call
  const { request, requestBody } = context.exchange
  requestBody.replace(bytes)
  for (const name of removedHeaders) request.headers.remove(name)
  request.headers.set('content-type', 'application/json')
  request.method = 'POST'
  if (!call.overridePath()) setPath(context, outgoing.plan)
}

/**
 * Sets the vendor's path. If the vendor has the client's API, the client's query is kept, except for the
 * API version and the parameters that the vendor's path sets.
 */
function setPath({ exchange: { request } }: RequestContext, plan: OutgoingRequest['plan']): void {
  if (request.query === undefined && !plan.path.includes('?')) {
    request.path = plan.path
    return
  }
  const [path = '', ...rest] = plan.path.split('?')
  const own = rest.join('?')
  const isSame = plan.kind === 'native' && plan.change === undefined
  const given = isSame ? (request.query ?? '').split('&') : []
  const names = new Set([apiVersion, ...own.split('&').map(nameOfParameter)])
  const kept = given.filter((one) => !names.has(nameOfParameter(one)))
  const all = [own, ...kept].filter((part) => part !== '')
  request.path = path
  request.query = all.length === 0 ? undefined : all.join('&')
}

const nameOfParameter = (parameter: string): string => parameter.split('=', 1)[0] ?? ''
