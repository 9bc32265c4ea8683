/** Sessions over a WebSocket: the upgrade goes to the provider, and what is used is counted. */

import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { tokenLimitsOf } from '../../../exchange/rate-limits.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { inputWithCache } from '../chat.ts'
import { LlmError } from '../llm-error.ts'
import { unsupported } from '../providers/unsupported.ts'
import { resolveAlias } from '../request/aliases.ts'
import { realtimeReader, sumOfUsage } from '../serve/realtime.ts'
import type { ModelCall } from './model-call.ts'
import { apiVersion, overridePath } from './provider-path.ts'

/** @throws LlmError 400 where the provider has no sessions, or the request wants none. */
export async function prepareRealtime(
  context: RequestContext,
  call: ModelCall,
): Promise<RespondVerdict | undefined> {
  const { exchange } = context
  const { request } = exchange
  const { provider, policy } = call
  if (provider === undefined) return undefined
  if (!/^websocket$/i.test(request.upgrade?.trim() ?? '')) {
    throw new LlmError(400, 'a realtime session is an upgrade to a WebSocket')
  }
  const { config } = provider.provider
  const target = provider.vendor.realtimePath?.(config)
  if (target === undefined) {
    throw unsupported('Realtime', provider.vendor.systemName)
  }
  const query = new URLSearchParams(request.query)
  const named = config.model ?? config.deploymentName ?? query.get('model')
  const model = named === null ? undefined : resolveAlias(named, policy?.config.modelAliases)
  const spent = await tokenLimitsOf(exchange)?.check(exchange)
  if (context.over || spent !== undefined) return spent
  if (!overridePath(context, call)) setTarget(context, target, model)
  // Compressed messages could not be read; without an offer nobody compresses.
  request.headers.remove('sec-websocket-extensions')
  exchange.learned.llm = {
    ...(model !== undefined && { requestModel: model }),
    provider: provider.vendor.systemName,
    streaming: true,
  }
  countUsage(context, call)
  return undefined
}

/** The path of the provider with the query of the client, whose model is that of the provider. */
function setTarget(
  { exchange: { request } }: RequestContext,
  target: string,
  model: string | undefined,
): void {
  const [path = '', own = ''] = target.split('?')
  const query = new URLSearchParams(request.query)
  const fixed = new URLSearchParams(own)
  query.delete(apiVersion)
  for (const [name, value] of fixed) query.set(name, value)
  if (fixed.has('deployment')) query.delete('model')
  else if (model !== undefined && query.has('model')) query.set('model', model)
  else if (model !== undefined && !query.has('intent') && !query.has('call_id')) {
    query.set('model', model)
  }
  request.path = path
  request.query = query.size === 0 ? undefined : query.toString()
}

/** A long session is charged as it goes, so that limits feel it before it ends. */
function countUsage({ exchange }: RequestContext, call: ModelCall): void {
  exchange.watchTunnel(
    realtimeReader((usage) => {
      call.learn({ usage: sumOfUsage(call.facts.usage, usage) })
      tokenLimitsOf(exchange)?.charge(exchange, inputWithCache(usage) + usage.output)
    }, exchange.bufferLimit),
  )
}
