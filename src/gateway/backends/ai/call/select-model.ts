/** Finds the model that the client asks for among those that a backend serves, before a provider is chosen. */
import {
  formatOf,
  type KnownFormat,
  type RouteType,
} from '../../../../engines/messages/formats/index.ts'
import { stringAt } from '../../../../engines/messages/json/json.ts'
import { LlmError, unsupportedRoute } from '../../../../engines/messages/llm-error.ts'
import { modelOf } from '../../../../engines/messages/request/body.ts'
import { StoredNotFoundError } from '../../../../engines/messages/stored/stored-ids.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { EarlyResponse } from '../../../proxy/request/backend-call.ts'
import { requireUsable, wholeBackend } from '../../../proxy/request/destinations.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import { bufferBodies } from '../../../variables/index.ts'
import type { StoredPath } from '../policy/stored-paths.ts'
import { mayUseModel } from './allowed-models.ts'
import { resolveProvider } from './choose-provider.ts'
import { needModelFirst } from './form-request.ts'
import type { ModelCall, ReadBody } from './model-call.ts'
import type { ModelBackend } from './model-providers.ts'
import { modelsResponse } from './models.ts'
import { isProbe, isStoredPath, modelNotFound, pathRefusal } from './own-responses.ts'
import { refuseInFormat } from './prepare.ts'
import { readClientBody } from './read-body.ts'
import { type CompiledModel, selectProviders } from './served-models.ts'
import { affinityOf } from './session-affinity.ts'
import { canStore } from './stored-calls.ts'

type Early = EarlyResponse | Promise<EarlyResponse>

/** Resolves the first attempt of a request whose provider depends on the model or on the session. */
export function resolveSelected(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
): Early {
  return backend.models === undefined
    ? resolveSession(call, runtime, backend)
    : resolveModel(call, runtime, backend)
}

function resolveSession(call: ModelCall, runtime: GatewayRuntime, backend: ModelBackend): Early {
  const { affinity } = backend
  const { context } = call
  const { exchange } = context
  if (affinity === undefined || call.tried.length > 0)
    return resolveProvider(call, runtime, backend)
  const pending = affinity.request ? bufferBodies(exchange, affinity) : undefined
  const proceed = (): Early => {
    if (context.over) return undefined
    call.session = affinityOf(affinity, exchange)
    return resolveProvider(call, runtime, backend)
  }
  return pending === undefined ? proceed() : pending.then(proceed)
}

/** The policies of the backend apply until the model, whose policies may differ, is known. */
function resolveModel(call: ModelCall, runtime: GatewayRuntime, backend: ModelBackend): Early {
  const { context } = call
  if (context.placement === undefined) throw new GatewayError('no_backends')
  const access = context.placement.backend(backend.named, wholeBackend)
  requireUsable(access)
  call.access = access
  const { method, path } = context.exchange.request
  call.path = path
  const found = call.routeTypes.find(path)
  const refusal = pathRefusal(found, method, path)
  if (refusal !== undefined) {
    call.isProbe = isProbe(method)
    return refusal
  }
  const stored = found !== undefined && isStoredPath(found) ? found : undefined
  const route = stored?.collection ?? (found as RouteType)
  if (route === 'Models') return modelsResponse(call)
  try {
    if (stored !== undefined) return selectStored(call, runtime, backend, stored)
    const format = formatOf(route)
    if (format === undefined) return selectUnread(call, runtime, backend, route)
    const client = readClientBody(call, format)
    return client instanceof Promise
      ? client.then((read) => selectNamed(call, runtime, backend, format, read)).catch(refuse)
      : selectNamed(call, runtime, backend, format, client)
  } catch (error) {
    return refuse(error)
  }
  function refuse(error: unknown): EarlyResponse {
    return context.over ? undefined : refuseInFormat(context, route, error)
  }
}

/**
 * Selects the provider that stores what the path names. What is new is stored at the provider of the model in the
 * query, or else at the only one that can store it.
 */
function selectStored(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
  target: StoredPath,
): Early {
  const { kind, id } = target
  const opened = id === undefined ? undefined : call.ownedIds.need(kind, id)
  const { query } = call.context.exchange.request
  const named = opened === undefined ? new URLSearchParams(query).get('model') : null
  const models = named === null ? backend.models?.all : [backend.models?.find(named) ?? []].flat()
  const found = (models ?? []).flatMap((model) => {
    if (named !== null && model.isInternal) return []
    const targets = model.targets.map(({ provider }) => provider)
    const fits = targets.find((one) =>
      opened === undefined ? canStore(one, target) : one.place === opened.place,
    )
    return fits === undefined ? [] : [{ model, provider: fits }]
  })
  const [first] = found
  if (first === undefined) {
    if (id === undefined && named !== null) return modelNotFound(target.collection)
    throw id === undefined
      ? unsupportedRoute(target.collection, 'of this backend')
      : new StoredNotFoundError(kind, id)
  }
  if (found.some(({ provider }) => provider.place !== first.provider.place)) {
    throw new LlmError(
      400,
      'several providers can store this: name a model of one of them in the query, such as ?model=NAME',
    )
  }
  const { model, provider } = first
  call.select({ model, groups: [[provider]], affinity: undefined, sent: model.match })
  return resolveProvider(call, runtime, backend)
}

/** Realtime sessions name their model in the query; the gateway cannot find that of other unread requests. */
function selectUnread(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
  route: RouteType,
): Early {
  const { query } = call.context.exchange.request
  const named = route === 'Realtime' ? new URLSearchParams(query).get('model') : undefined
  if (named == null) {
    throw new LlmError(400, 'the model of the request cannot be found, which decides where it goes')
  }
  return select(call, runtime, backend, route, named)
}

function selectNamed(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
  format: KnownFormat,
  client: ReadBody,
): Early {
  if (call.context.over) return undefined
  const named = stringAt(client.fields, 'model')
  needModelFirst(call, named ?? '')
  if (named === undefined || named === '') {
    throw new LlmError(400, 'missing field: model not specified')
  }
  return select(call, runtime, backend, format.name, named)
}

function select(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
  route: RouteType,
  named: string,
): Early {
  const name = modelOf(named, call.policy?.config.modelAliases) ?? named
  const model = backend.models?.find(name)
  if (model === undefined || model.isInternal) {
    // A key that may not use the name does not learn whether the model exists.
    if (!mayUseModel(call, name, named))
      throw new LlmError(403, `the API key may not use the model ${named}`)
    call.context.refusal = `model not found: ${named}`
    return modelNotFound(route)
  }
  const { exchange } = call.context
  const pending = model.readsBody ? bufferBodies(exchange, wholeRequest) : undefined
  return pending === undefined
    ? resolveWith(call, runtime, backend, model, name)
    : pending.then(() => resolveWith(call, runtime, backend, model, name))
}

const wholeRequest = { request: true, response: false }

function resolveWith(
  call: ModelCall,
  runtime: GatewayRuntime,
  backend: ModelBackend,
  model: CompiledModel,
  name: string,
): Early {
  if (call.context.over) return undefined
  const { exchange } = call.context
  call.select(selectProviders(model, name, exchange, { random: runtime.random, now }))
  if (call.groups.length === 0) {
    throw new GatewayError('no_endpoints', `no target of the model ${model.name} fits the request`)
  }
  return resolveProvider(call, runtime, backend)
}
