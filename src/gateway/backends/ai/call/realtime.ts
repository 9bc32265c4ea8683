/** Realtime sessions: passes the upgrade to a WebSocket on to the provider and counts the usage. */

import { inputWithCache, type Usage } from '../../../../engines/messages/chat.ts'
import { readRealtimeUsage, sumOfUsage } from '../../../../engines/messages/common/usage.ts'
import { WebSocketTexts } from '../../../../engines/messages/framing/websocket.ts'
import { field, objectAt, parseJson, stringAt } from '../../../../engines/messages/json/json.ts'
import { LlmError, unsupportedRoute } from '../../../../engines/messages/llm-error.ts'
import { modelOf } from '../../../../engines/messages/request/body.ts'
import { pinnedModel } from '../../../../engines/messages/request/outgoing.ts'
import { budgetsOf } from '../../../../ground/exchange/budgets.ts'
import type { RequestHead, RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { checkTokenLimits, tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import { isAudit } from '../policy/bind-guard.ts'
import { needAllowedModel } from './allowed-models.ts'
import { recordCheck } from './guard-checks.ts'
import { apiVersion, type ModelCall } from './model-call.ts'
import { reserveSpend, UsageSpend } from './spend.ts'

/** @throws LlmError 400 if the provider has no sessions or the request is not an upgrade. */
export async function prepareRealtime(call: ModelCall): Promise<RespondVerdict | undefined> {
  const { context } = call
  const { exchange } = context
  const { request } = exchange
  const { provider, policy } = call
  if (provider === undefined) return undefined
  if (!/^websocket$/i.test(request.upgrade?.trim() ?? '')) {
    throw new LlmError(400, 'a realtime session is an upgrade to a WebSocket')
  }
  const { config } = provider.provider
  const target = provider.vendor.realtimePath?.(config)
  if (target === undefined) throw unsupportedRoute('Realtime', provider.vendor.systemName)
  needNoGuards(call)
  const query = new URLSearchParams(request.query)
  const named = pinnedModel(config) ?? query.get('model') ?? undefined
  const model = modelOf(named, policy?.config.modelAliases)
  needAllowedModel(call, model, query.get('model') ?? undefined)
  if (model !== undefined) call.addDetails({ model })
  // Before the limits, whose descriptors may read it.
  exchange.learned.llm = {
    ...(model !== undefined && { requestModel: model }),
    provider: provider.vendor.systemName,
    streaming: true,
  }
  const spent = (await checkTokenLimits(exchange)) ?? (await reserveSpend(call, undefined, 0))
  if (context.over || spent !== undefined) return spent
  if (!call.overridePath()) setTarget(request, target, model)
  // Compressed messages could not be read, so the offer of compression is removed.
  request.headers.remove('sec-websocket-extensions')
  countUsage(call)
  return undefined
}

/** @throws LlmError 403 if a guard may mask or refuse texts, because guards cannot read the texts of a session. */
function needNoGuards(call: ModelCall): void {
  const { requestGuards = [], responseGuards = [] } = call.policy ?? {}
  const guards = [...requestGuards, ...responseGuards]
  if (!guards.every(isAudit)) {
    throw new LlmError(403, 'realtime sessions are refused, because guards cannot read them')
  }
  for (const audit of guards) {
    recordCheck(call, audit, 'FailOpen', { detail: 'realtime sessions cannot be read' })
  }
}

/** Sets the provider's path and model; other parameters of the client's query are kept. */
function setTarget(request: RequestHead, target: string, model: string | undefined): void {
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

/** Reads usage from the bytes of the session and charges limits at once, because a session may be long. */
function countUsage(call: ModelCall): void {
  const { exchange } = call.context
  const texts = new WebSocketTexts((text) => {
    const usage = usageIn(text)
    if (usage === undefined) return
    call.addDetails({ usage: sumOfUsage(usage, call.details.usage) })
    tokenLimitsOf(exchange)?.charge(exchange, inputWithCache(usage) + usage.output)
    budgetsOf(exchange)?.charge(new UsageSpend(call, usage))
  }, exchange.bufferLimit)
  exchange.watchTunnel((bytes, start, end) => texts.push(bytes, start, end))
}

/** Returns the usage of one response (`response.done`); undefined for other events. */
function usageIn(text: string): Usage | undefined {
  if (!text.includes('"response.done"')) return undefined
  const event = parseJson(text)
  if (stringAt(event, 'type') !== 'response.done') return undefined
  return readRealtimeUsage(field(objectAt(event, 'response'), 'usage'))
}
