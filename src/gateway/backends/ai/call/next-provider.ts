/** Decides whether another provider gets a request after a failure, and which one may succeed. */
import { LlmError, UnsupportedByProviderError } from '../../../../engines/messages/llm-error.ts'
import { pinnedModel } from '../../../../engines/messages/request/outgoing.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { ReportedFailure } from '../../../proxy/request/backend-call.ts'
import { allowedModelsOf, ForbiddenModelError, mayUseProvider } from './allowed-models.ts'
import type { FailoverReason } from './failover.ts'
import type { ModelCall } from './model-call.ts'
import { llmRefusal, unsupported } from './own-responses.ts'
import { isLeft, type ProviderEndpoint, type Suits } from './provider-endpoint.ts'

/** Another provider of the backend stores what the request refers to. */
export class StoredElsewhereError extends UnsupportedByProviderError {
  constructor() {
    super('another provider stores what the request refers to')
    this.name = 'StoredElsewhereError'
  }
}

const hasUntriedProvider = (call: ModelCall): boolean =>
  call.groups.some((group) => group.some((one) => isLeft(call, one)))

/** Providers whose model the client's key may not use are no others, so that the client gets the failure itself. */
const permitted = (call: ModelCall): Suits | undefined =>
  allowedModelsOf(call) === undefined ? undefined : (one) => mayUseProvider(call, one)

export const both = (first: Suits | undefined, second: Suits | undefined): Suits | undefined =>
  first && second ? (one) => first(one) && second(one) : (first ?? second)

/** Returns whether another provider may serve a request that the chosen one cannot serve, and records why. */
export function passesOver(call: ModelCall, error: unknown): boolean {
  const reason = reasonToPassOver(error)
  if (reason === undefined || !call.canRestore) return false
  call.unsuited++
  if (!hasUntriedProvider(call)) return false
  const text = `asks another provider: ${reason}`
  addNote(call.context.exchange, 'backend.ai', text, { step: call.policy })
  return true
}

function reasonToPassOver(error: unknown): string | undefined {
  if (error instanceof ForbiddenModelError) return 'the API key may not use its model'
  if (error instanceof StoredElsewhereError) return error.message
  return error instanceof UnsupportedByProviderError ? unsupported : undefined
}

/** Returns whether another provider may succeed after a failure, and remembers which ones may. */
export function moveOn(call: ModelCall, failure: FailoverReason | number | undefined): boolean {
  const { suits: before } = call
  call.suits = both(before, both(suitsAfter(call, failure), permitted(call)))
  if (hasUntriedProvider(call)) return true
  call.suits = before
  return false
}

/**
 * Returns the failure that leads to another provider because of what a response says; undefined if no other one may
 * succeed. Its status is that of the response, which may be a success, because the provider has not failed.
 */
export function failureFor(
  call: ModelCall,
  reason: FailoverReason | undefined,
): ReportedFailure | undefined {
  const { context, outgoing } = call
  const { response, isReplayable } = context.exchange
  if (reason === undefined || outgoing === undefined || response === undefined) return undefined
  if (!call.canTryMore || !isReplayable || !moveOn(call, reason)) return undefined
  call.reason = reason
  const error = new LlmError(502, `the provider refused the request: ${reason}`)
  return {
    kind: 'failed',
    status: response.status,
    response: llmRefusal(outgoing.format.name, error),
  }
}

/** Returns which providers may succeed after a failure of the current one; undefined if all others may. */
function suitsAfter(
  call: ModelCall,
  failure: FailoverReason | number | undefined,
): Suits | undefined {
  const { provider } = call
  if (provider === undefined) return undefined
  if (failure === 401 || failure === 403) {
    return ({ host, port }) => host !== provider.host || port !== provider.port
  }
  if (failure === 'content filter')
    return ({ vendor }) => vendor.systemName !== provider.vendor.systemName
  if (failure !== 'context exceeded') return undefined
  const limit = contextOf(call, provider)
  return (one) => (contextOf(call, one) ?? Number.POSITIVE_INFINITY) > (limit ?? 0)
}

/** The context of the model that a provider gets, in tokens; undefined if the catalog does not know it. */
function contextOf(
  { catalog, request, config }: ModelCall,
  { provider, catalogId }: ProviderEndpoint,
): number | undefined {
  const model = pinnedModel(provider.config) ?? config?.model ?? request?.model
  return model === undefined ? undefined : catalog.find(model, catalogId).limits?.context
}
