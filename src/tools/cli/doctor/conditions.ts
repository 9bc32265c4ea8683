/** Findings from the conditions of objects, which are those that `sluice status` shows. */
import { controllerName } from '../../../ground/model/api-names.ts'
import { type ObjectRef, objectText } from '../../../ground/model/names.ts'
import { checkStatus, isRefusal } from '../../../past/explain/health.ts'
import type { Finding } from './finding.ts'

/** Options with which `sluice` commands find the state, such as `--log-file FILE`. */
export type SourceOptions = string

/** Returns a finding for each condition that reports a problem. */
export function conditionFindings(
  ref: ObjectRef,
  status: object | undefined,
  source: SourceOptions,
): Finding[] {
  const name = ref.namespace === '' ? ref.name : `${ref.namespace}/${ref.name}`
  const advice = `sluice explain ${ref.kind} ${name} ${source}`.trimEnd()
  return checkStatus(status).bad.map(({ place, condition }) => {
    const { type, status: value, reason, message } = condition
    const where = place === '' ? objectText(ref) : `${objectText(ref)}, ${place}`
    return {
      severity: isRefusal(condition) ? 'error' : 'warning',
      subject: where,
      message: `${type} is ${value} (${reason}): ${message}`,
      advice,
    }
  })
}

/** Returns the parts of a status that this controller has written, without those of other controllers. */
export function ownStatus(
  status: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> | undefined {
  if (status === undefined) return undefined
  const isOwn = (entry: { readonly controllerName?: string }) =>
    entry.controllerName === undefined || entry.controllerName === controllerName
  const own = Object.entries(status).map(([field, value]) => [
    field,
    Array.isArray(value) ? value.filter(isOwn) : value,
  ])
  return Object.fromEntries(own)
}
