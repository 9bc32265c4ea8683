/** The source `portkey`: config JSON of the Portkey gateway. */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { namedProviders } from '../models.ts'
import { hasField, type ImportSource } from '../source.ts'
import {
  addBackend,
  addGateway,
  addRoute,
  choiceHeader,
  duration,
  toGateway,
  toRoute,
} from '../targets.ts'
import { choiceOf } from './conditions.ts'
import { providerOfTarget } from './providers.ts'

export const portkey: ImportSource = {
  name: 'portkey',
  port: 8787,
  detects: (document) =>
    hasField(document, 'strategy', 'virtual_key', 'targets') && !hasField(document, 'kind'),
  convert(documents, result) {
    documents.forEach((document, index) => {
      if (index === 0) convertConfig(document, result)
      else {
        const root = result.open(document)
        root.take()
        result.report(
          'lost',
          root,
          'convert each config by itself, since clients choose one by name',
        )
      }
    })
  },
}

function convertConfig(document: SourceDocument, result: Conversion): void {
  const root = result.open(document)
  addGateway(result, root)
  const mode = root.at('strategy', 'mode').text() ?? 'single'
  const rules =
    mode === 'conditional'
      ? conditionalRules(root, result)
      : [{ backendRefs: refsOf(root, 'model', result) }]
  const routes = addRoute(result, 'models', { rules }, root)
  const traffic = { retry: retryOf(root, result), timeouts: timeoutsOf(root) }
  result.policy(
    'models',
    routes.map((name) => toRoute(name)),
    { traffic },
    root,
  )
}

/** A PreRouting policy writes the name of the target to a header; each target has a rule for its name. */
function conditionalRules(root: SourceField, result: Conversion): Fields[] {
  const expression = choiceOf(root.get('strategy'), result)
  if (expression === undefined) return []
  const transformation = { request: { set: [{ name: choiceHeader, value: expression }] } }
  const traffic = { phase: 'PreRouting', transformation }
  result.policy('choose-target', [toGateway], { traffic }, root)
  return root.items('targets').map((target, index) => {
    const name = target.text('name') ?? `target-${index + 1}`
    const matches = [{ headers: [{ name: choiceHeader, value: name }] }]
    return { matches, backendRefs: refsOf(target, name, result) }
  })
}

/** Weighted references to the backends of a config or of one of its targets. */
function refsOf(config: SourceField, name: string, result: Conversion): Fields[] {
  if (config.at('strategy', 'mode').text() !== 'loadbalance') {
    const groups = groupsOf(config, name, result)
    if (groups.length === 0) return []
    const all = namedProviders(
      groups.flat(),
      groups.flat().map((_, index) => `${name}-${index + 1}`),
    )
    let next = 0
    const ai = { groups: groups.map((group) => ({ providers: group.map(() => all[next++]) })) }
    return [addBackend(result, result.nameOf('GatewayBackend', name), { ai }, config)]
  }
  const targets = config.items('targets')
  const weights = targets.map((target) => target.number('weight') ?? 1)
  const scale = weights.every((weight) => Number.isInteger(weight)) ? 1 : 1000
  return targets.flatMap((target, index) => {
    const refs = refsOf(target, target.text('name') ?? `${name}-${index + 1}`, result)
    if (refs.length > 1)
      result.report('changed', target, 'the weights of nested targets are not multiplied')
    return refs.map((ref) => ({ ...ref, weight: Math.round((weights[index] ?? 1) * scale) }))
  })
}

/** Providers by priority: the targets of a fallback one after the other. */
function groupsOf(config: SourceField, name: string, result: Conversion): Fields[][] {
  const mode = config.at('strategy', 'mode').text()
  readSettings(config, result)
  if (mode === undefined || mode === 'single') {
    const [only] = config.items('targets')
    if (only !== undefined) return groupsOf(only, name, result)
    const provider = providerOfTarget(config, name, result)
    return provider === undefined ? [] : [[provider]]
  }
  const nested = config
    .items('targets')
    .map((target, index) => groupsOf(target, `${name}-${index + 1}`, result))
  if (mode === 'fallback') {
    const codes = config.at('strategy', 'on_status_codes')
    if (codes.isSet)
      result.report(
        'changed',
        codes,
        'a provider is left out after 429, 5xx and failed connections',
      )
    codes.take()
    return nested.flat()
  }
  result.report('changed', config.get('strategy'), 'nested targets share requests by their health')
  config.take('strategy')
  return [nested.flat(2)]
}

/** Settings that a target may have as well as the whole config. */
function readSettings(config: SourceField, result: Conversion): void {
  config.ignore('name')
  config.number('weight')
  result.lose(config.get('cache'), 'there is no response cache')
  const hooks = [
    'input_guardrails',
    'output_guardrails',
    'before_request_hooks',
    'after_request_hooks',
    'default_input_guardrails',
    'default_output_guardrails',
  ]
  for (const name of hooks) {
    const field = config.get(name)
    if (!field.isSet) continue
    field.take()
    result.report('protection', field, 'checks of Portkey are not converted; see promptGuard')
  }
}

function retryOf(root: SourceField, result: Conversion): Fields | undefined {
  readSettings(root, result)
  const retry = root.get('retry')
  const attempts = retry.number('attempts')
  if (attempts === undefined || attempts < 1) return undefined
  const codes = retry.get('on_status_codes')
  retry.ignore('use_retry_after_header')
  const listed = codes.items().flatMap((code) => code.number() ?? [])
  return compact({ attempts, codes: codes.isSet ? listed : [429, 500, 502, 503, 504] })
}

function timeoutsOf(root: SourceField): Fields | undefined {
  const ms = root.number('request_timeout')
  return ms === undefined ? undefined : { request: duration(ms) }
}
