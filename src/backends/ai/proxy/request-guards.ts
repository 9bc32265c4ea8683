/**
 * Guards of requests, in order: each sees what those before it have made of the texts. They are asked
 * once for a request: where another provider is asked after the first, and the same policy holds for
 * it, what they said still stands.
 */

import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { Guard, WebhookGuard } from '../guards/bound.ts'
import { guardFailure } from '../guards/guard-check.ts'
import { maskTexts } from '../guards/parts-masker.ts'
import { needPlainKeys } from '../guards/plain-keys.ts'
import { requestTexts, withRequestTexts } from '../guards/slots.ts'
import { mapRequestTexts } from '../guards/texts.ts'
import type { JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import type { SettledBody } from '../request/body.ts'
import type { ModelCall } from './model-call.ts'
import { guardRefusal } from './own-answers.ts'

/** The body that may go on, or the refusal; undefined where the request is over meanwhile. */
export async function guardRequest(
  context: RequestContext,
  call: ModelCall,
  route: ReadRouteType,
  settled: SettledBody,
): Promise<SettledBody | RespondVerdict | undefined> {
  const { policy } = call
  const guards = policy?.requestGuards ?? []
  if (guards.length === 0) return settled
  const before = call.guarded
  if (before !== undefined && before.policy === policy && before.route === route) {
    return again(settled, before.body)
  }
  needPlainKeys(settled.body, route)
  if (route === 'Embeddings') needTexts(settled.body.input)
  let body = settled.body
  for (const guard of guards) {
    const outcome = await run(guard, { context, call, route, body })
    if (context.over) return undefined
    const action = 'kind' in outcome ? 'Reject' : outcome.body === body ? 'Allow' : 'Mask'
    call.checks.push({ phase: 'Request', guard: guard.type, action })
    if ('kind' in outcome) return outcome
    body = outcome.body
  }
  call.guarded = { policy, route, body: body === settled.body ? undefined : body }
  return again(settled, call.guarded.body)
}

/** Numbers of tokens say the same as a text, and no guard can read them. @throws LlmError 400 */
function needTexts(input: unknown): void {
  const isText = typeof input === 'string'
  if (isText || (Array.isArray(input) && input.every((one) => typeof one === 'string'))) return
  throw new LlmError(400, 'input: only texts can be guarded')
}

/**
 * Only the model may be another than when the guards looked. What they saw is written anew even where
 * nothing was masked: of a key that is there twice, they and the provider may see different ones.
 */
function again(settled: SettledBody, guarded: JsonObject | undefined): SettledBody {
  if (guarded === undefined) return { ...settled, isChanged: true }
  return { ...settled, body: { ...guarded, model: settled.model }, isChanged: true }
}

interface Look {
  readonly context: RequestContext
  readonly call: ModelCall
  readonly route: ReadRouteType
  readonly body: JsonObject
}

type Outcome = { readonly body: JsonObject } | RespondVerdict

async function run(guard: Guard, look: Look): Promise<Outcome> {
  const { body, route, context, call } = look
  if (guard.type === 'regex') {
    let count = 0
    const masked = mapRequestTexts(body, route, (texts) => {
      const outcome = maskTexts(guard.mask, texts)
      count += outcome.count
      return outcome.texts
    })
    // A match may look like what would replace it.
    return count > 0 && guard.action === 'Reject' ? guardRefusal(guard.refusal) : { body: masked }
  }
  try {
    if (guard.type === 'webhook') return await askWebhook(guard, look)
    const isFlagged = await guard.ask(requestTexts(body, route), context.exchange)
    return isFlagged ? guardRefusal(guard.refusal) : { body }
  } catch (error) {
    call.checks.push({ phase: 'Request', guard: guard.type, action: 'Fail' })
    throw error
  }
}

async function askWebhook(
  guard: WebhookGuard,
  { context, call, route, body }: Look,
): Promise<Outcome> {
  const texts = requestTexts(body, route)
  const { headers } = context.exchange.request
  // `forwardHeaderMatches` selects among all headers of the client, credentials included.
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
