/**
 * Runs the guards of a request in order; each sees the texts as the previous one left them. They
 * run once per request: for another provider with the same policy, their result is used again.
 */

import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { MatchCounts } from '../../../../engines/messages/mask/match-counts.ts'
import { maskTexts } from '../../../../engines/messages/mask/parts-masker.ts'
import { needPlainKeys } from '../../../../engines/messages/mask/plain-keys.ts'
import { requestTexts, withRequestTexts } from '../../../../engines/messages/mask/slots.ts'
import { mapRequestTexts } from '../../../../engines/messages/mask/texts.ts'
import type { SettledBody } from '../../../../engines/messages/request/body.ts'
import type { ReadRouteType } from '../../../../engines/messages/route-type.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { guardFailure } from '../guards/guard-call.ts'
import type { WebhookGuard } from '../guards/webhook.ts'
import type { Guard } from '../policy/apply.ts'
import { recordCheck } from './guard-checks.ts'
import type { GuardedBody, ModelCall } from './model-call.ts'
import { guardRefusal } from './own-answers.ts'

/** Runs the guards, of which there is at least one. Returns the guarded body, or the response of a guard that rejects; undefined if the request has ended. */
export async function guardRequest(
  call: ModelCall,
  route: ReadRouteType,
  settled: SettledBody,
): Promise<SettledBody | RespondVerdict | undefined> {
  const { policy, context } = call
  const guards = policy?.requestGuards ?? []
  const before = call.guarded
  if (before !== undefined && before.policy === policy && before.route === route) {
    return withGuarded(settled, before)
  }
  needPlainKeys(settled.body)
  if (route === 'Embeddings') needTexts(settled.body.input)
  if (passesAsBytes(call, route, settled)) return settled
  let body = settled.body
  for (const [at, guard] of guards.entries()) {
    const placed = { phase: 'Request', guard, at } as const
    const outcome = await run(guard, { call, route, body }).catch((error: unknown) => {
      recordCheck(call, placed, 'Fail')
      throw error
    })
    if (context.over) return undefined
    const action = 'kind' in outcome ? 'Reject' : outcome.body === body ? 'Allow' : 'Mask'
    const detail = recordCheck(call, placed, action, outcome.detail)
    if ('kind' in outcome) return { ...outcome, ...(detail && { detail }) }
    body = outcome.body
  }
  const changed = body === settled.body ? undefined : body
  call.guarded = { policy, route, body: changed, isUnambiguous: false }
  return withGuarded(settled, call.guarded)
}

/** Lets a request pass with the client's bytes if no guard finds anything in them. */
function passesAsBytes(call: ModelCall, route: ReadRouteType, settled: SettledBody): boolean {
  const { policy, clientBody } = call
  const chain = settled.isChanged ? undefined : policy?.requestChain
  if (policy === undefined || chain === undefined || clientBody === undefined) return false
  if (!chain.isHarmless(clientBody.bytes, route)) return false
  for (const [at, guard] of policy.requestGuards.entries()) {
    recordCheck(call, { phase: 'Request', guard, at }, 'Allow')
  }
  call.guarded = { policy, route, body: undefined, isUnambiguous: true }
  return true
}

/** Rejects token numbers, which guards cannot read. @throws LlmError 400 */
function needTexts(input: unknown): void {
  const isText = typeof input === 'string'
  if (isText || (Array.isArray(input) && input.every((one) => typeof one === 'string'))) return
  throw new LlmError(400, 'input: only texts can be guarded')
}

/**
 * Returns the guarded body with the model for this provider. Unless the kernel has checked that no key
 * occurs twice, it is serialized again even if nothing was masked: the provider might read the value that
 * the guards did not see.
 */
function withGuarded(settled: SettledBody, { body, isUnambiguous }: GuardedBody): SettledBody {
  if (body !== undefined) {
    return { ...settled, body: { ...body, model: settled.model }, isChanged: true }
  }
  return { ...settled, isChanged: settled.isChanged || !isUnambiguous }
}

interface GuardedRequest {
  readonly call: ModelCall
  readonly route: ReadRouteType
  readonly body: JsonObject
}

/** `detail` says what the guard has found. */
type Outcome = { readonly body: JsonObject; readonly detail?: string } | RespondVerdict

async function run(guard: Guard, request: GuardedRequest): Promise<Outcome> {
  const { body, call } = request
  if (guard.type === 'regex') {
    const counts = new MatchCounts()
    const masked = mapRequestTexts(body, (texts) => {
      return maskTexts(guard.mask, texts, counts.add).texts
    })
    // Matches are counted instead of comparing texts, because a match may equal its replacement.
    const detail = counts.textOf(guard.mask)
    if (detail === undefined) return { body: masked }
    return guard.action === 'Reject'
      ? { ...guardRefusal(guard.refusal), detail }
      : { body: masked, detail }
  }
  if (guard.type === 'webhook') return askWebhook(guard, request)
  const isFlagged = await guard.isFlagged(requestTexts(body), call.context.exchange)
  return isFlagged ? guardRefusal(guard.refusal) : { body }
}

async function askWebhook(
  guard: WebhookGuard,
  { call, route, body }: GuardedRequest,
): Promise<Outcome> {
  const texts = requestTexts(body)
  const { headers } = call.context.exchange.request
  // `forwardHeaderMatches` applies to all headers of the client, credentials included.
  const all = {
    getAll: (name: string) => [...call.credentials.getAll(name), ...headers.getAll(name)],
  }
  const action = await guard.ask('request', texts, all)
  switch (action.type) {
    case 'pass':
      return { body }
    case 'reject':
      return guardRefusal(guard.refusal, action)
    case 'mask': {
      const masked = withRequestTexts(body, route, action.texts)
      if (masked === undefined) throw guardFailure('the mask does not fit the request')
      return { body: masked }
    }
  }
}
