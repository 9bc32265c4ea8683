/** Guards of requests, in order: each sees what those before it have made of the texts. */
import { GatewayError } from '../../errors.ts'
import type { RespondVerdict } from '../../exchange/exchange.ts'
import { mapRequestTexts } from '../../llm/guards/texts.ts'
import type { Guard } from '../../llm/policy/step.ts'
import type { ReadRouteType } from '../../llm/providers/provider.ts'
import type { SettledBody } from '../../llm/request/body.ts'
import type { PhaseContext } from '../phases.ts'
import type { Walk } from '../walk.ts'
import type { ModelCall } from './model-call.ts'
import { guardRefusal } from './own-answers.ts'

/** The body that may go on, or the refusal. */
export async function guardRequest(
  walk: Walk,
  { policy }: ModelCall,
  route: ReadRouteType,
  settled: SettledBody,
  context: PhaseContext,
): Promise<SettledBody | RespondVerdict> {
  let current = settled
  for (const guard of policy?.requestGuards ?? []) {
    const outcome = await runGuard(guard, walk, route, current, context)
    if ('kind' in outcome) return outcome
    current = outcome
  }
  return current
}

function runGuard(
  guard: Guard,
  _walk: Walk,
  route: ReadRouteType,
  settled: SettledBody,
  _context: PhaseContext,
): SettledBody | RespondVerdict | Promise<SettledBody | RespondVerdict> {
  if (guard.type === 'regex') return regexGuard(guard, route, settled)
  throw new GatewayError('policy_unenforceable', `a guard of type ${guard.type}`)
}

function regexGuard(
  { mask, action, refusal }: Guard & { type: 'regex' },
  route: ReadRouteType,
  settled: SettledBody,
): SettledBody | RespondVerdict {
  let hits = 0
  const body = mapRequestTexts(settled.body, route, (text) => {
    const masked = mask.apply(text)
    hits += masked.count
    return masked.text
  })
  if (hits === 0) return settled
  return action === 'Reject' ? guardRefusal(refusal) : { ...settled, body, isChanged: true }
}
