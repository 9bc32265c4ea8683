/** Serves the list of models: those that the gateway knows, otherwise the list of the provider. */
import { changeQuery } from '../../../../ground/base/query-string.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { apiVersion, type ModelCall } from './model-call.ts'
import { ownResponse } from './own-responses.ts'

/**
 * Returns the aliases without wildcards and the pinned models of providers, in vendor A's format. If
 * there are none, returns undefined, and the request goes to the provider for its list.
 */
export function modelsResponse(call: ModelCall): RespondVerdict | undefined {
  const { policy, provider, backend } = call
  const aliases = Object.keys(policy?.config.modelAliases ?? {}).filter(
    (name) => !name.includes('*'),
  )
  const all = backend?.groups.flat() ?? (provider === undefined ? [] : [provider])
  const models = new Map<string, string>()
  for (const name of aliases) models.set(name, provider?.vendor.systemName ?? '')
  for (const { provider: one, vendor } of all) {
    const pinned = one.config.model ?? one.config.deploymentName
    if (pinned !== undefined && !models.has(pinned)) models.set(pinned, vendor.systemName)
  }
  if (models.size === 0 && redirectToProvider(call)) return undefined
  const data = [...models].map(([id, owned_by]) => ({ id, object: 'model', created: 0, owned_by }))
  return ownResponse(200, { object: 'list', data })
}

function withoutVersion(query: string | undefined): string | undefined {
  if (query === undefined) return undefined
  return changeQuery(query, (parameter, name) => (name === apiVersion ? undefined : parameter))
}

/** Returns false if the provider has no list, or if `path` is set, because the list may be elsewhere. */
function redirectToProvider({ context, provider }: ModelCall): boolean {
  if (provider === undefined || provider.provider.path !== undefined) return false
  const path = provider.vendor.modelsPath?.(provider.provider.config)
  if (path === undefined) return false
  const { request } = context.exchange
  const [only = '', query] = path.split('?')
  request.path = only
  request.query = query ?? withoutVersion(request.query)
  return true
}
