/** Judges what a recorded request has used by the present rules and approvals, for simulations. */
import type { LearnedValue } from '../../../../ground/exchange/learned.ts'
import type { RecordedRefusal, RecordedUse } from '../../../proxy/request/backend-kind.ts'
import type { ResolveContext } from '../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { mcpStepOf } from '../policy/apply.ts'
import { accessAt, type McpBackend, pinKey } from './target/targets.ts'

export function refusalOfUse(
  { exchange, placement }: RequestContext,
  resolve: ResolveContext,
  { targets, pins }: McpBackend,
  use: RecordedUse,
): RecordedRefusal | undefined {
  const { method, target, type, name, digest } = use
  const entry = targets.find((one) => one.target.name === target)
  if (entry === undefined) return { reason: `there is no target ${target}`, step: undefined }
  const step = placement && mcpStepOf(accessAt(placement, resolve, entry).policies)
  const item = { type, target, name }
  exchange.learned.describeMcp(() => ({
    method,
    methodName: method,
    target,
    [type]: {
      name,
      target,
      get arguments(): LearnedValue | undefined {
        return use.onArguments()
      },
    },
  }))
  const refusal = step?.mcp?.refusal(exchange, { method, item, isListed: false })
  if (refusal !== undefined) return { reason: `${method} of ${type} ${name}: ${refusal}`, step }
  const list = type === 'tool' ? 'tools' : 'prompts'
  const approved = pins.get(pinKey({ target, list }))
  if (approved === undefined || digest === undefined || approved.get(name) === digest) {
    return undefined
  }
  return { reason: `${method} of ${type} ${name}: this version is not approved`, step: undefined }
}
