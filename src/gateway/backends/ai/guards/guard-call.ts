/** Calls to the services that guards use, and the results that guards report. */

import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { Callouts, HttpCallout } from '../../../../ground/exchange/exchange.ts'
import type { Step } from '../../../policies/define.ts'

/** The result of a guard, for metrics. */
export interface GuardCheck {
  readonly phase: 'Request' | 'Response'
  readonly guard: 'regex' | 'webhook' | 'moderation'
  /** `Fail` means that the guard could not decide, so the message was rejected. */
  readonly action: 'Allow' | 'Mask' | 'Reject' | 'Fail'
  /** The step that has the guard, and the position of the guard in its list. */
  readonly step: Step | undefined
  readonly at: number
}

export const guardFailure = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('prompt_guard_failed', detail, cause)

/** Time limit for the whole response, unless a policy of the service sets another one. */
const timeoutMs = 10_000
/** Maximum size of a response; high because a response that masks texts repeats the whole conversation. */
const maxResponseBytes = 32 * 1024 * 1024

export const jsonType = ['content-type', 'application/json'] as const

export const bytesOf = (body: JsonObject): Uint8Array => Buffer.from(JSON.stringify(body))

/** Returns the body of a successful response. @throws GatewayError prompt_guard_failed */
export async function callGuard(
  callouts: Callouts,
  request: Pick<HttpCallout, 'target' | 'path' | 'headers' | 'body'>,
): Promise<string> {
  try {
    const response = await callouts.http({
      ...request,
      method: 'POST',
      subtype: 'Guardrail',
      timeoutMs,
      maxResponseBytes,
    })
    if (response.status < 200 || response.status > 299) {
      throw guardFailure(`it answered ${response.status}`)
    }
    return Buffer.from(response.body).toString('utf8')
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code === 'prompt_guard_failed') throw error
    throw guardFailure(error.message, error)
  }
}
