/** The list of models: the names that the gateway takes, or what the provider says where any will do. */
import { changeQuery } from '../../../base/query-string.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { ModelCall } from './model-call.ts'
import type { ModelBackend } from './model-providers.ts'
import { ownAnswer } from './own-answers.ts'
import { apiVersion } from './provider-path.ts'

/**
 * Aliases without wildcards, and the models that providers are pinned to, in vendorA's format. Where
 * there are none, the provider is asked for its own list, as it is; undefined then.
 */
export function modelsAnswer(
  context: RequestContext,
  { policy, provider }: ModelCall,
  backend: ModelBackend | undefined,
): RespondVerdict | undefined {
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
  if (models.size === 0 && askProvider(context, provider)) return undefined
  const data = [...models].map(([id, owner]) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: owner,
  }))
  return ownAnswer(200, { object: 'list', data })
}

function withoutVersion(query: string | undefined): string | undefined {
  if (query === undefined) return undefined
  return changeQuery(query, (parameter, name) => (name === apiVersion ? undefined : parameter))
}

/** False where the provider has no list, or none is known to be where its path was overridden. */
function askProvider(
  { exchange: { request } }: RequestContext,
  provider: ModelCall['provider'],
): boolean {
  if (provider === undefined || provider.provider.path !== undefined) return false
  const path = provider.vendor.modelsPath?.(provider.provider.config)
  if (path === undefined) return false
  const [only = '', query] = path.split('?')
  request.path = only
  request.query = query ?? withoutVersion(request.query)
  return true
}
