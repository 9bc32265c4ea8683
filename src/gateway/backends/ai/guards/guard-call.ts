/** Calls to the services that guards use, and the results that guards report. */

import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { Callouts, HttpCallout } from '../../../../ground/exchange/exchange.ts'
import type { Step } from '../../../policies/define.ts'

/**
 * What a guard did. `Audit`: it would have masked or rejected the message, but only reports it. `Fail`: it could not
 * decide, so that the message was rejected. `FailOpen`: it could not decide, and the message passed.
 */
export type GuardAction = 'Allow' | 'Mask' | 'Reject' | 'Audit' | 'Fail' | 'FailOpen'

/** The result of a guard, for metrics. */
export interface GuardCheck {
  readonly phase: 'Request' | 'Response'
  /** Type of the guard, such as `regex`. */
  readonly guard: string
  readonly action: GuardAction
  /** Names of the rules that matched. */
  readonly matches?: readonly string[] | undefined
  /** The step that has the guard, and the position of the guard in its list. */
  readonly step: Step | undefined
  readonly at: number
}

export const guardFailure = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('prompt_guard_failed', detail, cause)

/** Maximum number of rules that the record of a decision names, and of characters of each name. */
export const maxRules = 16
const maxRuleLength = 64

/**
 * Returns the names of rules as a service gives them, each once. Other characters than those of names become `_`, so that
 * a service cannot put a text into records and metrics.
 */
export function ruleNames(names: Iterable<string>): readonly string[] {
  const plain = Array.from(new Set(names), (name) =>
    name.slice(0, maxRuleLength).replace(/[^A-Za-z0-9_./:-]+/g, '_'),
  )
  return [...new Set(plain)].slice(0, maxRules)
}

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
