/** The source `litellm`: `config.yaml` of the LiteLLM proxy. */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument } from '../field.ts'
import { modelGroups } from '../models.ts'
import { withAi } from '../plan.ts'
import { hasField, type ImportSource } from '../source.ts'
import {
  addBackend,
  addChoice,
  addGateway,
  addRoute,
  choiceHeader,
  toGateway,
  toRoute,
} from '../targets.ts'
import { type Deployment, readDeployments } from './deployments.ts'
import { promptGuards } from './guardrails.ts'
import { addProxyLimits, clientAuthentication, retries, Settings, timeouts } from './settings.ts'

export const litellm: ImportSource = {
  name: 'litellm',
  port: 4000,
  detects: (document) => hasField(document, 'model_list', 'litellm_settings', 'router_settings'),
  convert(documents, result) {
    for (const document of documents) convertConfig(document, result)
  },
}

function convertConfig(document: SourceDocument, result: Conversion): void {
  const root = result.open(document)
  const settings = new Settings(root)
  const models = Map.groupBy(readDeployments(root, settings, result), ({ group }) => group)
  addGateway(result, root)
  addChoice(result, 'choose-model', 'string(json(request.body).model)', root)
  result.policy('clients', [toGateway], { traffic: clientAuthentication(root, result) }, root)
  const guards = promptGuards(root)
  const aliases = settings.aliases()
  const rules = [...models].flatMap(([group, deployments]) => {
    const names = [group, ...(aliases.get(group) ?? [])]
    const backendRefs = [addModel(group, deployments, models, settings, guards, result)].filter(
      (ref) => ref !== undefined,
    )
    if (backendRefs.length === 0) return []
    return [{ matches: names.map(matchOf), backendRefs, isAny: group.includes('*') }]
  })
  // Exact names come first, because rules that match equally well apply in their order.
  const ordered = [...rules.filter(({ isAny }) => !isAny), ...rules.filter(({ isAny }) => isAny)]
  const routes = addRoute(
    result,
    'models',
    { rules: ordered.map(({ isAny: _isAny, ...rule }) => rule) },
    root,
  )
  addProxyLimits(root, result)
  const traffic = { ...retries(settings), ...timeouts(settings) }
  result.policy('models', routes.map(toRoute), { traffic }, root)
}

/** Matches the model name that the client sends; `*` in a name stands for any text. */
function matchOf(model: string): Fields {
  const pattern = model
    .split('*')
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*')
  const match = model.includes('*')
    ? { type: 'RegularExpression', name: choiceHeader, value: pattern }
    : { name: choiceHeader, value: model }
  return { headers: [match] }
}

/** The backend of a model name: its deployments, then those of its fallbacks in order. */
function addModel(
  group: string,
  deployments: readonly Deployment[],
  models: ReadonlyMap<string, readonly Deployment[]>,
  settings: Settings,
  guards: Fields | undefined,
  result: Conversion,
): Fields | undefined {
  const fallbacks = settings.fallbacksOf(group).flatMap(({ name, field }) => {
    const found = models.get(name)
    if (found === undefined) field.report('lost', `no model of the list has the name ${name}`)
    return found === undefined ? [] : [found]
  })
  const orders = Map.groupBy(deployments, ({ order }) => order)
  const sorted = [...orders].sort(([a], [b]) => a - b).map(([, list]) => list)
  const groups = [...sorted, ...fallbacks].filter((list) => list.length > 0)
  const first = groups[0]?.[0]
  if (first === undefined) return undefined
  const ai = modelGroups(groups, ({ group: name, provider }) => {
    return { name, provider: withAi(provider, compact({ promptGuard: guards })) }
  })
  const policies = guards === undefined ? undefined : { ai: { promptGuard: guards } }
  return addBackend(result, group.replaceAll('*', 'any'), compact({ ai, policies }), first.origin)
}
