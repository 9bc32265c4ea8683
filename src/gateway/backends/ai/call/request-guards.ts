/**
 * Runs the guards of a request in order; each sees the texts as the previous one left them. Guards that read the same
 * texts are asked at once. They run once per request: for another provider with the same policy, their result is used
 * again.
 */

import { patternReplacement } from '../../../../engines/core/index.ts'
import { type ClientFormat, chatFormatOf } from '../../../../engines/messages/format.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { MatchCounts, type OnMatch } from '../../../../engines/messages/mask/match-counts.ts'
import { maskTexts, replaceMatches } from '../../../../engines/messages/mask/parts-masker.ts'
import { needPlainKeys } from '../../../../engines/messages/mask/plain-keys.ts'
import type { RegexGuard } from '../../../../engines/messages/mask/regex-guard.ts'
import { jsonAware, scopedMap } from '../../../../engines/messages/mask/scoped-texts.ts'
import { requestTexts, withRequestTexts } from '../../../../engines/messages/mask/slots.ts'
import { mapRequestTexts } from '../../../../engines/messages/mask/texts.ts'
import type { TextsMap } from '../../../../engines/messages/mask/texts-map.ts'
import type { SettledBody } from '../../../../engines/messages/request/body.ts'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { ownerDigest } from '../../../principal/principal.ts'
import { askGuard, type Decision } from '../guards/ask-guard.ts'
import { concurrentGroups, isRegex, type PlacedGuard, sampled } from '../policy/bind-guard.ts'
import { guardRefusal } from '../policy/guard-refusal.ts'
import { recordCheck } from './guard-checks.ts'
import type { GuardedBody, ModelCall } from './model-call.ts'
import { PlaceholderRestorer, Placeholders } from './placeholders.ts'

/** Runs the guards, of which at least one may act. Returns the guarded body, or the response of a guard that rejects; undefined if the request has ended. */
export async function guardRequest(
  call: ModelCall,
  format: ClientFormat,
  settled: SettledBody,
): Promise<SettledBody | RespondVerdict | undefined> {
  const { policy } = call
  const before = call.guarded
  if (before !== undefined && before.policy === policy && before.format === format) {
    return withGuarded(settled, before)
  }
  needPlainKeys(settled.body, format.ownTexts)
  const problem = format.unguardable?.(settled.body)
  if (problem !== undefined) throw new LlmError(400, problem)
  const placeholders = placeholdersFor(call, settled.body)
  if (passesAsBytes(call, format, settled)) {
    prepareRestorer(call, format, placeholders)
    return settled
  }
  const judged = await runAll(call, format, settled.body, placeholders)
  if (judged === undefined || 'kind' in judged) return judged
  prepareRestorer(call, format, placeholders)
  const changed = judged.body === settled.body ? undefined : judged.body
  call.guarded = { policy, format, body: changed, isUnambiguous: false }
  return withGuarded(settled, call.guarded)
}

/** Lets audits read a request, which passes as it is. They run once per request, unless the policy differs. */
export async function auditRequest(
  call: ModelCall,
  format: ClientFormat,
  body: JsonObject,
): Promise<void> {
  const { policy } = call
  if (call.audited === policy) return
  call.audited = policy
  try {
    await runAll(call, format, body)
  } catch (error) {
    // The request is in a form that guards cannot read.
    if (!(error instanceof LlmError)) throw error
    for (const placed of policy?.requestGuards ?? []) {
      recordCheck(call, placed, 'FailOpen', { detail: 'the request cannot be read' })
    }
  }
}

async function runAll(
  call: ModelCall,
  format: ClientFormat,
  before: JsonObject,
  placeholders?: Placeholders,
): Promise<{ readonly body: JsonObject } | RespondVerdict | undefined> {
  let body = before
  for (const group of concurrentGroups(sampled(call.policy?.requestGuards ?? []))) {
    const guarded = { call, format, body, placeholders }
    const results = await Promise.allSettled(group.map((placed) => run(placed, guarded)))
    for (const [at, placed] of group.entries()) {
      const result = results[at]
      if (result?.status !== 'fulfilled') {
        recordCheck(call, placed, 'Fail')
        throw result?.reason
      }
      if (call.context.over) return undefined
      const { action, given, masked } = result.value
      const text = recordCheck(call, placed, action, result.value)
      if (action === 'Reject') {
        return { ...guardRefusal(placed, given), ...(text !== undefined && { detail: text }) }
      }
      body = masked ?? body
    }
  }
  return { body }
}

