/** Applies the present rules and approvals to the item that a recorded request used, for simulations. */
import type { LearnedValue } from '../../../../ground/exchange/learned.ts'
import type { JudgedUse, RecordedUse } from '../../../proxy/request/backend-kind.ts'
import type { ResolveContext } from '../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { mcpStepOf } from '../policy/apply.ts'
import { accessAt, type McpBackend, pinKey } from './target/targets.ts'

export function judgeUse(
  { exchange, placement }: RequestContext,
  resolve: ResolveContext,
  { targets, pins }: McpBackend,
  use: RecordedUse,
): JudgedUse {
  const { method, target, type, name, digest } = use
  const entry = targets.find((one) => one.target.name === target)
  if (entry === undefined) {
    const reason = `there is no target ${target}`
    return { refusal: { reason, step: undefined }, otherSettings: '' }
  }
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
  const { pinning: _, ...settings } = entry.target
  const otherSettings = JSON.stringify([settings, step?.otherSettings])
  const because = (why: string) => `${method} of ${type} ${name}: ${why}`
  const refused = step?.mcp?.refusal(exchange, { method, item, isListed: false })
  if (refused !== undefined) return { refusal: { reason: because(refused), step }, otherSettings }
  const list = type === 'tool' ? 'tools' : 'prompts'
  const approved = pins.get(pinKey({ target, list }))
  const isWithheld = approved !== undefined && digest !== undefined && approved.get(name) !== digest
  const reason = because('this version is not approved')
  return { refusal: isWithheld ? { reason, step: undefined } : undefined, otherSettings }
}
