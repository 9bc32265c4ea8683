/** The response to a message that a guard refuses. */
import type { FieldPair, RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import type { Decision } from '../guards/ask-guard.ts'
import type { PlacedGuard } from './bind-guard.ts'

/** Tells the SDKs of vendors A and C not to wait and repeat a request to a language model. */
export const noRetryHeader = ['x-should-retry', 'false'] as const

/** The name of the guard that has refused the request, if its policy shows it. */
const guardHeader = 'x-sluice-guard'

/** Returns the response of a guard that rejects; `given` by its service takes precedence. */
export function guardRefusal(
  { guard, settings: { refusal, name = guard.type } }: PlacedGuard,
  given?: Decision<unknown>['given'],
): RespondVerdict {
  const { status, message, showsGuard } = refusal
  const shown: FieldPair[] = showsGuard === true ? [[guardHeader, name]] : []
  return {
    kind: 'respond',
    status: given?.status ?? status,
    // The same request would be refused again.
    headers: [['content-type', 'text/plain'], noRetryHeader, ...shown],
    body: given?.body ?? message,
    reason: 'Guardrail',
  }
}