/** Returns the placeholders of a request, including those that it contains; undefined if no guard is reversible. */
function placeholdersFor(call: ModelCall, body: JsonObject): Placeholders | undefined {
  if (call.policy?.restores !== true) return undefined
  const owner = ownerDigest(call.context.exchange)
  const placeholders = new Placeholders(call.placeholders.seal, owner)
  const { clientBody } = call
  const text =
    clientBody !== undefined && 'bytes' in clientBody
      ? bufferOf(clientBody.bytes).toString('latin1')
      : JSON.stringify(body)
  placeholders.openIn(text)
  return placeholders
}

/** Prepares the call to restore placeholders in the response, if guards can change responses of this format. */
function prepareRestorer(
  call: ModelCall,
  format: ClientFormat,
  placeholders: Placeholders | undefined,
): void {
  const { policy } = call
  const texts = chatFormatOf(format) === undefined ? undefined : placeholders?.texts
  const isNeeded = policy !== undefined && texts !== undefined && texts.size > 0
  call.restorer = isNeeded ? new PlaceholderRestorer(policy, texts) : undefined
}

/** Lets a request pass with the client's bytes if no guard finds anything in them. */
function passesAsBytes(call: ModelCall, format: ClientFormat, settled: SettledBody): boolean {
  const { policy, clientBody } = call
  const chain = settled.isChanged ? undefined : policy?.requestChain
  if (policy === undefined || chain === undefined || clientBody === undefined) return false
  if (format.core === undefined || !('bytes' in clientBody)) return false
  if (!chain.isHarmless(clientBody.bytes, format.core)) return false
  for (const placed of policy.requestGuards) recordCheck(call, placed, 'Allow')
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
  readonly placeholders: Placeholders | undefined
}

async function run(
  { guard, settings, scope }: PlacedGuard,
  { body, call, format, placeholders }: GuardedRequest,
): Promise<Decision<JsonObject>> {
  if (!isRegex(guard)) {
    const { exchange } = call.context
    const { credentials } = call
    const { headers } = exchange.request
    const question = {
      direction: 'request' as const,
      texts: requestTexts(body, format.ownTexts, scope),
      exchange,
      // `forwardHeaderMatches` applies to all headers of the client, credentials included.
      headers: { getAll: (name: string) => [...credentials.getAll(name), ...headers.getAll(name)] },
    }
    return askGuard(guard, settings, question, (texts) =>
      withRequestTexts(body, format, texts, scope),
    )
  }
  const counts = new MatchCounts()
  const isReversible = guard.action === 'Reversible' && placeholders !== undefined
  const mask: TextsMap = isReversible
    ? (texts) => maskReversibly(guard, texts, placeholders, counts.add)
    : (texts) => maskTexts(guard.mask, texts, counts.add).texts
  const masked = mapRequestTexts(body, scopedMap(jsonAware(mask), scope), format.ownTexts)
  // Matches are counted instead of comparing texts, because a match may equal its replacement.
  const detail = counts.textOf(guard.mask)
  const matches = counts.namesOf(guard.mask)
  if (settings.isAudit === true) {
    return { action: detail === undefined ? 'Allow' : 'Audit', detail, matches }
  }
  if (guard.action === 'Reject' && detail !== undefined) {
    return { action: 'Reject', detail, matches }
  }
  return masked === body ? { action: 'Allow' } : { action: 'Mask', masked, detail, matches }
}

/** Masks texts with placeholders. Placeholders in the texts stay. A match without a placeholder gets the usual mask. */
function maskReversibly(
  guard: RegexGuard,
  texts: readonly string[],
  placeholders: Placeholders,
  onMatch: OnMatch,
): readonly string[] {
  const replacementOf = (rule: number, matched: string): string | undefined => {
    if (guard.isExtraRule(rule)) {
      // A text in this form that is none of ours may have anything in it.
      if (placeholders.has(matched) || !guard.findsIn(matched)) return undefined
      return placeholders.add('TEXT', matched) ?? patternReplacement
    }
    const mask = guard.mask.replacementOf(rule)
    return placeholders.add(mask.slice(1, -1).toUpperCase(), matched) ?? mask
  }
  return replaceMatches(guard.mask, texts, replacementOf, onMatch).texts
}
