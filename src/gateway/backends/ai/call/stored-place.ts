/** Leads a request to the provider that stores what it refers to, and opens and seals the ids in its body and its response. */

import type { ClientFormat } from '../../../../engines/messages/format.ts'
import type { KnownFormat } from '../../../../engines/messages/formats/index.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import type { SettledBody } from '../../../../engines/messages/request/body.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { notOfClients } from '../../../../engines/messages/stored/members.ts'
import type { ModelCall } from './model-call.ts'
import { both, StoredElsewhereError } from './next-provider.ts'
import { RequestIds } from './owned-ids.ts'
import type { ProviderEndpoint } from './provider-endpoint.ts'

/**
 * Limits the request to the provider that stores what it refers to.
 * @throws StoredElsewhereError if another provider was chosen, or LlmError 400 if none can be
 */
export function needPlace(call: ModelCall, place: string): void {
  const isPlace = (one: ProviderEndpoint) => one.place === place
  call.suits = both(call.suits, isPlace)
  if (call.provider?.place === place) return
  if (!call.groups.flat().some(isPlace)) {
    const { selection } = call
    const target = selection?.model.targets.find(({ provider }) => isPlace(provider))
    if (selection === undefined || target === undefined) {
      const of = selection === undefined ? 'this backend' : `the model ${selection.sent}`
      throw new LlmError(400, `no provider of ${of} stores what the request refers to`)
    }
    call.select({ ...selection, groups: [[target.provider]] })
  }
  call.keepHead()
  throw new StoredElsewhereError()
}

/**
 * Returns the body with the ids of the provider. What the gateway itself has set keeps its ids.
 * @throws StoredNotFoundError if the client does not own what it refers to
 */
export function openStored(
  call: ModelCall,
  format: KnownFormat,
  settled: SettledBody,
  provider: ProviderEndpoint,
): SettledBody {
  const { stored } = format as ClientFormat
  const own = ownFields(call, settled.body)
  if (stored === undefined) return settled
  const { vendor, provider: settings } = provider
  const config = call.config ?? settings.config
  if (vendor.plan(format.name, settled.model, config, false).kind !== 'native') {
    // Translations refuse other ids, because the provider has no such format.
    if (settled.body.cachedContent != null && !('cachedContent' in own)) {
      throw notOfClients('cachedContent')
    }
    return settled
  }
  const ids = new RequestIds(call.ownedIds, provider.place)
  const opened = stored.open({ ...settled.body, ...blank(own) }, ids)
  if (ids.place !== undefined) needPlace(call, ids.place)
  const names = Object.keys(settled.body)
  const isSame = names.every((name) => name in own || opened[name] === settled.body[name])
  return isSame ? settled : { ...settled, body: { ...opened, ...own }, isChanged: true }
}

/** Returns the fields whose values a policy has set. */
function ownFields({ settings }: ModelCall, body: JsonObject): JsonObject {
  const { overrides = [], defaults = [] } = settings ?? {}
  const own = [...overrides, ...defaults].filter(({ field, value }) => body[field] === value)
  return Object.fromEntries(own.map(({ field, value }) => [field, value]))
}

const blank = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.keys(fields).map((name) => [name, undefined]))

/** Returns the request with what seals the ids of its response, if the provider stores it. */
export function withSeal(call: ModelCall, outgoing: OutgoingRequest): OutgoingRequest {
  const { stored } = outgoing.format as ClientFormat
  const { provider, request } = call
  if (stored?.seal === undefined || outgoing.plan.kind !== 'native') return outgoing
  if (provider === undefined || stored.stores?.(request?.body.fields ?? {}) === false)
    return outgoing
  return { ...outgoing, seal: call.ownedIds.sealer(provider.place, outgoing.asked) }
}
