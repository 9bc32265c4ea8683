/** The list of models, which the gateway knows best: the names that it takes. */
import type { RespondVerdict } from '../../exchange/exchange.ts'
import type { PhaseContext } from '../phases.ts'
import type { Walk } from '../walk.ts'
import type { ModelCall } from './model-call.ts'
import { ownAnswer } from './own-answers.ts'

/** Aliases without wildcards, and the models that providers are pinned to, in vendorA's format. */
export function modelsAnswer(
  { backend }: Walk,
  { policy, provider }: ModelCall,
  { config }: PhaseContext,
): RespondVerdict {
  const aliases = Object.keys(policy?.config.modelAliases ?? {}).filter(
    (name) => !name.includes('*'),
  )
  const found = backend && config.backends.find(backend.name)
  const all = found?.type === 'ai' ? found.groups.flat() : provider === undefined ? [] : [provider]
  const models = new Map<string, string>()
  for (const name of aliases) models.set(name, provider?.vendor.systemName ?? '')
  for (const { provider: one, vendor } of all) {
    const pinned = one.config.model ?? one.config.deploymentName
    if (pinned !== undefined && !models.has(pinned)) models.set(pinned, vendor.systemName)
  }
  const data = [...models].map(([id, owner]) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: owner,
  }))
  return ownAnswer(200, { object: 'list', data })
}
