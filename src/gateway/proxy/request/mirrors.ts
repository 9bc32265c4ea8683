import { GatewayError } from '../../../ground/errors/index.ts'
import type { RequestContext } from './request-context.ts'
import type { GatewayRuntime } from './runtime.ts'

/** Starts the mirrors of the rule, if it has any. A tunnel is not mirrored. */
export function startMirrors(
  context: RequestContext,
  runtime: GatewayRuntime,
): undefined | Promise<undefined> {
  const { placement } = context
  if (placement === undefined || placement.rule.mirrors.length === 0) return undefined
  if (context.tunnel !== undefined) return undefined
  return sendMirrors(context, runtime)
}

async function sendMirrors(context: RequestContext, runtime: GatewayRuntime): Promise<undefined> {
  const { placement, exchange } = context
  if (placement === undefined) return
  for (const mirror of placement.rule.mirrors) {
    const { numerator, denominator } = mirror.filter
    if (runtime.random() * denominator >= numerator) continue
    try {
      const found = await runtime.kinds.resolve(placement, mirror, exchange.request)
      if (!context.over) exchange.mirror(found.address, found.race)
    } catch (error) {
      // A mirror that cannot be resolved is skipped, because mirrors must not affect the request.
      if (!(error instanceof GatewayError)) throw error
    }
  }
}
