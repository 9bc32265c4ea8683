/** A request to a language model on its way out: read, guarded, and written as its provider wants it. */
import { randomBytes } from 'node:crypto'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { forwardingFacts } from '../../../exchange/forwarding.ts'
import type { LearnedRecord } from '../../../exchange/learned.ts'
import { tokenLimitsOf } from '../../../exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { LlmError, UnsupportedByProviderError } from '../llm-error.ts'
import type { RouteType } from '../policy/schema.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { parseBody } from '../request/body.ts'
import { type OutgoingRequest, outgoingRequest, settleRequest } from '../serve/request.ts'
import { hasUntriedProvider } from './choose-provider.ts'
import { decodeBody } from './content-coding.ts'
import type { ModelCall } from './model-call.ts'
import { describeModelCall } from './model-facts.ts'
import type { ModelBackend } from './model-providers.ts'
import { modelsAnswer } from './models.ts'
import { llmRefusal, ownAnswer } from './own-answers.ts'
import { apiVersion, overridePath } from './provider-path.ts'
import { prepareRealtime } from './realtime.ts'
import { guardRequest } from './request-guards.ts'

type Result = RespondVerdict | undefined
type Prepared = Result | 'askAnother'

export const newId = (): string => randomBytes(12).toString('hex')

const ambiguousPath = new LlmError(
  400,
  'the path has dot segments or control characters; send it without them',
)

/** Returns `askAnother` if the chosen provider cannot carry the request and another one may. */
export function prepareModelRequest(
  context: RequestContext,
  call: ModelCall,
  backend: ModelBackend | undefined,
): Prepared | Promise<Prepared> {
  settleSigning(context, call)
  const { request } = context.exchange
  const route = call.routeTypes.typeOf(request.path)
  if (route === undefined) {
    context.refusal = ambiguousPath.message
    return llmRefusal('Completions', ambiguousPath)
  }
  call.route = route
  const settle = (pending: Promise<Result>): Promise<Prepared> =>
    pending.catch((error: unknown) => {
      if (context.over) return undefined
      const isUnsuited = error instanceof UnsupportedByProviderError
      if (isUnsuited && passOverProvider(call, backend)) return 'askAnother'
      return refuseInFormat(context, route, error)
    })
  call.outgoing = undefined
  switch (route) {
    case 'Passthrough':
      overridePath(context, call)
      return undefined
    case 'Realtime':
      return settle(prepareRealtime(context, call))
    case 'Models':
      return modelsAnswer(context, call, backend)
    default:
      return settle(prepareRead(context, call, route))
  }
}

/** The provider cannot carry the request. Is there another one to ask? Nothing is held against the first. */
function passOverProvider(call: ModelCall, backend: ModelBackend | undefined): boolean {
  if (!call.canRestore) return false
  call.unsuited++
  return hasUntriedProvider(call, backend)
}

/** Providers that want signatures say for what, because a host of one's own does not tell. */
function settleSigning({ exchange: { facts } }: RequestContext, { provider }: ModelCall): void {
  const scope = provider?.vendor.signingScope?.(provider.provider.config)
  if (scope === undefined) facts.delete(forwardingFacts.signingScope)
  else facts.set(forwardingFacts.signingScope, scope)
}

function refuseInFormat(context: RequestContext, route: RouteType, error: unknown): RespondVerdict {
  if (!(error instanceof LlmError)) throw error
  const { message } = error
  context.refusal = message
  // If providers that can carry the request have failed, the client may try again.
  const isAfterFailure =
    error instanceof UnsupportedByProviderError && context.address !== undefined
  return llmRefusal(route, isAfterFailure ? new LlmError(503, message) : error)
}

async function prepareRead(
  context: RequestContext,
  call: ModelCall,
  route: ReadRouteType,
): Promise<Result> {
  const { provider, policy } = call
  if (provider === undefined) return undefined
  const original = await readClientBody(context, call)
  const { config } = provider.provider
  const settled = settleRequest(original, route, config, policy?.config)
  const guarded = await guardRequest(context, call, route, settled)
  if (guarded === undefined) return undefined
  if ('kind' in guarded) return guarded
  const { body, model } = guarded
  const isStream = body.stream === true && route !== 'Embeddings'
  call.asked = { route, model, isStream, body }
  const outgoing = outgoingRequest(guarded, route, {
    vendor: provider.vendor,
    provider: config,
    settings: policy?.config,
    headers: context.exchange.request.headers,
    newId,
  })
  if ('count' in outgoing) {
    const tokens = await outgoing.count()
    call.learn({ countTokens: tokens })
    return context.over ? undefined : ownAnswer(200, { input_tokens: tokens })
  }
  describeModelCall(context, call)
  // Counting tokens uses none: clients do it to stay below their limits.
  const limits = route === 'VendorCTokenCount' ? undefined : tokenLimitsOf(context.exchange)
  const spent = await limits?.check(context.exchange)
  if (context.over || spent !== undefined) return spent
  call.outgoing = outgoing
  send(context, call, outgoing)
  return undefined
}

const requestStatuses = { unknown: 415, damaged: 400, tooLarge: 413 }

/** Read once, whatever number of providers is asked. */
async function readClientBody(context: RequestContext, call: ModelCall) {
  if (call.clientBody !== undefined) return call.clientBody
  const { exchange } = context
  const { bufferLimit, requestBody, request } = exchange
  const body = await requestBody.buffer(bufferLimit)
  if (!body.complete) throw new LlmError(413, `the body has more than ${bufferLimit} bytes`)
  const coding = request.headers.get('content-encoding')
  call.clientBytes = await decodeBody(body.bytes, coding, bufferLimit, requestStatuses)
  const { body: parsed, inDoubles } = parseBody(call.clientBytes)
  call.clientBody = parsed
  exchange.learned.llmRequest = inDoubles as LearnedRecord
  return parsed
}

/** Headers that say how the client's own bytes are to be read, or that bind the answer to them. */
const ofTheClient = [
  'content-encoding',
  'accept-encoding',
  'content-md5',
  'digest',
  'content-digest',
]

function send(context: RequestContext, call: ModelCall, outgoing: OutgoingRequest): void {
  const { request, requestBody } = context.exchange
  const { clientBytes } = call
  if (outgoing.body !== undefined) requestBody.replace(Buffer.from(JSON.stringify(outgoing.body)))
  else if (clientBytes !== undefined) requestBody.replace(clientBytes)
  for (const name of ofTheClient) request.headers.remove(name)
  request.headers.set('content-type', 'application/json')
  request.method = 'POST'
  if (!overridePath(context, call)) setPath(context, outgoing.plan)
}

/**
 * The vendor's path. If the vendor speaks the same interface, the query of the client is kept, except
 * for parameters of the vendor's own path and the version of the API, which the provider configures.
 */
function setPath({ exchange: { request } }: RequestContext, plan: OutgoingRequest['plan']): void {
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
