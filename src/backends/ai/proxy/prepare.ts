/** Prepares a request to a model: reads it, runs the guards, and writes it for the provider. */
import { randomBytes } from 'node:crypto'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { forwardingExtensions } from '../../../exchange/forwarding.ts'
import type { LearnedRecord } from '../../../exchange/learned.ts'
import { addNote } from '../../../exchange/notes.ts'
import { tokenLimitsOf } from '../../../exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { LlmError, UnsupportedByProviderError } from '../llm-error.ts'
import type { RouteType } from '../policy/schema.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { parseBody } from '../request/body.ts'
import { type OutgoingRequest, outgoingRequest, settleRequest } from '../serve/request.ts'
import { hasUntriedProvider } from './choose-provider.ts'
import { decodeBody } from './content-coding.ts'
import { apiVersion, type ModelCall } from './model-call.ts'
import { describeModelCall } from './model-details.ts'
import { modelsAnswer } from './models.ts'
import { llmRefusal, ownAnswer, unsupported } from './own-answers.ts'
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
  const route = call.routeTypes.typeOf(context.exchange.request.path)
  if (route === undefined) {
    context.refusal = ambiguousPath.message
    return llmRefusal('Completions', ambiguousPath)
  }
  call.route = route
  const settle = (pending: Promise<Result>): Promise<Prepared> =>
    pending.catch((error: unknown) => {
      if (context.over) return undefined
      const isUnsuited = error instanceof UnsupportedByProviderError
      if (isUnsuited && passOverProvider(call)) return 'askAnother'
      return refuseInFormat(context, route, error)
    })
  call.outgoing = undefined
  switch (route) {
    case 'Passthrough':
      call.overridePath()
      return undefined
    case 'Realtime':
      return settle(prepareRealtime(call))
    case 'Models':
      return modelsAnswer(call)
    default:
      return settle(prepareRead(call, route))
  }
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

function refuseInFormat(context: RequestContext, route: RouteType, error: unknown): RespondVerdict {
  if (!(error instanceof LlmError)) throw error
  const { message } = error
  context.refusal = message
  // If a provider that supports the request failed before, 503 tells the client that it may try again.
  const isAfterFailure =
    error instanceof UnsupportedByProviderError && context.address !== undefined
  return llmRefusal(route, isAfterFailure ? new LlmError(503, message) : error)
}

async function prepareRead(call: ModelCall, route: ReadRouteType): Promise<Result> {
  const { context, provider, policy } = call
  if (provider === undefined) return undefined
  const original = await readClientBody(call)
  const { config } = provider.provider
  const settled = settleRequest(original, route, config, policy?.config)
  const isGuarded = (policy?.requestGuards.length ?? 0) > 0
  const guarded = isGuarded ? await guardRequest(call, route, settled) : settled
  if (guarded === undefined) return undefined
  if ('kind' in guarded) return guarded
  const { body, model } = guarded
  const isStream = body.stream === true && route !== 'Embeddings'
  call.request = { route, model, isStream, body }
  const outgoing = outgoingRequest(guarded, route, {
    vendor: provider.vendor,
    provider: config,
    settings: policy?.config,
    headers: context.exchange.request.headers,
    newId,
  })
  if ('count' in outgoing) {
    const tokens = await outgoing.count()
    call.addDetails({ countTokens: tokens })
    return context.over ? undefined : ownAnswer(200, { input_tokens: tokens })
  }
  describeModelCall(call)
  // Limits do not apply to token counts: clients use them to stay below the limits.
  const limits = route === 'VendorCTokenCount' ? undefined : tokenLimitsOf(context.exchange)
  const spent = limits && (await limits.check(context.exchange))
  if (context.over || spent !== undefined) return spent
  call.outgoing = outgoing
  writeRequest(call, outgoing)
  return undefined
}

/** Reads the body once for all attempts. */
async function readClientBody(call: ModelCall) {
  if (call.clientBody !== undefined) return call.clientBody
  const { exchange } = call.context
  const { bufferLimit, requestBody, request } = exchange
  const body = await requestBody.buffer(bufferLimit)
  if (!body.complete) throw new LlmError(413, `the body has more than ${bufferLimit} bytes`)
  const coding = request.headers.get('content-encoding')
  const decoded = decodeBody(body.bytes, coding, bufferLimit, 'client')
  call.clientBytes = decoded instanceof Promise ? await decoded : decoded
  const { body: parsed, inDoubles } = parseBody(call.clientBytes)
  call.clientBody = parsed
  exchange.learned.llmRequest = inDoubles as LearnedRecord
  return parsed
}

/** Headers to remove: those about the client's bytes, and the one that asks for a compressed answer. */
const removedHeaders = [
  'content-encoding',
  'accept-encoding',
  'content-md5',
  'digest',
  'content-digest',
]

function writeRequest(call: ModelCall, outgoing: OutgoingRequest): void {
  const { context, clientBytes } = call
  const { request, requestBody } = context.exchange
  if (outgoing.body !== undefined) requestBody.replace(Buffer.from(JSON.stringify(outgoing.body)))
  else if (clientBytes !== undefined) requestBody.replace(clientBytes)
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
