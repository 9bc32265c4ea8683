/** Results of guards, for metrics and for the record of the decision. They contain no part of a text. */
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { GuardCheck } from '../guards/guard-call.ts'
import type { Guard } from '../policy/bind-guard.ts'
import type { ModelCall } from './model-call.ts'

/** A guard and its position in the policy. */
interface PlacedGuard {
  readonly phase: GuardCheck['phase']
  readonly guard: Guard
  readonly at: number
}

/** Records what a guard decided. `finding` says why. Returns the text of the record. */
export function recordCheck(
  call: ModelCall,
  placed: PlacedGuard,
  action: GuardCheck['action'],
  finding?: string,
): string | undefined {
  const { phase, guard, at } = placed
  call.checks.push({ phase, guard: guard.type, action, step: call.policy, at })
  if (action === 'Allow' || call.context.over) return undefined
  const text = textOf(placed, action, finding)
  const source = { step: call.policy, isResponse: action === 'Reject' }
  addNote(call.context.exchange, 'backend.ai', text, source)
  return text
}

/** Records what masks have replaced in a streamed response. Called once the exchange is over. */
export function noteMatches({ policy, stream, context }: ModelCall): void {
  if (stream === undefined || policy === undefined) return
  const { findings } = stream
  for (const [at, guard] of policy.responseGuards.entries()) {
    const finding = findings[at]?.text
    if (finding === undefined) continue
    const text = textOf({ phase: 'Response', guard, at }, 'Mask', finding)
    addNote(context.exchange, 'backend.ai', text, { step: policy })
  }
}

function textOf({ phase, guard, at }: PlacedGuard, action: string, finding?: string): string {
  const text = `${phase.toLowerCase()} guard ${at} (${guard.type}): ${action}`
  return finding === undefined ? text : `${text}, ${finding}`
}
