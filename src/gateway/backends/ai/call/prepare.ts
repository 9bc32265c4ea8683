/** Prepares a request to a model: reads it, runs the guards, and writes it for the provider. */

import { randomBytes } from 'node:crypto'
import { asksForStream } from '../../../../engines/messages/format.ts'
import {
  formatOf,
  type KnownFormat,
  type RouteType,
} from '../../../../engines/messages/formats/index.ts'
import { stringAt } from '../../../../engines/messages/json/json.ts'
import { LlmError, UnsupportedByProviderError } from '../../../../engines/messages/llm-error.ts'
import { needConversation, needOwnTexts } from '../../../../engines/messages/mask/message-forms.ts'
import { FormBody } from '../../../../engines/messages/multipart/form-body.ts'
import type { ClientBody } from '../../../../engines/messages/request/client-body.ts'
import {
  type OutgoingRequest,
  outgoingRequest,
  passedOnRequest,
  settleRequest,
} from '../../../../engines/messages/request/outgoing.ts'
import { andThen } from '../../../../ground/base/and-then.ts'
import { isStackOverflow } from '../../../../ground/base/stack-overflow.ts'
import { budgetsOf } from '../../../../ground/exchange/budgets.ts'
import type { HeaderFields, RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { repeatedRequest } from '../answers/repeated-requests.ts'
import type { StoredPath } from '../policy/stored-paths.ts'
import { admitCall } from './admission.ts'
import {
  allowedModelsOf,
  needAllowedMembers,
  needAllowedModel,
  needNoModelLimit,
} from './allowed-models.ts'
import { findAnswer } from './answers.ts'
import { needGuardable, needModelFirst } from './form-request.ts'
import type { ModelCall, ReadBody } from './model-call.ts'
import { describeModelCall } from './model-details.ts'
import { modelsResponse } from './models.ts'
import { passesOver } from './next-provider.ts'
import { ambiguousPath, isProbe, isStoredPath, llmRefusal, pathRefusal } from './own-responses.ts'
import type { ProviderEndpoint } from './provider-endpoint.ts'
import { hasAuditsOnly, isGuarded, isReadWhole, readClientBody } from './read-body.ts'
import { prepareRealtime } from './realtime.ts'
import { auditRequest, guardRequest } from './request-guards.ts'
import { prepareStored } from './stored-calls.ts'
import { openStored, withSeal } from './stored-place.ts'
import { countedResponse } from './token-count.ts'
import { type SentBody, writeRequest } from './write-request.ts'

type Result = RespondVerdict | undefined
export type Prepared = Result | 'askAnother'

export const newId = (): string => randomBytes(12).toString('hex')

/** Returns `askAnother` if the chosen provider does not support the request and another one may. */
export function prepareModelRequest(call: ModelCall): Prepared | Promise<Prepared> {
  const { context } = call
  settleSigning(call)
  const { method, path } = context.exchange.request
  call.path = path
  const found = call.routeTypes.find(path)
  if (found === undefined) context.refusal = ambiguousPath.message
  call.isProbe = isProbe(method)
  const refusal = pathRefusal(found, method, path)
  if (refusal !== undefined || found === undefined) return refusal
  if (isStoredPath(found)) {
    const target = ofClient(found, context.exchange.request.headers)
    const route = target.errors === 'anthropic' ? 'MessageBatches' : target.collection
    return runOrRefuse(call, route, () => prepareStored(call, target))
  }
  if (typeof found === 'object') return undefined
  call.isProbe &&= formatOf(found) !== undefined
  call.route = found
  call.outgoing = undefined
  call.judged = undefined
  if (found === 'Models') return modelsResponse(call)
  return found === 'Passthrough' ? passThrough(call) : prepareOrRefuse(call, found)
}

/** Files of vendors A and C have the same paths, but clients of vendor C name the version of its API. */
const ofClient = (target: StoredPath, headers: HeaderFields): StoredPath =>
  target.collection === 'Files' && headers.get('anthropic-version') !== undefined
    ? { ...target, errors: 'anthropic' }
    : target

function passThrough(call: ModelCall): Result | Promise<Result> {
  try {
    needNoModelLimit(call)
  } catch (error) {
    return refuseInFormat(call.context, 'Passthrough', error)
  }
  call.overridePath()
  const { exchange } = call.context
  return budgetsOf(exchange)?.reserve(exchange, undefined)
}

function prepareOrRefuse(call: ModelCall, route: RouteType): Prepared | Promise<Prepared> {
  const format = formatOf(route)
  return runOrRefuse(call, route, () =>
    format === undefined ? prepareRealtime(call) : prepareRead(call, format),
  )
}

/** Responds in the format of the client if a request cannot be prepared. */
function runOrRefuse(
  call: ModelCall,
  route: RouteType,
  prepare: () => Result | Promise<Result>,
): Prepared | Promise<Prepared> {
  try {
    const pending = prepare()
    return pending instanceof Promise ? awaitOrRefuse(call, route, pending) : pending
  } catch (error) {
    return refuseUnlessOver(call, route, error)
  }
}

// Separate from `prepareOrRefuse`, which usually need not wait.
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
  if (passesOver(call, error)) return 'askAnother'
  return refuseInFormat(call.context, route, error)
}

/** Sets the signing scope, which cannot be derived from the host if the backend sets `host`. */
function settleSigning({ context, provider }: ModelCall): void {
  const { extensions } = context.exchange
  const scope = provider?.vendor.signingScope?.(provider.provider.config)
  if (scope === undefined) extensions.delete(forwardingExtensions.signingScope)
  else extensions.set(forwardingExtensions.signingScope, scope)
}

