/**
 * Runs the guards of a request in order; each sees the texts as the previous one left them. They
 * run once per request: for another provider with the same policy, their result is used again.
 */

import type { ClientFormat } from '../../../../engines/messages/format.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { MatchCounts } from '../../../../engines/messages/mask/match-counts.ts'
import { maskTexts } from '../../../../engines/messages/mask/parts-masker.ts'
import { needPlainKeys } from '../../../../engines/messages/mask/plain-keys.ts'
import { requestTexts, withRequestTexts } from '../../../../engines/messages/mask/slots.ts'
import { mapRequestTexts, type TextsMap } from '../../../../engines/messages/mask/texts.ts'
import type { SettledBody } from '../../../../engines/messages/request/body.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { guardFailure } from '../guards/guard-call.ts'
import type { WebhookGuard } from '../guards/webhook.ts'
import type { Guard } from '../policy/bind-guard.ts'
import { recordCheck } from './guard-checks.ts'
import type { GuardedBody, ModelCall } from './model-call.ts'
import { guardRefusal } from './own-responses.ts'

/** Runs the guards, of which there is at least one. Returns the guarded body, or the response of a guard that rejects; undefined if the request has ended. */
export async function guardRequest(
  call: ModelCall,
  format: ClientFormat,
  settled: SettledBody,
): Promise<SettledBody | RespondVerdict | undefined> {
  const { policy, context } = call
  const guards = policy?.requestGuards ?? []
  const before = call.guarded
  if (before !== undefined && before.policy === policy && before.format === format) {
    return withGuarded(settled, before)
  }
  needPlainKeys(settled.body, format.ownTexts)
  const problem = format.unguardable?.(settled.body)
  if (problem !== undefined) throw new LlmError(400, problem)
  if (passesAsBytes(call, format, settled)) return settled
  let body = settled.body
  for (const [at, guard] of guards.entries()) {
    const placed = { phase: 'Request', guard, at } as const
    const outcome = await run(guard, { call, format, body }).catch((error: unknown) => {
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
  call.guarded = { policy, format, body: changed, isUnambiguous: false }
  return withGuarded(settled, call.guarded)
}

/** Lets a request pass with the client's bytes if no guard finds anything in them. */
function passesAsBytes(call: ModelCall, format: ClientFormat, settled: SettledBody): boolean {
  const { policy, clientBody } = call
  const chain = settled.isChanged ? undefined : policy?.requestChain
  if (policy === undefined || chain === undefined || clientBody === undefined) return false
  if (format.core === undefined || !('bytes' in clientBody)) return false
  if (!chain.isHarmless(clientBody.bytes, format.core)) return false
  for (const [at, guard] of policy.requestGuards.entries()) {
    recordCheck(call, { phase: 'Request', guard, at }, 'Allow')
  }
  call.guarded = { policy, format, body: undefined, isUnambiguous: true }
  return true
}

/**
 * Returns the guarded body with the model for this provider. Unless the kernel has checked that no key
 * occurs twice, it is serialized again even if nothing was masked: the provider might read the value that
 * the guards did not see.
 */
function withGuarded(settled: SettledBody, { body, isUnambiguous }: GuardedBody): SettledBody {
  if (body !== undefined) {
    // Some requests name no model.
    const named = settled.model === '' ? body : { ...body, model: settled.model }
    return { ...settled, body: named, isChanged: true }
  }
  return { ...settled, isChanged: settled.isChanged || !isUnambiguous }
}

interface GuardedRequest {
  readonly call: ModelCall
  readonly format: ClientFormat
  readonly body: JsonObject
}

/** `detail` says what the guard has found. */
type Outcome = { readonly body: JsonObject; readonly detail?: string } | RespondVerdict

async function run(guard: Guard, request: GuardedRequest): Promise<Outcome> {
  const { body, call, format } = request
  if (guard.type === 'regex') {
    const counts = new MatchCounts()
    const mask: TextsMap = (texts) => maskTexts(guard.mask, texts, counts.add).texts
    const masked = mapRequestTexts(body, mask, format.ownTexts)
    // Matches are counted instead of comparing texts, because a match may equal its replacement.
    const detail = counts.textOf(guard.mask)
    if (detail === undefined) return { body: masked }
    return guard.action === 'Reject'
      ? { ...guardRefusal(guard.refusal), detail }
      : { body: masked, detail }
  }
  if (guard.type === 'webhook') return askWebhook(guard, request)
  const isFlagged = await guard.isFlagged(
    requestTexts(body, format.ownTexts),
    call.context.exchange,
  )
  return isFlagged ? guardRefusal(guard.refusal) : { body }
}

async function askWebhook(
  guard: WebhookGuard,
  { call, format, body }: GuardedRequest,
): Promise<Outcome> {
  const texts = requestTexts(body, format.ownTexts)
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
      const masked = withRequestTexts(body, format, action.texts)
      if (masked === undefined) throw guardFailure('the mask does not fit the request')
      return { body: masked }
    }
  }
}
