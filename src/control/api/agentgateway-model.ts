/** Spec of AgentgatewayModel: a name of a model, and the provider or the other models that serve it. */

import { providerPolicies } from '../../gateway/backends/ai/definition/schema.ts'
import { failoverConditions, sessionAffinity } from '../../gateway/backends/ai/models/failover.ts'
import {
  azureModel,
  bedrockModel,
  customModel,
  productNames,
  vertexModel,
} from '../../gateway/backends/ai/models/products.ts'
import {
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  text,
} from '../../ground/schema/field.ts'
import { exactlyOneOf, rule } from '../../ground/schema/rules.ts'
import { conditions } from '../../ground/schema/shapes/conditions.ts'
import {
  celExpression,
  controllerName,
  longString,
  objectName,
} from '../../ground/schema/strings.ts'
import { parentRef } from './gateway-api/common.ts'

const match = object('ModelMatch', {
  model: required(
    text({
      name: 'ModelPattern',
      min: 1,
      max: 1024,
      pattern: '^([^*]+|\\*[^*]*|[^*]+\\*)$',
      expects: "a name with at most one '*', at the start or the end",
    }),
    'Name of the model in requests. One * at the start or the end stands for any text.',
  ),
})

const modelRef = object(
  'ModelReference',
  {
    name: required(
      objectName,
      'AgentgatewayModel in the same namespace, which must have a provider.',
    ),
  },
  { refersTo: 'AgentgatewayModel' },
)

const targetFields = {
  modelRef: required(modelRef, 'The model.'),
  model: optional(
    longString,
    'Name of the model that the provider gets. Required if the referenced model matches with *.',
  ),
} as const

const weighted = object('WeightedVirtualModel', {
  targets: required(
    list(
      object('WeightedModelTarget', {
        ...targetFields,
        weight: optional(integer({ min: 1, max: 1_000_000 }), {
          doc: 'Share of the requests.',
          default: 1,
        }),
      }),
      { min: 1, max: 64 },
    ),
    'Models that share the requests. Ejected ones are skipped.',
  ),
})

const failover = object('FailoverVirtualModel', {
  targets: required(
    list(
      object('FailoverModelTarget', {
        ...targetFields,
        priority: optional(integer({ min: 0, max: 1_000_000 }), {
          doc: 'Models with the lowest number are preferred. Others are used if all of these are ejected or have failed.',
          default: 0,
        }),
        conditions: optional(
          failoverConditions,
          'Failures of this model after which the next one is tried, in place of those of all targets.',
        ),
      }),
      { min: 1, max: 64 },
    ),
    'Models to try, by priority. Among equal ones, the healthier and faster one gets more requests.',
  ),
  conditions: optional(
    failoverConditions,
    'Failures after which the next model is tried. If not set: 408, 429, 5xx and failed connections.',
  ),
})

interface ConditionalTargets {
  readonly targets: readonly { readonly when?: string }[]
}

const conditional = object(
  'ConditionalVirtualModel',
  {
    targets: required(
      list(
        object('ConditionalModelTarget', {
          ...targetFields,
          when: optional(
            celExpression,
            'Expression; the first target for which it is true gets the request. Only the last one may omit it.',
          ),
        }),
        { min: 1, max: 64 },
      ),
      'Models, in the order of their conditions.',
    ),
  },
  {
    rules: [
      rule<ConditionalTargets>({
        message: 'only the last target may omit when',
        cel: 'size(self.targets.filter(t, !has(t.when))) == (has(self.targets[size(self.targets) - 1].when) ? 0 : 1)',
        holds: ({ targets }) => targets.slice(0, -1).every(({ when }) => when !== undefined),
        at: 'targets',
      }),
    ],
  },
)

const virtualModel = object(
  'VirtualModel',
  {
    weighted: optional(weighted, 'Shares requests by weight.'),
    failover: optional(failover, 'Tries models by priority.'),
    conditional: optional(conditional, 'Chooses by conditions.'),
    sessionAffinity: optional(
      sessionAffinity,
      'Keeps the requests of a session at one of the weighted models, or of those with equal priority, so that prompt caches of the vendor can be used.',
    ),
  },
  { rules: [exactlyOneOf('weighted', 'failover', 'conditional')] },
)

const baseUrl = text({
  name: 'ModelBaseURL',
  min: 1,
  max: 1024,
  pattern: '^https?://[^\\s/?#@\\\\]+(/[^\\s?#\\\\]*)?$',
  expects: 'an http or https URL without query, fragment and user',
})

/** Settings that belong to one value of `provider`. */
const settings = {
  azure: 'Azure',
  vertexai: 'VertexAI',
  bedrock: 'Bedrock',
  custom: 'Custom',
} as const

