/** Reads the target of a Portkey config: a model at a provider. */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { keyAuth, providerOf } from '../models.ts'

const numbers = [
  'temperature',
  'max_tokens',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'seed',
]

/** The provider of a target; reports the target and returns undefined if it cannot be converted. */
export function providerOfTarget(
  target: SourceField,
  name: string,
  result: Conversion,
): Fields | undefined {
  const virtual = target.get('virtual_key')
  const parameters = target.get('override_params')
  const model = parameters.text('model')
  const provider = target.text('provider')
  // `@slug` names an integration that the hosted service stores.
  const slug = provider?.startsWith('@') ? provider.slice(1) : virtual.text()
  const vendor = provider?.startsWith('@') ? guessed(slug) : (provider ?? guessed(slug))
  if (vendor === undefined) {
    return target.report('lost', 'the provider of a virtual key is unknown; add "provider"')
  }
  const key = target.get('api_key')
  const auth = key.isSet
    ? keyAuth(result, name, { value: key.text() }, key)
    : slug === undefined
      ? passthrough(target)
      : keyAuth(result, name, { variable: slug }, virtual.isSet ? virtual : target)
  const resource = target.text('azure_resource_name')
  const fields = providerOf(
    {
      provider: vendor,
      model: target.text('azure_deployment_id') ?? model,
      base: target.text('custom_host') ?? (resource && `https://${resource}.openai.azure.com`),
      apiVersion: target.text('azure_api_version'),
      project: target.text('vertex_project_id'),
      region: target.text('aws_region') ?? target.text('vertex_region'),
      auth,
    },
    target,
  )
  const overrides = parameters.defaults(numbers)
  if (fields === undefined || overrides.length === 0) return fields
  return { ...fields, policies: compact({ ...(fields.policies as Fields), ai: { overrides } }) }
}

/** The vendor that the name of a key suggests. */
const guessed = (slug: string | undefined): string | undefined =>
  ['azure-openai', 'openai', 'anthropic', 'bedrock', 'groq', 'mistral-ai', 'google'].find((name) =>
    slug?.toLowerCase().startsWith(name),
  )

/** Without a key, Portkey passes on the key of the client. */
function passthrough(target: SourceField): Fields {
  target.report('changed', 'passes the key of the client on to the provider, as Portkey does')
  return { passthrough: {} }
}
