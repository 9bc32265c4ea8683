/** Serves the list of models: those that the gateway knows, otherwise the list of the provider. */
import { matchesName } from '../../../../engines/messages/catalog/names.ts'
import { modelOf } from '../../../../engines/messages/request/body.ts'
import { pinnedModel } from '../../../../engines/messages/request/outgoing.ts'
import { changeQuery } from '../../../../ground/base/query-string.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { allowedModelsOf, mayUseModel } from './allowed-models.ts'
import { apiVersion, type ModelCall } from './model-call.ts'
import { type ListedModel, listFormatOf } from './model-lists.ts'
import { modelNotFoundIn, ownResponse } from './own-responses.ts'
import type { ProviderEndpoint } from './provider-endpoint.ts'
import type { CompiledModel } from './served-models.ts'

/**
 * Returns the models that the client can ask for, or the one that the path names: the served models of the
 * backend, otherwise aliases without wildcards and the pinned models of providers. If there are none, returns
 * undefined, and the request goes to the provider for its list. If the client's API key may use certain models
 * only, returns those of them whose whole name is known.
 */
export function modelsResponse(call: ModelCall): RespondVerdict | undefined {
  const { request } = call.context.exchange
  const wanted = modelInPath(request.path)
  const models = call.backend?.models
  const known = models === undefined ? knownModels(call) : servedModels(call, models.all)
  if (models === undefined && known.length === 0 && allowedModelsOf(call) === undefined) {
    if (redirectToProvider(call, wanted)) return undefined
  }
  const format = listFormatOf(request)
  if (wanted === undefined) return ownResponse(200, format.list(known))
  const found = known.find(({ id }) => id === wanted)
  return found === undefined ? modelNotFoundIn(format.errors) : ownResponse(200, format.one(found))
}

const onePath = /\/models\/(.+?)\/?$/i

/** Returns the model that the path of a request for one model names; undefined for the list. */
function modelInPath(path: string): string | undefined {
  const encoded = onePath.exec(path)?.[1]
  if (encoded === undefined) return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

const isName = (pattern: string): boolean => !pattern.includes('*')

function listed(
  { catalog }: ModelCall,
  id: string,
  provider: ProviderEndpoint | undefined,
  sent: string,
): ListedModel {
  const owner = provider?.vendor.systemName ?? ''
  if (provider === undefined) return { id, owner, facts: undefined, entry: undefined }
  const { catalogId } = provider
  return {
    id,
    owner,
    facts: catalog.find(sent, catalogId),
    entry: catalog.entryOf(sent, catalogId),
  }
}

/** The models of the catalog that a served model with a pattern may mean, without those that are gone. */
function namesLike({ match, targets: [target] }: CompiledModel, { catalog }: ModelCall): string[] {
  if (target === undefined || pinnedModel(target.provider.provider.config) !== undefined) return []
  const { catalogId, listedAs } = target.provider
  const names = listedAs === undefined ? [] : catalog.namesOf(listedAs)
  return names.filter((name) => {
    const retires = Date.parse(catalog.entryOf(name, catalogId)?.retires ?? '')
    return matchesName(match, name) && !(retires < Date.now())
  })
}

/** The public models of the backend, and the aliases and allowed names that lead to one. */
function servedModels(call: ModelCall, all: readonly CompiledModel[]): readonly ListedModel[] {
  const aliases = call.policy?.config.modelAliases
  const allowed = allowedModelsOf(call)
  const publicModels = all.filter(({ isInternal }) => !isInternal)
  const names = [
    ...publicModels.map(({ match }) => match),
    ...Object.keys(aliases ?? {}),
    ...(allowed?.patterns ?? []),
  ].filter(isName)
  const like = publicModels.flatMap((model) => (isName(model.match) ? [] : namesLike(model, call)))
  return [...new Set([...names, ...like])].flatMap((id) => {
    const name = modelOf(id, aliases) ?? id
    const model = call.backend?.models?.find(name)
    if (model === undefined || model.isInternal) return []
    const sent = model.targets.map(({ provider }) => pinnedModel(provider.provider.config) ?? name)
    const mayUse = allowed === undefined || [id, ...sent].some((one) => allowed.allows(one))
    return mayUse ? [listed(call, id, model.targets[0]?.provider, sent[0] ?? name)] : []
  })
}

/** The names that clients can send if a backend serves any model. */
function knownModels(call: ModelCall): readonly ListedModel[] {
  const { policy, provider, backend } = call
  const all = backend?.groups.flat() ?? []
  const aliases = policy?.config.modelAliases
  const pinned = all.flatMap((one) => {
    const name = pinnedModel(one.provider.config)
    return name === undefined ? [] : [[name, one] as const]
  })
  // If every provider has its own model, clients cannot choose another one.
  const isFree = pinned.length < all.length
  const allowed = isFree ? (allowedModelsOf(call)?.patterns ?? []) : []
  const models = new Map<string, ProviderEndpoint | undefined>()
  for (const name of Object.keys(aliases ?? {}).filter(isName)) models.set(name, provider)
  for (const [name, one] of [
    ...pinned,
    ...allowed.filter(isName).map((name) => [name, provider] as const),
  ]) {
    if (!models.has(name)) models.set(name, one)
  }
  return [...models]
    .filter(([id]) => mayUseModel(call, modelOf(id, aliases), id))
    .map(([id, one]) => listed(call, id, one, modelOf(id, aliases) ?? id))
}

function withoutVersion(query: string | undefined): string | undefined {
  if (query === undefined) return undefined
  return changeQuery(query, (parameter, name) => (name === apiVersion ? undefined : parameter))
}

/** Returns false if the provider has no list, or if `path` is set, because the list may be elsewhere. */
function redirectToProvider({ context, provider }: ModelCall, wanted: string | undefined): boolean {
  if (provider === undefined || provider.provider.path !== undefined) return false
  const path = provider.vendor.modelsPath?.(provider.provider.config)
  if (path === undefined) return false
  const { request } = context.exchange
  const [only = '', query] = path.split('?')
  request.path = wanted === undefined ? only : `${only}/${encodeURIComponent(wanted)}`
  request.query = query ?? withoutVersion(request.query)
  return true
}