interface ModelFields {
  readonly provider?: string
  readonly match?: { readonly model: string }
  readonly visibility?: string
  readonly virtualModel?: unknown
  readonly policies?: unknown
  readonly baseURL?: string
  readonly custom?: { readonly backendRef?: unknown }
}

/** The settings that a provider cannot be called without. Bedrock has defaults for all of its settings. */
const needed: ReadonlySet<string> = new Set(['azure', 'vertexai', 'custom'])

const settingRules = Object.entries(settings).map(([field, product]) => {
  const isNeeded = needed.has(field)
  return rule<ModelFields & Readonly<Record<string, unknown>>>({
    message: isNeeded
      ? `${field} must be set if and only if provider is ${product}`
      : `${field} may only be set if provider is ${product}`,
    cel: isNeeded
      ? `has(self.${field}) == (has(self.provider) && self.provider == '${product}')`
      : `!has(self.${field}) || (has(self.provider) && self.provider == '${product}')`,
    holds: (spec) => {
      const [isSet, isOf] = [spec[field] !== undefined, spec.provider === product]
      return isNeeded ? isSet === isOf : !isSet || isOf
    },
    at: field,
  })
})

const rules = [
  exactlyOneOf('provider', 'virtualModel'),
  ...settingRules,
  rule<ModelFields>({
    message: 'a model with virtualModel must be Public, and must match an exact name',
    cel: "!has(self.virtualModel) || ((!has(self.visibility) || self.visibility == 'Public') && (!has(self.match) || !self.match.model.contains('*')))",
    holds: ({ virtualModel, visibility = 'Public', match }) =>
      virtualModel === undefined ||
      (visibility === 'Public' && match?.model.includes('*') !== true),
    at: 'virtualModel',
  }),
  rule<ModelFields>({
    message: 'policies and baseURL have no effect on a model with virtualModel',
    cel: '!has(self.virtualModel) || (!has(self.policies) && !has(self.baseURL))',
    holds: ({ virtualModel, policies, baseURL }) =>
      virtualModel === undefined || (policies === undefined && baseURL === undefined),
    at: 'virtualModel',
  }),
  rule<ModelFields>({
    message: 'baseURL is required for Ollama, and for Custom without backendRef',
    cel: "!has(self.provider) || has(self.baseURL) || (self.provider != 'Ollama' && (self.provider != 'Custom' || (has(self.custom) && has(self.custom.backendRef))))",
    holds: ({ provider, baseURL, custom }) =>
      baseURL !== undefined ||
      (provider !== 'Ollama' && (provider !== 'Custom' || custom?.backendRef !== undefined)),
    at: 'baseURL',
  }),
  rule<ModelFields>({
    message: 'baseURL and custom.backendRef exclude each other',
    cel: '!has(self.baseURL) || !has(self.custom) || !has(self.custom.backendRef)',
    holds: ({ baseURL, custom }) => baseURL === undefined || custom?.backendRef === undefined,
    at: 'baseURL',
  }),
]

export const agentgatewayModelSpec = object(
  'ModelSpec',
  {
    parentRefs: required(
      list(parentRef, { min: 1, max: 16 }),
      'Gateways and ListenerSets whose listeners serve the model, or HTTPRoutes of the same namespace with the backend AgentgatewayModel *. sectionName is a listener, or a rule of the HTTPRoute.',
    ),
    match: optional(
      match,
      'Requests for the model. If not set, the name of this object is the name.',
    ),
    visibility: optional(
      choice('ModelVisibility', {
        Public: 'clients can ask for the model',
        Internal: 'only virtual models can use the model',
      }),
      { doc: 'Who can use the model.', default: 'Public' },
    ),
    provider: optional(choice('ModelProviderName', productNames), 'Provider of the model.'),
    azure: optional(azureModel, 'Resource of Azure.'),
    vertexai: optional(vertexModel, 'Project of Vertex AI.'),
    bedrock: optional(bedrockModel, 'Region of Amazon Bedrock.'),
    custom: optional(customModel, 'Formats of the server.'),
    baseURL: optional(
      baseUrl,
      "Replaces the provider's address and the beginning of its paths, such as https://models.example.com/openai/v1.",
    ),
    policies: optional(
      providerPolicies,
      'Settings of connections to the provider, and of requests and responses.',
    ),
    virtualModel: optional(virtualModel, 'Other models that serve this one.'),
  },
  { rules },
)
export type AgentgatewayModelSpec = Infer<typeof agentgatewayModelSpec>

const modelParent = object('ModelParentStatus', {
  parentRef: required(parentRef, 'The parent of this entry.'),
  controllerName: required(controllerName, 'The controller that wrote this entry.'),
  conditions: optional(conditions(8), 'What the controller found.'),
})

export const agentgatewayModelStatus = object('ModelStatus', {
  parents: required(list(modelParent, { max: 32 }), 'One entry for each parent.'),
})
