/** `ai` of a GatewayBackend: providers of language models. */

import { type Infer, list, object, optional, required } from '../../../../ground/schema/field.ts'
import { hostText, pathPrefixText, withoutHost } from '../../../../ground/schema/host.ts'
import { exactlyOneOf, rule } from '../../../../ground/schema/rules.ts'
import { portNumber } from '../../../../ground/schema/shapes/references.ts'
import { longString, sectionName } from '../../../../ground/schema/strings.ts'
import { backendSectionSchema } from '../../../policies/section-schema.ts'
import { failoverConditions, sessionAffinity } from '../models/failover.ts'
import { hostlessNames, providerNameFields, providerNames } from '../providers/index.ts'

/** Vendors have neutral names. Users often write those of the products. */
const products: Readonly<Record<string, string>> = {
  openai: 'OpenAI is vendorA',
  azure: 'Azure OpenAI is vendorB',
  azureopenai: 'Azure OpenAI is vendorB',
  anthropic: 'Anthropic is vendorC',
  claude: 'Anthropic is vendorC',
  gemini: 'Gemini is vendorD',
  google: 'Gemini is vendorD, and Vertex AI is vendorE',
  vertex: 'Vertex AI is vendorE',
  vertexai: 'Vertex AI is vendorE',
  bedrock: 'Amazon Bedrock is vendorF',
  awsbedrock: 'Amazon Bedrock is vendorF',
  aws: 'Amazon Bedrock is vendorF',
  'llama.cpp': 'llama.cpp is llamacpp',
  together: 'Together AI is togetherai',
  grok: 'xAI is xai',
}

const oneVendor = exactlyOneOf(...providerNames)

interface Hosted {
  readonly host?: string
  readonly port?: number
  readonly custom?: { readonly backendRef?: unknown }
  readonly path?: string
  readonly pathPrefix?: string
}

const has = (name: string): string => `has(self.${name})`
const hasServer = '(has(self.custom) && has(self.custom.backendRef))'

const hostForServers = rule<Hosted>({
  message: `host is required for ${hostlessNames.join(', ')}, unless custom has a backendRef`,
  cel: `has(self.host) || !(${hostlessNames.map(has).join(' || ')}) || ${hasServer}`,
  holds: (spec) =>
    spec.host !== undefined ||
    spec.custom?.backendRef !== undefined ||
    !hostlessNames.some((name) => Object.hasOwn(spec, name)),
  at: 'host',
})

const serverOrHost = rule<Hosted>({
  message: 'custom.backendRef excludes host and port',
  cel: `!${hasServer} || !(has(self.host) || has(self.port))`,
  holds: ({ custom, host, port }) =>
    custom?.backendRef === undefined || (host === undefined && port === undefined),
  at: 'host',
})

/** Vendors whose paths begin with `/v1`. */
const prefixed = ['vendorA', 'vendorC']

const prefixOfHost = rule<Hosted>({
  message: `pathPrefix requires host and ${prefixed.join(' or ')}, and excludes path`,
  cel: `!has(self.pathPrefix) || (has(self.host) && !has(self.path) && (${prefixed.map(has).join(' || ')}))`,
  holds: (spec) =>
    spec.pathPrefix === undefined ||
    (spec.host !== undefined &&
      spec.path === undefined &&
      prefixed.some((name) => Object.hasOwn(spec, name))),
  at: 'pathPrefix',
})

const rules = [oneVendor, hostForServers, serverOrHost, prefixOfHost]

const providerFields = {
  ...providerNameFields,
  host: optional(hostText, "Host that requests are sent to; the vendor's own if not set."),
  port: optional(portNumber, 'Port that requests are sent to; 443 if not set.'),
  path: optional(
    withoutHost(longString),
    "URL path of requests to the provider. It replaces the vendor's own path of each format.",
  ),
  pathPrefix: optional(
    pathPrefixText(longString),
    'What the paths of requests begin with instead of /v1, such as /openai/v1. Requires host and vendorA or vendorC.',
  ),
} as const

const llmProvider = object('LLMProvider', providerFields, {
  rules,
  advice: products,
})
export type ProviderSpec = Infer<typeof llmProvider>

/** Policies of one provider. */
export const providerPolicies = backendSectionSchema('BackendWithAI', [
  'tcp',
  'tunnel',
  'tls',
  'http',
  'auth',
  'health',
  'ai',
])

const namedLlmProvider = object(
  'NamedLLMProvider',
  {
    name: required(sectionName, 'Name of the provider, for sectionName of policies.'),
    ...providerFields,
    policies: optional(
      providerPolicies,
      'Settings of this provider. They override those of the backend and of policies.',
    ),
  },
  { rules, advice: products },
)

const priorityGroup = object('PriorityGroup', {
  providers: required(
    list(namedLlmProvider, { min: 1, max: 32, unique: { by: ['name'] } }),
    'Providers of equal priority. Healthier ones get more requests.',
  ),
})

type Groups = readonly { readonly providers: readonly { readonly name: string }[] }[]

// The rule compares lists of names, one list for each group: comparing every provider with every
// other one would exceed the CEL cost limit of API servers.
const namesDifferAcrossGroups = rule<Groups>({
  message: 'provider names must be unique across groups',
  cel: '[self.map(g, g.providers.map(p, p.name))].all(groups, groups.all(names, names.all(n, groups.exists_one(others, n in others))))',
  holds: (groups) => {
    const names = groups.flatMap((group) => [...new Set(group.providers.map(({ name }) => name))])
    return new Set(names).size === names.length
  },
})

export const aiSchema = object(
  'AIBackend',
  {
    provider: optional(llmProvider, 'The only provider.'),
    groups: optional(
      list(priorityGroup, { min: 1, max: 32, rules: [namesDifferAcrossGroups] }),
      'Groups of providers by priority. A group is used if all providers of the earlier groups are ejected.',
    ),
    failover: optional(
      failoverConditions,
      'Failures after which the next provider is tried. If not set: 429, 5xx and failed connections.',
    ),
    sessionAffinity: optional(
      sessionAffinity,
      'Keeps the requests of a session at one of the providers of equal priority, so that prompt caches of the vendor can be used.',
    ),
  },
  { rules: [exactlyOneOf('provider', 'groups')] },
)
export type AiSpec = Infer<typeof aiSchema>
