/** Limits and budgets of a request to a model. */
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { andThen } from '../../../../ground/base/and-then.ts'
import { budgetsOf } from '../../../../ground/exchange/budgets.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { checkTokenLimits, tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import type { ModelCall } from './model-call.ts'
import { actsOnResponse } from './response-guards.ts'
import { reserveSpend } from './spend.ts'

type Result = RespondVerdict | undefined

/**
 * Checks token limits, and reserves in budgets what the request may cost. Returns a refusal if one has too little. Only
 * the first call for an attempt has an effect.
 */
export function admitCall(call: ModelCall, outgoing: OutgoingRequest): Result | Promise<Result> {
  if (call.judged === outgoing) return undefined
  call.judged = outgoing
  const { exchange } = call.context
  // Limits do not apply to token counts: clients use them to stay below the limits.
  const isLimited = outgoing.format.operation !== 'count_tokens'
  const limits = isLimited ? tokenLimitsOf(exchange) : undefined
  const budgets = isLimited ? budgetsOf(exchange) : undefined
  if (limits !== undefined || budgets !== undefined || actsOnResponse(call)) {
    refuseBackground(call, outgoing)
  }
  const spent = limits && checkTokenLimits(exchange, call.isAdmitted)
  return budgets === undefined ? spent : andThen(spent, reserveUnless, call, outgoing)
}

/** Reserves what the request may cost, unless token limits have refused it. */
function reserveUnless(
  spent: Result,
  call: ModelCall,
  outgoing: OutgoingRequest,
): Result | Promise<Result> {
  if (call.context.over || spent !== undefined) return spent
  return reserveSpend(call, outgoing, call.bodyBytes)
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
