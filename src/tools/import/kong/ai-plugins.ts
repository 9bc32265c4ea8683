/** Converts Kong's plugins for language models. */
import { compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { limitOf, reportShared } from '../limits.ts'
import { keyAuth, providerOf } from '../models.ts'
import { addSecret } from '../targets.ts'
import { keyOf } from './limit-plugins.ts'
import type { PluginReader, PluginScene } from './plugin.ts'

/** A provider of `ai-proxy`, or of one target of `ai-proxy-advanced`. */
function providerOfTarget(target: SourceField, { result, name }: PluginScene): Fields | undefined {
  target.ignore(
    'logging',
    'response_streaming',
    'max_request_body_size',
    'genai_category',
    'llm_format',
  )
  const routeType = target.get('route_type')
  const type = routeType.text() ?? 'llm/v1/chat'
  if (type !== 'llm/v1/chat') {
    return routeType.report('lost', `the route type ${type} is not converted`)
  }
  const model = target.get('model')
  const options = model.get('options')
  const provider = model.text('provider') ?? 'openai'
  const instance = options.text('azure_instance')
  const azure = instance === undefined ? undefined : `https://${instance}.openai.azure.com`
  const region =
    options.at('bedrock', 'aws_region').text() ?? options.at('gemini', 'location_id').text()
  const project = options.at('gemini', 'project_id').text()
  const base = options.text('upstream_url') ?? azure
  options.ignore('anthropic_version', 'input_cost', 'output_cost')
  const fields = providerOf(
    {
      provider: provider === 'gemini' && project !== undefined ? 'vertex_ai' : provider,
      model: options.text('azure_deployment_id') ?? model.text('name'),
      base: provider === 'openai' ? base?.replace(/\/chat\/completions$/, '') : base,
      apiVersion: options.text('azure_api_version'),
      project,
      region,
      auth: authOf(target, { result, name }),
    },
    target,
  )
  const overrides = options.defaults(['max_tokens', 'temperature', 'top_p', 'top_k'])
  if (fields === undefined || overrides.length === 0) return fields
  return { ...fields, policies: { ...(fields.policies as Fields), ai: { overrides } } }
}

/** `{vault://…}` refers to a vault, and the environment is one of them. */
const vault = /^\{vault:\/\/(?:env\/)?([\w/-]+)\}$/

function authOf(
  target: SourceField,
  { result, name }: Pick<PluginScene, 'result' | 'name'>,
): Fields | undefined {
  const auth = target.get('auth')
  auth.ignore(
    'allow_override',
    'header_name',
    'azure_use_managed_identity',
    'gcp_use_service_account',
  )
  auth.get('param_value').lose('keys are sent in headers only')
  auth.ignore('param_name', 'param_location')
  const access = auth.text('aws_access_key_id')
  const secretKey = auth.get('aws_secret_access_key')
  if (access !== undefined && secretKey.isSet) {
    const values = { accessKey: access, secretKey: secretKey.text() ?? '' }
    const secret = result.secretName(`${name}-aws`, values)
    secretKey.report('secret', `the inline value is now in Secret ${secret}`)
    return { aws: { secretRef: addSecret(result, secret, values, target) } }
  }
  const field = auth.get('header_value')
  const text = field.text()
  const variable = vault.exec((text ?? '').replace(/^Bearer /, ''))?.[1]
  const source = variable === undefined ? { value: text } : { variable: variable.toUpperCase() }
  return keyAuth(result, name, source, field)
}

function aiProxy(config: SourceField, scene: PluginScene): void {
  const provider = providerOfTarget(config, scene)
  if (provider !== undefined) scene.plan.models = [[provider]]
}

function aiProxyAdvanced(config: SourceField, scene: PluginScene): void {
  const balancer = config.get('balancer')
  const algorithm = balancer.text('algorithm') ?? 'round-robin'
  balancer.ignore(
    'retries',
    'connect_timeout',
    'read_timeout',
    'write_timeout',
    'failover_criteria',
  )
  const targets = config.items('targets').flatMap((target) => {
    const weight = target.number('weight') ?? 100
    const fields = providerOfTarget(target, scene)
    return fields === undefined ? [] : [{ weight, fields }]
  })
  const fields = targets.map((target) => target.fields)
  if (fields.length === 0) return
  if (algorithm !== 'priority') {
    const reason = 'the models share requests by their health, not by weights'
    if (algorithm !== 'round-robin' || new Set(targets.map(({ weight }) => weight)).size > 1) {
      config.get('balancer').report('changed', reason)
    }
    scene.plan.models = [fields]
    return
  }
  const byWeight = Map.groupBy(targets, ({ weight }) => weight)
  const groups = [...byWeight]
    .sort(([a], [b]) => b - a)
    .map(([, list]) => list.map((target) => target.fields))
  scene.plan.models = groups
}

/** Kong responds with 400 to a prompt that a pattern denies. */
function aiPromptGuard(config: SourceField, { plan }: PluginScene): void {
  config.ignore(
    'allow_all_conversation_history',
    'match_all_roles',
    'max_request_body_size',
    'llm_format',
  )
  config.ignore('genai_category')
  config.get('allow_patterns').lose('prompts that match no pattern would pass')
  const matches = config.texts('deny_patterns')
  if (matches.length === 0) return
  const response = { statusCode: 400, message: 'bad request' }
  plan.requestGuards.push({ response, regex: { matches, action: 'Reject' } })
}

function aiPromptDecorator(config: SourceField, { plan }: PluginScene): void {
  config.ignore('max_request_body_size', 'llm_format', 'genai_category')
  const messages = (place: string) => {
    const list = config.at('prompts', place).items()
    return list.length === 0
      ? undefined
      : list.map((item) => ({ role: item.text('role'), content: item.text('content') }))
  }
  plan.ai.prompt = compact({ prepend: messages('prepend'), append: messages('append') })
}

function aiRateLimiting(config: SourceField, { plan }: PluginScene): void {
  config.ignore('llm_format', 'tokens_count_strategy')
  const key = keyOf(config)
  const providers = config.items('llm_providers')
  if (providers.length > 1) reportShared(config, 'Kong counts by provider')
  for (const provider of providers) {
    provider.ignore('name')
    const limits = provider.oneOrMore('limit')
    const windows = provider.oneOrMore('window_size')
    limits.forEach((field, index) => {
      const period = { amount: field.number() ?? 0, seconds: windows[index]?.number() ?? 0 }
      const limit = limitOf({ ...period, unit: 'tokens', key }, field)
      if (limit === undefined) field.report('protection', 'the period cannot be converted')
      else plan.limits.push(limit)
    })
  }
}

export const aiPlugins: Readonly<Record<string, PluginReader>> = {
  'ai-prompt-decorator': aiPromptDecorator,
  'ai-prompt-guard': aiPromptGuard,
  'ai-proxy': aiProxy,
  'ai-proxy-advanced': aiProxyAdvanced,
  'ai-rate-limiting-advanced': aiRateLimiting,
}
