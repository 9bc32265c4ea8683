/** The source `portkey`: config JSON of the Portkey gateway. */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { modelGroups } from '../models.ts'
import { hasField, type ImportSource } from '../source.ts'
import {
  addBackend,
  addChoice,
  addGateway,
  addRoute,
  choiceHeader,
  duration,
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
        const reason = 'convert each config by itself, since clients choose one by name'
        result.open(document).refuse('lost', reason)
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
  const traffic = { retry: retryOf(root), timeouts: timeoutsOf(root) }
  result.policy('models', routes.map(toRoute), { traffic }, root)
}

/** A PreRouting policy writes the name of the target to a header; each target has a rule for its name. */
function conditionalRules(root: SourceField, result: Conversion): Fields[] {
  const expression = choiceOf(root.get('strategy'))
  if (expression === undefined) return []
  addChoice(result, 'choose-target', expression, root)
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
    let count = 0
    const ai = modelGroups(groups, (provider) => ({ name: `${name}-${++count}`, provider }))
    return [addBackend(result, name, { ai }, config)]
  }
  const targets = config.items('targets')
  const weights = targets.map((target) => target.number('weight') ?? 1)
  const scale = weights.every((weight) => Number.isInteger(weight)) ? 1 : 1000
  return targets.flatMap((target, index) => {
    const refs = refsOf(target, target.text('name') ?? `${name}-${index + 1}`, result)
    if (refs.length > 1)
      target.report('changed', 'the weights of nested targets are not multiplied')
    return refs.map((ref) => ({ ...ref, weight: Math.round((weights[index] ?? 1) * scale) }))
  })
}

/** Providers by priority: the targets of a fallback one after the other. */
function groupsOf(config: SourceField, name: string, result: Conversion): Fields[][] {
  const mode = config.at('strategy', 'mode').text()
  readSettings(config)
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
    const reason = 'a provider is left out after 429, 5xx and failed connections'
    config.at('strategy', 'on_status_codes').lose(reason, 'changed')
    return nested.flat()
  }
  config.get('strategy').report('changed', 'nested targets share requests by their health')
  config.take('strategy')
  return [nested.flat(2)]
}

/** Settings that a target may have as well as the whole config. */
function readSettings(config: SourceField): void {
  config.ignore('name')
  config.number('weight')
  config.get('cache').lose('there is no response cache')
  const hooks = [
    'input_guardrails',
    'output_guardrails',
    'before_request_hooks',
    'after_request_hooks',
    'default_input_guardrails',
    'default_output_guardrails',
  ]
  for (const name of hooks) {
    config.get(name).lose('checks of Portkey are not converted; see promptGuard', 'protection')
  }
}

function retryOf(root: SourceField): Fields | undefined {
  readSettings(root)
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
