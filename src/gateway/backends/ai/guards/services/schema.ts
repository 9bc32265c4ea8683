/** What users can write about guard services. The names are those of agentgateway, where it has the service. */
import {
  boolean,
  choice,
  integer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../../../ground/schema/rules.ts'
import { backendObjectReference } from '../../../../../ground/schema/shapes/references.ts'
import { longString, shortString, tinyString } from '../../../../../ground/schema/strings.ts'
import { backendAuthSchema } from '../../../../policies/backend-simple/auth/schema.ts'
import { backendTls } from '../../../../policies/backend-simple/tls/index.ts'

/** What every guard that asks a service has. */
export const serviceActions = {
  action: optional(
    choice('GuardServiceAction', {
      Reject: 'the answer of the service applies',
      Audit: 'nothing; the answer is only recorded',
    }),
    { doc: 'What happens after the answer.', default: 'Reject' },
  ),
  failureMode: optional(
    choice('GuardFailureMode', {
      FailClosed: 'the message is refused with 503',
      FailOpen: 'the message passes, which is recorded',
    }),
    { doc: 'What happens if the service fails.', default: 'FailClosed' },
  ),
} as const

export const streams = optional(
  choice('GuardStreams', {
    Windows: 'in windows, while the client gets what has passed',
    Whole: 'as a whole, before the client gets any of them',
  }),
  { doc: 'How streamed answers are checked.', default: 'Windows' },
)

const policies = object('GuardServicePolicies', {
  auth: optional(backendAuthSchema, 'Credentials. If not set, those of the environment.'),
  tls: optional(backendTls.schema, backendTls.doc),
})

const backendRef = optional(
  backendObjectReference,
  'Backend of the service, whose own policies apply in place of `policies`. If not set, the host of the vendor.',
)
const neededBackend = required(backendObjectReference, 'Backend of the service.')
const ofVendor = {
  ...serviceActions,
  streams,
  backendRef,
  policies: optional(policies, 'Settings of the connection to the host of the vendor.'),
} as const

const segment = text({ min: 1, max: 256, pattern: '^[A-Za-z0-9._:/-]+$' })
const label = text({
  min: 1,
  max: 63,
  pattern: '^[a-z0-9-]+$',
  expects: 'lower-case letters, digits and -',
})

const bedrockGuardrails = object(
  'BedrockGuardrails',
  {
    identifier: required(segment, 'Id or ARN of the guardrail.'),
    version: required(shortString, 'Version of the guardrail, such as 1 or DRAFT.'),
    region: required(label, 'Region of the guardrail.'),
    ...ofVendor,
  },
  { isBrief: true },
)

const googleModelArmor = object(
  'GoogleModelArmor',
  {
    templateId: required(segment, 'Id of the template.'),
    projectId: required(segment, 'Id of the project.'),
    location: optional(label, { doc: 'Location of the template.', default: 'us-central1' }),
    ...ofVendor,
  },
  { isBrief: true },
)

const apiVersion = (byDefault: string) =>
  optional(tinyString, { doc: 'Version of the API.', default: byDefault })

const azureContentSafety = object(
  'AzureContentSafety',
  {
    endpoint: optional(
      text({
        max: 253,
        pattern: '^(https://)?[A-Za-z0-9.-]+/?$',
        expects: 'a host such as NAME.cognitiveservices.azure.com',
      }),
      'Host of the resource.',
    ),
    analyzeText: optional(
      object('AzureAnalyzeText', {
        severityThreshold: optional(integer({ min: 0, max: 7 }), {
          doc: 'Severity from which a text is refused.',
          default: 2,
        }),
        apiVersion: apiVersion('2024-09-01'),
        blocklistNames: optional(list(shortString, { max: 16 }), 'Blocklists of the resource.'),
        haltOnBlocklistHit: optional(boolean(), {
          doc: 'Whether a match of a blocklist ends the analysis.',
          default: false,
        }),
      }),
      'Finds harmful texts. If neither this nor another check is set, it applies with its defaults.',
    ),
    promptShield: optional(
      object('AzurePromptShield', { apiVersion: apiVersion('2024-09-01') }),
      'Finds attacks in prompts, and in results of tools as documents. For requests.',
    ),
    detectJailbreak: optional(
      object('AzureDetectJailbreak', { apiVersion: apiVersion('2024-02-15-preview') }),
      'The older check for attacks. For requests.',
    ),
    ...ofVendor,
  },
  { isBrief: true, rules: [exactlyOneOf('endpoint', 'backendRef')] },
)

const presidio = object(
  'Presidio',
  {
    backendRef: neededBackend,
    language: optional(tinyString, { doc: 'Language of the texts.', default: 'en' }),
    entities: optional(
      list(shortString, { min: 1, max: 64 }),
      'Kinds of data to find; all if not set.',
    ),
    scoreThresholdPercent: optional(
      integer({ min: 0, max: 100 }),
      'Score, in percent, from which a finding counts; the one of the server if not set.',
    ),
    action: optional(
      choice('PresidioAction', {
        Mask: 'what was found is replaced by its kind, such as <PERSON>',
        Reject: 'the message is refused',
        Audit: 'nothing; findings are only recorded',
      }),
      { doc: 'What happens to findings.', default: 'Mask' },
    ),
    failureMode: serviceActions.failureMode,
    streams,
  },
  { isBrief: true },
)

const moderation = object(
  'ModerationService',
  {
    model: optional(longString, { doc: 'Moderation model.', default: 'omni-moderation-latest' }),
    ...ofVendor,
  },
  { isBrief: true },
)

const judge = object(
  'JudgeModel',
  {
    backendRef: neededBackend,
    model: required(longString, 'Model that judges.'),
    format: optional(
      choice('JudgeFormat', {
        Verdict: 'a general model, which answers by a JSON schema',
        LlamaGuard: 'Llama Guard, which answers safe or unsafe with categories',
        NemoGuard: 'NemoGuard content safety, which answers with JSON',
      }),
      { doc: 'How the model is asked, and answers.', default: 'Verdict' },
    ),
    instructions: optional(text({ max: 16_384 }), 'What a general model must refuse.'),
    ...serviceActions,
    streams,
  },
  { isBrief: true },
)

/** The fields of a guard that select a service. */
export const serviceFields = {
  bedrockGuardrails: optional(bedrockGuardrails, 'Asks a guardrail of Bedrock.'),
  googleModelArmor: optional(googleModelArmor, 'Asks Google Model Armor.'),
  azureContentSafety: optional(azureContentSafety, 'Asks Azure AI Content Safety.'),
  presidio: optional(presidio, 'Asks Presidio, and masks or refuses personal data.'),
  moderation: optional(moderation, 'Asks a moderation endpoint with the format of OpenAI.'),
  judge: optional(judge, 'Asks a model to judge.'),
} as const
