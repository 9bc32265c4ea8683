import { GatewayError } from '../../../errors/index.ts'

/** What a guard has decided, for metrics. */
export interface GuardCheck {
  readonly phase: 'Request' | 'Response'
  readonly guard: 'regex' | 'webhook' | 'moderation'
  /** `Fail`: it could not be asked, and what it guards was refused. */
  readonly action: 'Allow' | 'Mask' | 'Reject' | 'Fail'
}

export function guardFailure(detail: string): GatewayError {
  return new GatewayError('prompt_guard_failed', detail)
}
