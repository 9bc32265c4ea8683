/** Requests for what a provider stores: responses, conversations, files and batches. Only their owner gets them. */
import { hash } from 'node:crypto'
import { clientFormats } from '../../../../engines/messages/formats/index.ts'
import { openItems } from '../../../../engines/messages/formats/responses/stored.ts'
import { sealObject } from '../../../../engines/messages/formats/responses/stored-objects.ts'
import { field, type JsonObject, stringAt } from '../../../../engines/messages/json/json.ts'
import { needNames } from '../../../../engines/messages/json/names.ts'
import { LlmError, unsupportedRoute } from '../../../../engines/messages/llm-error.ts'
import { isMultipart } from '../../../../engines/messages/multipart/part-head.ts'
import { pinnedModel } from '../../../../engines/messages/request/outgoing.ts'
import {
  ownCollections,
  storedCollections,
} from '../../../../engines/messages/stored/collections.ts'
import { changeQuery } from '../../../../ground/base/query-string.ts'
import { budgetsOf } from '../../../../ground/exchange/budgets.ts'
import { tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import type { StoredPath } from '../policy/stored-paths.ts'
import { needNoModelLimit } from './allowed-models.ts'
import type { ModelCall } from './model-call.ts'
import { RequestIds } from './owned-ids.ts'
import type { ProviderEndpoint } from './provider-endpoint.ts'
import { readClientBody } from './read-body.ts'
import { needPlace } from './stored-place.ts'
import { removedHeaders, setPath } from './write-request.ts'

/** Formats with the headers and errors of the API of a collection. */
const formats = { openai: clientFormats.Responses, anthropic: clientFormats.Messages } as const

/** Parts that are files. */
const isContent = (part: string | undefined): boolean => part === 'content' || part === 'results'

type Done = undefined | Promise<undefined>

/** Whether the response is a response of the model, which guards can read. */
const isResponse = ({ kind, part }: StoredPath, method: string): boolean =>
  kind === 'response' && method !== 'DELETE' && (part === undefined || part === 'cancel')

/** @throws LlmError if the client does not own what the path names, or if the request cannot be served */
export function prepareStored(call: ModelCall, target: StoredPath): Done {
  const { provider, context } = call
  if (provider === undefined) return undefined
  const { request } = context.exchange
  call.isProbe = true
  const opened = target.id === undefined ? undefined : call.ownedIds.need(target.kind, target.id)
  if (opened !== undefined) needPlace(call, opened.place)
  const base = storedBase(call, provider, target)
  needServable(call, target, request.method)
  const item = target.item && call.ownedIds.need('item', target.item).id
  const [only = '', ...query] = base.split('?')
  const path = [only, segment(opened?.id), target.part, segment(item)]
    .filter((one) => one !== undefined)
    .join('/')
  const plan = { kind: 'native', path: [path, ...query].join('?') } as const
  openQuery(call)
  const isStream = new URLSearchParams(request.query).get('stream') === 'true'
  const seal = call.ownedIds.sealer(provider.place, opened?.asked)
  const { kind, part } = target
  const isOfModel = isResponse(target, request.method)
  const hasResults = isContent(part) && opened !== undefined
  // Parts would not say which results they have.
  if (hasResults) request.headers.remove('range')
  call.stored = {
    results: hasResults ? digestOf(opened.place, opened.id) : undefined,
    seal: isOfModel
      ? undefined
      : isContent(part)
        ? 'relay'
        : (body) => sealObject(body, kind, part === 'items', seal),
  }
  call.outgoing = {
    ...{ format: formats[target.errors], plan, seal, isStream },
    ...{ model: '', asked: opened?.asked, body: undefined },
    ...{ translation: undefined, hidesUsage: false },
  }
  const pending = request.method === 'POST' ? prepareBody(call, target, provider) : undefined
  const finish = (): undefined => {
    if (call.context.over) return
    request.headers.remove('accept-encoding')
    setPath(context, plan)
  }
  return pending === undefined ? finish() : pending.then(finish)
}

const digestOf = (place: string, id: string): string =>
  hash('sha256', JSON.stringify([place, id]), 'base64url').slice(0, 22)

const segment = (id: string | undefined): string | undefined => id && encodeURIComponent(id)

/** Returns the path of the collection at the provider. @throws UnsupportedByProviderError if it has none */
function storedBase(
  { config }: ModelCall,
  { vendor, provider }: ProviderEndpoint,
  { collection }: StoredPath,
): string {
  const path =
    provider.path === undefined ? pathOf(vendor, config ?? provider.config, collection) : undefined
  if (path === undefined) throw unsupportedRoute(collection, vendor.systemName)
  return path
}

function pathOf(
  vendor: ProviderEndpoint['vendor'],
  config: ProviderEndpoint['provider']['config'],
  collection: StoredPath['collection'],
): string | undefined {
  const own = ownCollections.find((name) => storedCollections[name].type === collection)
  if (own !== undefined) return vendor.storedPath?.(own, config)
  const plan = vendor.plan(clientFormats.Responses.name, pinnedModel(config) ?? '', config, false)
  return plan.kind === 'native' ? plan.path : undefined
}

/** Whether a provider can store things of a collection. */
export function canStore(
  { vendor, provider }: ProviderEndpoint,
  { collection }: StoredPath,
): boolean {
  return provider.path === undefined && pathOf(vendor, provider.config, collection) !== undefined
}

/** Opens the ids in the query, and removes what is for the gateway. */
function openQuery(call: ModelCall): void {
  const { request } = call.context.exchange
  if (request.query === undefined) return
  request.query = changeQuery(request.query, (parameter, name) => {
    if (name === 'model') return undefined
    if (name !== 'after' && name !== 'before') return parameter
    const value = new URLSearchParams(parameter).get(name) ?? ''
    return `${name}=${encodeURIComponent(call.ownedIds.need('item', value, name).id)}`
  })
}

/** @throws LlmError 400 if protections of the route could not see what is sent or stored */
function needServable(call: ModelCall, { kind, part, id }: StoredPath, method: string): void {
  const { guardsRequests, guardsResponses } = call.policy ?? {}
  const hasItems = part === 'input_items' || part === 'items'
  const what = hasItems ? 'lists of items' : 'files'
  if (guardsResponses === true && (isContent(part) || hasItems)) {
    throw new LlmError(400, `guards of responses cannot read ${what}`)
  }
  if (guardsRequests === true && method === 'POST' && (kind === 'file' || part === 'items')) {
    throw new LlmError(400, `guards of requests cannot read ${what}`)
  }
  if ((kind === 'batch' || kind === 'message-batch') && id === undefined) needNoRules(call)
}

/** The gateway does not read the requests of a batch, so that nothing that depends on their content can apply. */
function needNoRules(call: ModelCall): void {
  needNoModelLimit(call)
  const { policy, context, provider, backend } = call
  const { exchange } = context
  const { overrides, defaults, prompt } = policy?.config ?? {}
  const isGuarded = policy?.guardsRequests === true || policy?.guardsResponses === true
  const isPinned = provider !== undefined && pinnedModel(provider.provider.config) !== undefined
  const rule = [
    ['guards', isGuarded],
    ['token limits', tokenLimitsOf(exchange) !== undefined],
    ['budgets', budgetsOf(exchange) !== undefined],
    ['overrides, defaults or prompts', (overrides ?? defaults ?? prompt) !== undefined],
    ['chosen models', isPinned || backend?.models !== undefined],
  ].find(([, applies]) => applies)
  if (rule === undefined) return
  throw new LlmError(
    400,
    `batches are not supported where ${rule[0]} apply, because the gateway does not read their requests`,
  )
}

/** Opens the ids in the body. Files, and batches with all their requests, pass as they come. */
async function prepareBody(
  call: ModelCall,
  { part, kind }: StoredPath,
  { place }: ProviderEndpoint,
): Promise<undefined> {
  const { request, requestBody } = call.context.exchange
  if (part === 'cancel' || kind === 'message-batch') return
  if (kind === 'file') {
    if (isMultipart(request.headers.get('content-type'))) return
    throw new LlmError(400, 'a file is sent as multipart/form-data')
  }
  if (requestBody.length === 0) return
  const { whole } = await readClientBody(call, clientFormats.Responses)
  if (call.context.over) return
  needNoTexts(call, whole)
  const ids = new RequestIds(call.ownedIds, place)
  const opened = kind === 'batch' ? openBatch(whole, ids) : openItems(whole, 'items', ids)
  if (ids.place !== undefined) needPlace(call, ids.place)
  requestBody.replace(Buffer.from(JSON.stringify(opened)))
  for (const name of removedHeaders) request.headers.remove(name)
  request.headers.set('content-type', 'application/json')
}

const batchNames = new Set(['input_file_id'])

function openBatch(body: JsonObject, ids: RequestIds): JsonObject {
  needNames(body, batchNames)
  const file = stringAt(body, 'input_file_id')
  return file === undefined
    ? body
    : { ...body, input_file_id: ids.need('file', file, 'input_file_id') }
}

/** @throws LlmError 400 if guards would have to read the first items of a conversation */
function needNoTexts({ policy }: ModelCall, body: JsonObject): void {
  if (policy?.guardsRequests !== true || field(body, 'items') == null) return
  throw new LlmError(400, 'guards of requests cannot read items of conversations')
}
