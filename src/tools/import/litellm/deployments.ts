/** Reads `model_list`: each entry is a deployment of a model at a provider. */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { isKnownProvider, type KeySource, keyAuth, providerOf } from '../models.ts'
import { addSecret, reportCredential } from '../targets.ts'
import type { Settings } from './settings.ts'

export interface Deployment {
  /** The model name that clients use. */
  readonly group: string
  readonly provider: Fields
  /** Deployments with a lower order are used first. */
  readonly order: number
  readonly origin: SourceField
}

export function readDeployments(
  root: SourceField,
  settings: Settings,
  result: Conversion,
): Deployment[] {
  const deployments = root
    .items('model_list')
    .flatMap((entry) => readDeployment(entry, settings, result) ?? [])
  reportWeights(deployments)
  return deployments
}

function readDeployment(
  entry: SourceField,
  settings: Settings,
  result: Conversion,
): Deployment | undefined {
  entry.ignore('model_info')
  const group = entry.text('model_name')
  const params = entry.get('litellm_params')
  const model = params.text('model')
  if (group === undefined || model === undefined) {
    return entry.report('lost', 'needs model_name and litellm_params.model')
  }
  const { provider, name } = splitModel(model, params.text('custom_llm_provider'))
  const isWildcard = name.includes('*')
  if (isWildcard && group !== '*' && group !== name) {
    const reason = `clients of ${group} must send the model name without the part before the slash`
    params.get('model').report('changed', reason)
  }
  const key = settings.keyOf(params.get('api_key'))
  const label = `${group}-${provider}`
  const auth =
    provider === 'bedrock'
      ? awsAuth(params, label, settings, result)
      : keyAuth(result, label, key, params.get('api_key'))
  const base = settings.plainOf(params.get('api_base')) ?? settings.plainOf(params.get('base_url'))
  const target = {
    provider,
    model: isWildcard ? undefined : name,
    base,
    apiVersion: settings.plainOf(params.get('api_version')),
    project: settings.plainOf(params.get('vertex_project')),
    region: settings.plainOf(
      params.get(provider === 'bedrock' ? 'aws_region_name' : 'vertex_location'),
    ),
    auth,
  }
  const fields = providerOf(target, params.get('model'))
  if (fields === undefined) return undefined
  const order = params.number('order') ?? 1
  const policies = compact({ ...(fields.policies as Fields), ...overrides(params) })
  const withPolicies = Object.keys(policies).length > 0 ? { ...fields, policies } : fields
  return { group, provider: withPolicies, order, origin: entry }
}

/** The provider before the first slash, or the one that LiteLLM guesses from the model name. */
function splitModel(model: string, custom: string | undefined): { provider: string; name: string } {
  const slash = model.indexOf('/')
  const prefix = slash < 0 ? '' : model.slice(0, slash)
  if (custom !== undefined)
    return { provider: custom, name: prefix === custom ? model.slice(slash + 1) : model }
  if (slash >= 0 && (isKnownProvider(prefix) || !/^(meta-llama|mistralai)$/.test(prefix))) {
    return { provider: prefix, name: model.slice(slash + 1) }
  }
  if (model.startsWith('claude')) return { provider: 'anthropic', name: model }
  if (model.startsWith('gemini')) return { provider: 'vertex_ai', name: model }
  return { provider: 'openai', name: model }
}

/** Parameters that LiteLLM puts into each request body unless the client sets them. */
const bodyFields = [
  'temperature',
  'max_tokens',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'seed',
  'stop',
]

function overrides(params: SourceField): Fields {
  const defaults = params.defaults(bodyFields)
  return defaults.length === 0 ? {} : { ai: { defaults } }
}

function awsAuth(
  params: SourceField,
  label: string,
  settings: Settings,
  result: Conversion,
): Fields | undefined {
  const keys = {
    accessKey: params.get('aws_access_key_id'),
    secretKey: params.get('aws_secret_access_key'),
    sessionToken: params.get('aws_session_token'),
  }
  const entries = Object.entries(keys).filter(([, field]) => field.isSet)
  if (entries.length === 0) return undefined
  const sources = entries.map(([key, field]) => {
    const { value, variable }: KeySource = settings.keyOf(field)
    return { key, field, variable, value: value ?? `REPLACE_WITH_${variable ?? key}` }
  })
  const content = Object.fromEntries(sources.map(({ key, value }) => [key, value]))
  const name = result.secretName(`${label}-aws`, content)
  for (const { key, field, variable } of sources) reportCredential(field, name, key, variable)
  return { aws: { secretRef: addSecret(result, name, content, params) } }
}

/** Reports weights and rates of deployments, which Sluice balances by their health instead. */
function reportWeights(deployments: readonly Deployment[]): void {
  for (const { origin } of deployments) {
    const params = origin.get('litellm_params')
    for (const name of ['weight', 'rpm', 'tpm']) {
      const reason = 'deployments of one model share requests by their health'
      params.get(name).lose(reason, 'changed')
    }
  }
}