const tooDeep = new LlmError(400, 'the body is nested too deeply')

export function refuseInFormat(
  context: RequestContext,
  route: RouteType,
  thrown: unknown,
): RespondVerdict {
  const error = isStackOverflow(thrown) ? tooDeep : thrown
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
  return andThen(readClientBody(call, format), prepareBody, call, format, provider)
}

function prepareBody(
  client: ReadBody,
  call: ModelCall,
  format: KnownFormat,
  provider: ProviderEndpoint,
): Result | Promise<Result> {
  if (client instanceof FormBody) return prepareWhole(call, format, provider, client)
  const outgoing = isReadWhole(call) ? undefined : passOn(call, format, provider, client)
  const bytes = outgoing && client.withModel(outgoing.model)
  if (outgoing === undefined || bytes === undefined) {
    return prepareWhole(call, format, provider, client)
  }
  const { model, isStream } = outgoing
  call.request = { format, model, isStream, body: client }
  return finishPreparing(call, outgoing, bytes)
}

/** Returns the request for a provider that can get the body as it came, with at most another model. */
function passOn(
  call: ModelCall,
  format: KnownFormat,
  provider: ProviderEndpoint,
  client: ClientBody,
): OutgoingRequest | undefined {
  const repeated = repeatedRequest(call.repetition)
  if (repeated !== undefined) return repeated.outgoing
  const fields = client.fieldsToPassOn(format)
  return fields && passedOnRequest(fields, format, outgoingContext(call, provider))
}

function outgoingContext(call: ModelCall, { vendor, provider, catalogId }: ProviderEndpoint) {
  const { context, catalog, clientBody } = call
  const { headers, path } = context.exchange.request
  const isPathFixed = provider.path !== undefined
  return {
    vendor,
    provider: call.config ?? provider.config,
    settings: call.settings,
    catalog,
    catalogId,
    isPathFixed,
    headers,
    path,
    framing: clientBody?.inPath?.framing,
    newId,
  }
}

async function prepareWhole(
  call: ModelCall,
  format: KnownFormat,
  provider: ProviderEndpoint,
  client: ReadBody,
): Promise<Result> {
  const { context } = call
  const settled = settleRequest(
    client.whole,
    format,
    call.config ?? provider.provider.config,
    call.settings,
  )
  needModelFirst(call, settled.model)
  needAllowedModel(call, settled.model, stringAt(client.whole, 'model'))
  needAllowedMembers(call, client.whole)
  const { path } = context.exchange.request
  needConversation(settled.body, format, path)
  if (isGuarded(call)) needOwnTexts(settled.body, format, path)
  if (hasAuditsOnly(call)) await auditRequest(call, format, settled.body)
  if (context.over) return undefined
  const judged = isGuarded(call) ? await guardRequest(call, format, settled) : settled
  if (judged === undefined) return undefined
  if ('kind' in judged) return judged
  const guarded = mayRelay(call, client) ? judged : { ...judged, isChanged: true }
  const opened = openStored(call, format, guarded, provider)
  const { body, model } = guarded
  const isStream = asksForStream(body, format)
  call.request = { format, model, isStream, body: { fields: body, whole: body } }
  const outgoing = outgoingRequest(opened, format, outgoingContext(call, provider))
  if ('count' in outgoing) {
    return countedResponse(call, format, outgoing.count)
  }
  if (client instanceof FormBody) {
    needGuardable(call, format, body)
    return finishPreparing(call, outgoing, client)
  }
  const bytes = outgoing.body && Buffer.from(JSON.stringify(outgoing.body))
  return finishPreparing(call, outgoing, bytes ?? client.bytes)
}

/**
 * Returns whether the provider may get the client's bytes: with a repeated key, it might read another value than
 * the gateway has checked or set. Guards check all fields that are known, but not those of other settings.
 */
function mayRelay(call: ModelCall, client: ReadBody): boolean {
  const { guarded, policy } = call
  // A key may be repeated at any depth.
  if (allowedModelsOf(call) !== undefined) return false
  if (client.isUnambiguous) return true
  const { overrides, defaults } = policy?.config ?? {}
  return guarded?.isUnambiguous === true && overrides === undefined && defaults === undefined
}

function finishPreparing(
  call: ModelCall,
  planned: OutgoingRequest,
  bytes: SentBody,
): Result | Promise<Result> {
  const outgoing = withSeal(call, planned)
  describeModelCall(call)
  call.bodyBytes = bytes.length
  return andThen(findAnswer(call, outgoing), admitUnless, call, outgoing, bytes)
}

/** Checks limits and budgets, unless a stored answer is served. */
function admitUnless(
  found: Result,
  call: ModelCall,
  outgoing: OutgoingRequest,
  bytes: SentBody,
): Result | Promise<Result> {
  if (found !== undefined || call.context.over) return found
  return andThen(admitCall(call, outgoing), sendUnless, call, outgoing, bytes)
}

/** Sends the request unless limits have refused it. */
function sendUnless(
  spent: Result,
  call: ModelCall,
  outgoing: OutgoingRequest,
  bytes: SentBody,
): Result {
  if (call.context.over || spent !== undefined) return spent
  call.isAdmitted = true
  call.outgoing = outgoing
  writeRequest(call, outgoing, bytes)
  return undefined
}
