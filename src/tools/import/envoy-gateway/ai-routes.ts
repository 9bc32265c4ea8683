/** Converts AIGatewayRoute to HTTPRoute and GatewayBackends. */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { modelGroups } from '../models.ts'
import { addBackend, addRoute } from '../targets.ts'
import type { Backends } from './backends.ts'
import { enter } from './targets.ts'

/** The header that Envoy AI Gateway sets to the model of the request. */
const modelHeader = 'x-ai-eg-model'

export function convertModelRoute(
  field: SourceField,
  backends: Backends,
  result: Conversion,
): void {
  const name = enter(field, result)
  const spec = field.get('spec')
  const parentRefs = spec.items('parentRefs').map((ref) => ref.object())
  const hostnames = spec.list('hostnames')
  spec.get('llmRequestCosts').lose('costs are the numbers of tokens; limit them with rateLimit')
  const rules = spec
    .items('rules')
    .map((rule, index) => convertRule(rule, { route: name, number: index + 1 }, backends, result))
  addRoute(result, name, { parentRefs, hostnames, rules }, field)
  for (const parent of parentRefs) addModelHeader(parent, result, field)
}

/** A PreRouting policy on the Gateway copies the model to the header that routes match. */
function addModelHeader(parent: Fields, result: Conversion, origin: SourceField): void {
  const transformation = {
    request: { set: [{ name: modelHeader, value: 'string(json(request.body).model)' }] },
  }
  const target = compact({
    group: gatewayGroup,
    kind: parent.kind ?? 'Gateway',
    name: parent.name,
    sectionName: parent.sectionName,
  })
  const own = result.namespace
  result.namespace = (parent.namespace as string | undefined) ?? own
  result.policy(
    `model-of-${String(parent.name)}`,
    [target],
    { traffic: { phase: 'PreRouting', transformation } },
    origin,
  )
  result.namespace = own
}

interface Choice {
  readonly provider: Fields
  readonly name: string
  readonly weight: number
  readonly priority: number
}

function convertRule(
  rule: SourceField,
  { route, number }: { route: string; number: number },
  backends: Backends,
  result: Conversion,
): Fields {
  const name = rule.text('name') ?? `rule-${number}`
  rule.ignore('modelsOwnedBy', 'modelsCreatedAt')
  rule.get('streamIdleTimeout').lose('has no counterpart')
  const choices = rule.items('backendRefs').flatMap((ref): Choice[] => {
    ref.ignore('group', 'kind', 'namespace')
    const target = ref.text('name') ?? ''
    const override = ref.text('modelNameOverride')
    backends.uses.push({ service: target, route, rule: name, model: override })
    for (const mutation of ['headerMutation', 'bodyMutation']) {
      ref.get(mutation).lose('requests to providers are not changed')
    }
    const provider = backends.provider(target, override, ref)
    const weight = ref.number('weight') ?? 1
    const priority = ref.number('priority') ?? 0
    return provider === undefined ? [] : [{ provider, name: target, weight, priority }]
  })
  const matches = rule.items('matches').map((match) => match.object())
  const timeouts = rule.get('timeouts')
  return compact({
    name,
    matches: filled(matches),
    timeouts: timeouts.isSet ? timeouts.take() : undefined,
    backendRefs: referencesOf(choices, `${route}-${number}`, rule, result),
  })
}

/** Weights need one backend each; priorities are the groups of one backend. */
function referencesOf(
  choices: readonly Choice[],
  name: string,
  rule: SourceField,
  result: Conversion,
): Fields[] {
  const priorities = [...Map.groupBy(choices, ({ priority }) => priority)].sort(([a], [b]) => a - b)
  if (priorities.length <= 1) {
    return choices.map((choice, index) => {
      const ref = addBackend(
        result,
        `${name}-${choice.name}-${index}`,
        { ai: modelGroups([[choice]], (only) => only) },
        rule,
      )
      return { ...ref, weight: choice.weight }
    })
  }
  const weights = new Set(choices.map(({ weight }) => weight))
  if (weights.size > 1)
    rule.report('changed', 'backends of one priority share requests by their health')
  const groups = priorities.map(([, list]) => list)
  return [addBackend(result, name, { ai: modelGroups(groups, (choice) => choice) }, rule)]
}
