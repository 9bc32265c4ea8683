/** Says what would have to change for a recorded request to get another outcome. */

import { readDurationText } from '../../../ground/base/duration.ts'
import { type ErrorCode, errorCatalogue } from '../../../ground/errors/index.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import { backendText, ruleText } from '../decisions/text.ts'
import type { ExplainedStep } from './explained-decision.ts'

/** Names the object and field that decided, the limit that was reached, or the endpoint that failed. */
export function requiredChange(
  decision: RecordedDecision,
  steps: readonly ExplainedStep[],
): string {
  const { response } = decision
  if (response.ending === 'client-closed') {
    return 'no change of the configuration; the client closed the connection before the response was complete'
  }
  const step = steps.find(({ verdict }) => verdict === 'answer')
  if (step !== undefined) return stepChange(decision, step)
  const code = codeOf(decision)
  if (code !== undefined) return errorChange(decision, code)
  const backend = backendText(decision.route)
  if (response.reason !== 'Upstream')
    return response.detail ?? `the gateway answered (${response.reason})`
  if (response.status >= 400)
    return `the response of ${backend ?? 'the backend'}, which answered ${response.status}`
  return `nothing refused the request; ${backend ?? 'the backend'} answered ${response.status}`
}

function stepChange({ time, response }: RecordedDecision, step: ExplainedStep): string {
  const reason = response.detail ?? step.reason ?? response.error
  const why = reason === undefined ? '' : ` (${reason})`
  const [, wait] = /admits again in ([0-9a-z ]+)/.exec(reason ?? '') ?? []
  const change = `${fieldOf(step)}${why}`
  if (wait === undefined) return change
  const passes = Date.parse(time) + response.durationMs + readDurationText(wait)
  return `wait until ${new Date(passes).toISOString()}, or change ${change}`
}

/** The field of the object that the step comes from. */
function fieldOf({ step, object, generation }: ExplainedStep): string {
  if (object === undefined) return step
  const version = generation === undefined ? '' : `, generation ${generation}`
  const isPolicy = object.startsWith('GatewayPolicy ')
  const [, field = step] = step.split('.')
  return `${isPolicy ? `spec.${step}` : field} of ${object}${version}`
}

/** Returns the code of the error that ended the request; undefined if there was none. */
function codeOf({ response: { error, reason } }: RecordedDecision): ErrorCode | undefined {
  if (error === undefined) return undefined
  const codes = Object.keys(errorCatalogue) as ErrorCode[]
  return codes.find((code) => {
    const row = errorCatalogue[code]
    return row.reason === reason && error.includes(row.text)
  })
}

function errorChange(decision: RecordedDecision, code: ErrorCode): string {
  const { response, request, route } = decision
  const error = response.error ?? code
  const rule = ruleText(route) ?? 'the route'
  if (code === 'route_not_found') {
    return `no rule of listener ${route.listener} of Gateway ${route.gateway} matches ${request.method} ${request.path} of host ${request.host}`
  }
  if (code === 'listener_not_found') {
    return `no listener on port ${request.port} takes the host ${request.host}`
  }
  if (code === 'rule_unusable' || code === 'filter_failed') return `${rule}: ${error}`
  const { source } = errorCatalogue[code]
  if (source === 'upstream') return `the backend ${backendText(route) ?? rule}: ${error}`
  if (source === 'downstream') return `the request: ${error}`
  return `the configuration of ${route.backend ?? rule}: ${error}`
}
